"""sysbench 1.0 with our own Lua scripts: command lines, output, and the process in between."""

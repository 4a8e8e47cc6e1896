"""The command line, and the jobs that string the rooms together."""

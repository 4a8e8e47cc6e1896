"""One module a command or group of commands; `main` puts them together."""

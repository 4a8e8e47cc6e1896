"""Counted instructions: the server under callgrind, a fixed number of events, instructions by function."""

"""Counted instructions: the server under callgrind, a fixed number of events, instructions by function."""

from runners.instructions.callgrind import Profile, parse_profile
from runners.instructions.valgrind import Counter

__all__ = ["Counter", "Profile", "parse_profile"]

"""The command line, and the jobs that string the rooms together."""

from importlib.metadata import version

__version__ = version("pointdrop")

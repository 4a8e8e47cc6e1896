"""Meters: what a test costs the machine and the server, an operation at a time."""

"""Measurements to series: the append-only store that every other room reads from and writes to.

`history.model` holds the words of the project as types; `history.store` keeps them.
"""

"""Values of settings, as several releases write them. Pure."""

from __future__ import annotations


def same_value(one: str, other: str) -> bool:
    """Whether two releases write the same value in two ways.

    >>> same_value("80", "80.000000"), same_value("A,B", "B,A"), same_value("OFF", "off"), same_value("1", "2")
    (True, True, True, False)
    """
    if one == other or one.lower() == other.lower():
        return True
    if "," in one and sorted(one.split(",")) == sorted(other.split(",")):
        return True
    try:
        return float(one) == float(other)
    except ValueError:
        return False

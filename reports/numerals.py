"""How numbers are written: enough digits to check, few enough to read. Pure.

>>> plain(43029.81), plain(0.006937), plain(0.0), plain(2268.0), plain(12.345)
('43030', '0.006937', '0', '2268', '12.35')
>>> grouped(1234567.8), grouped(0.5), plain(9999.6), grouped(9999.6)
('1,234,568', '0.5', '10000', '10,000')
>>> signed_pct(-5.62), signed_pct(0.04), signed_pct(12.3)
('−5.6 %', '0.0 %', '+12.3 %')
"""

from __future__ import annotations

import math

#: Significant digits of a measured value: blocks repeat to 0.1 % at best.
DIGITS = 4
#: From here on a value has more digits than that before its point, once it is rounded.
WHOLE = 10**DIGITS - 0.5


def plain(value: float) -> str:
    """Four significant digits, whole numbers in full, no exponent for what people read as a number."""
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) >= WHOLE:
        return f"{value:.0f}"
    text = f"{value:.{DIGITS}g}"
    return text if "e" not in text else f"{value:.{DIGITS - 1}e}"


def grouped(value: float) -> str:
    """`plain` with a comma between thousands."""
    return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= WHOLE else plain(value)


def signed_pct(value: float, decimals: int = 1) -> str:
    """A change with its sign: `−5.6 %`; a change that rounds to nothing has no sign."""
    if not math.isfinite(value):
        return "+inf %" if value > 0 else "−inf %"
    text = f"{abs(value):.{decimals}f}"
    sign = "" if float(text) == 0 else "−" if value < 0 else "+"
    return f"{sign}{text} %"


def short(value: float | None) -> float | None:
    """Seven significant digits: more than any page shows, and half the bytes of a full double in its script data."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.7g}")


def counted(number: int, noun: str) -> str:
    """`1 test`, `3 tests`."""
    return f"{number:,} {noun}{'' if number == 1 or noun.endswith('s') else 's'}"

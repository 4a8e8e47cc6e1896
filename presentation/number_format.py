"""How numbers are written: enough digits to check, few enough to read. Pure.

>>> plain(43029.81), plain(0.006937), plain(0.0), plain(2268.0), plain(12.345)
('43030', '0.006937', '0', '2268', '12.35')
>>> grouped(1234567.8), grouped(0.5), plain(9999.6), grouped(9999.6)
('1,234,568', '0.5', '10000', '10,000')
>>> percent(3.14), percent(-111.2), percent(0.04)
('3.1 %', '111 %', '0.04 %')
>>> signed(3.14), signed(-11.23), signed(0.001), signed(float("inf"))
('+3.1 %', '−11.2 %', '0.00 %', '+inf %')
>>> interval(-12.3, 3.0), probability(0.99999)
('−12.3 to +3.0 %', 'p > 0.999')
>>> count(1, "test"), count(3200, "test"), listing(["point queries", "range queries", "writes"])
('1 test', '3,200 tests', 'point queries, range queries and writes')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

#: Significant digits of a measured value: blocks repeat to 0.1 % at best.
DIGITS = 4
#: From here on a percentage has no decimals, below the other it has two.
WHOLE_PERCENT, SMALL_PERCENT = 99.95, 0.995
#: A median says something from so many tests up, and never leads.
FEWEST_FOR_MEDIAN = 5
#: What was not measured.
ABSENT = "–"


def plain(value: float, digits: int = DIGITS) -> str:
    """So many significant digits, whole numbers in full, no exponent for what people read as a number."""
    if not math.isfinite(value):
        return "inf" if value > 0 else "-inf"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:.0f}"
    text = f"{value:.{digits}g}"
    return text if "e" not in text else f"{value:.{digits - 1}e}"


def grouped(value: float, digits: int = DIGITS) -> str:
    """`plain` with a comma between thousands."""
    return f"{value:,.0f}" if math.isfinite(value) and abs(value) >= 10**DIGITS - 0.5 else plain(value, digits)


def difference(value: float) -> str:
    """`grouped` with its sign."""
    return f"{'−' if value < 0 else '+'}{grouped(abs(value))}"


def sides(
    before: float, after: float, at_most: str = "", text: Callable[[float], str] = grouped
) -> tuple[str, str, str]:
    """Before, after and their difference; the side named by `at_most` is known to be no larger than that.

    >>> sides(412.0, 50_000.0, "before")
    ('≤ 412', '50,000', '≥ +49,588')
    >>> sides(50_000.0, 412.0, "after")
    ('50,000', '≤ 412', '≤ −49,588')
    """
    texts = {"before": text(before), "after": text(after)}
    change = difference(after - before)
    if at_most:
        texts[at_most] = f"≤ {texts[at_most]}"
        change = f"{'≥' if at_most == 'before' else '≤'} {change}"
    return texts["before"], texts["after"], change


def percent(value: float) -> str:
    """A change without its sign."""
    if not math.isfinite(value):
        return "inf %"
    size = abs(value)
    decimals = 0 if size >= WHOLE_PERCENT else 1 if size >= SMALL_PERCENT else 2
    return f"{size:.{decimals}f} %"


def signed(value: float) -> str:
    """A change with its sign, a real minus for the negative; a change that rounds to nothing has none."""
    text = percent(value)
    return text if text == "0.00 %" else f"{'−' if value < 0 else '+'}{text}"


def median_of(median_pct: float, tests: int) -> str:
    """The median change of so many tests; of few it says nothing true.

    >>> median_of(23.0, 2), median_of(-5.6, 5)
    ('–', '−5.6 %')
    """
    return signed(median_pct) if tests >= FEWEST_FOR_MEDIAN else ABSENT


def interval(low: float, high: float) -> str:
    """Both ends of a change in percent."""
    return f"{signed(low).removesuffix(' %')} to {signed(high)}"


def probability(value: float) -> str:
    """Never printed as certainty."""
    return "p > 0.999" if value > 0.9994 else f"p {value:.3f}"


def ratio(value: float | None, decimals: int = 2) -> str:
    """A relative value as the field prints it: `inf` for x/0."""
    return ABSENT if value is None or math.isnan(value) else f"{value:.{decimals}f}" if math.isfinite(value) else "inf"


def short(value: float | None) -> float | None:
    """Seven significant digits: more than any page shows, and half the bytes of a full double in its script data."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.7g}")


def count(number: int, noun: str) -> str:
    """The number and its noun, in the plural where it is not one."""
    return f"{number:,} {noun}{'' if number == 1 or noun.endswith('s') else 's'}"


def listing(names: Sequence[str]) -> str:
    """Names as a sentence lists them."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

"""How numbers stand in the sentences of the detector, as `presentation.number_format` writes them beside. Pure.

>>> unsigned(0.034), unsigned(3.86), unsigned(214.2), signed(-19.94), signed(0.04), signed(0.001)
('0.03 %', '3.9 %', '214 %', '−19.9 %', '+0.04 %', '0.00 %')
>>> span([0.034, 3.86]), span([0.151, 0.149]), count(1, "move"), count(3, "move")
('0.03 to 3.9 %', '0.15 %', '1 move', '3 moves')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: From here on a percentage has no decimals, below the other it has two.
WHOLE_PERCENT, SMALL_PERCENT = 99.95, 0.995


def unsigned(change_pct: float) -> str:
    """Without its sign."""
    size = abs(change_pct)
    return f"{size:.{0 if size >= WHOLE_PERCENT else 1 if size >= SMALL_PERCENT else 2}f} %"


def signed(change_pct: float) -> str:
    """With its sign, a real minus for what is lower; what rounds to nothing has none."""
    text = unsigned(change_pct)
    return text if text == "0.00 %" else f"{'−' if change_pct < 0 else '+'}{text}"


def span(changes_pct: Sequence[float], text: Callable[[float], str] = unsigned) -> str:
    """The least and the most of them, or the one that all are."""
    least, most = text(min(changes_pct)), text(max(changes_pct))
    return most if least == most else f"{least.removesuffix(' %')} to {most}"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

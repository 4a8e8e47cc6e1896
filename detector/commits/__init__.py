"""Changepoints in one long series of nightly or per-commit values. Pure: values in, changepoints and warnings out.

>>> from detector.commits import changepoints
>>> quiet = [100.0, 101.0, 99.5, 100.4, 99.8, 100.9, 99.2, 100.1] * 5
>>> [(c.index, round(c.change_pct), c.tier) for c in changepoints(quiet + [value * 0.95 for value in quiet])]
[(40, -5, 'confirmed')]

`changepoints` and `analyse` look at a whole series, `Monitor` at one that grows; `answer` is one line of the protocol
`pointdrop changepoints --serve` speaks.
"""

from detector.commits.analysis import Monitor, analyse, changepoints
from detector.commits.protocol import answer
from detector.commits.results import Analysis, Changepoint, Event
from detector.commits.segmentation import CommitSettings

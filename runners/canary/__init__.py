"""A fixed piece of work, timed before and after a session: is this host still the machine it was?

`workload` does it, `verdicts` compares with what the same host took before, `quarantine` remembers, keeps a sick host
out, and gives every reading for the history.
The control release of a session tells a machine that moved from a product that moved, but only after hours of
measuring; the canary takes seconds and needs no DBMS.
"""

from runners.canary.quarantine import Canary, Quarantine
from runners.canary.verdicts import Times

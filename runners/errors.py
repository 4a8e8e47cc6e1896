"""What can go wrong between a release and its measurements, as one small tree.

RunnersError
├── WorkloadFailed     sysbench, or a statement of it, failed against a running server
├── CountingFailed     callgrind gave no usable count
├── HostBusy           another session measures on this host
├── HostChanged        a resumed session finds another machine, or another workload, than it began with
└── OutOfSpace         the disk cannot take the data of the next block
"""

from typing import ClassVar


class RunnersError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class WorkloadFailed(RunnersError):
    """The load generator or one of its statements failed."""


class CountingFailed(RunnersError):
    """The counted-instructions lane has no count for a test."""


class HostBusy(RunnersError):
    """Two sessions never measure on one host at once."""


class HostChanged(RunnersError):
    """Blocks of one session are of one machine and one workload."""


class OutOfSpace(RunnersError):
    """Too little room below the state directory."""

"""What can go wrong between a release and its measurements, as one tree; `exit_code` is the command's.

RunnersError
├── WorkloadFailed         sysbench, or a statement of it, failed against a running server
├── CountingFailed         callgrind gave no usable count
├── HostBusy               other sessions hold the cores that this one needs
├── HostChanged            a resumed session finds another machine, or another workload, than it began with
├── OutOfSpace             the disk cannot take the data of the next block
├── EngineError            a server did not do what was asked of it
│   ├── ServerDied         it ended by itself; the message ends with the last lines of its log
│   ├── ServerTimeout      it was not ready, or not gone, by its deadline; likewise
│   ├── WrongVersion       the running server is not the release that was asked for
│   ├── ServerLeftOver     a server of an earlier, dead run cannot be stopped
│   ├── NoAccount          servers cannot run as root, and no unprivileged account can do it here
│   └── NoSandbox          bubblewrap is missing
└── ReleaseError           a release cannot be used
    ├── UnknownRelease     no source offers it and no pin names it
    ├── NotRunnable        withdrawn by its vendor, or known not to run here; says why
    ├── DigestMismatch     the bytes differ from the pin; carries both values
    ├── Unverifiable       no upstream checksum or signature vouches for the bytes, which were thrown away
    ├── UnsafeArchive      an archive that would write outside its directory, or a bomb; nothing of it is left
    ├── SourceUnavailable  the source cannot be reached, or no longer has this release
    ├── BuildFailed        a build step failed; names the log
    └── BadSize            a size of the cache that cannot be read
history.errors.BadSettings
├── ConfigNotRunnable      (runners.settings.dbms) the release or its build does not have what the config needs
└── UnknownOption          (runners.settings.dbms) the server refused an option; names config, option and release
"""

from typing import ClassVar


class RunnersError(Exception):
    """Base: the message says what to do next."""

    exit_code: ClassVar[int] = 1


class WorkloadFailed(RunnersError): ...


class CountingFailed(RunnersError): ...


class HostBusy(RunnersError): ...


class HostChanged(RunnersError): ...


class OutOfSpace(RunnersError): ...


class EngineError(RunnersError): ...


class ServerDied(EngineError): ...


class ServerTimeout(EngineError): ...


class WrongVersion(EngineError): ...


class ServerLeftOver(EngineError): ...


class NoAccount(EngineError):
    exit_code = 2


class NoSandbox(EngineError):
    exit_code = 2


class ReleaseError(RunnersError): ...


class UnknownRelease(ReleaseError):
    exit_code = 2


class NotRunnable(ReleaseError):
    exit_code = 2


class DigestMismatch(ReleaseError):
    """The bytes are not the ones that were pinned."""

    exit_code = 2

    def __init__(self, what: str, pinned: str, actual: str) -> None:
        self.pinned, self.actual = pinned, actual
        super().__init__(
            f"{what}: the digest differs from the pin\n  pinned {pinned}\n  found  {actual}\n"
            "Nothing was used. If the vendor replaced the file on purpose, remove the pin and run "
            "`pointdrop releases add` again; otherwise somebody is serving other bytes."
        )


class Unverifiable(ReleaseError): ...


class UnsafeArchive(ReleaseError):
    exit_code = 2


class SourceUnavailable(ReleaseError): ...


class BuildFailed(ReleaseError): ...


class BadSize(ReleaseError):
    exit_code = 2

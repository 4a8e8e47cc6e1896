"""What can go wrong with a server, below the room's tree.

RunnersError
└── EngineError
    ├── ServerDied       it ended by itself; the message ends with the last lines of its log
    ├── ServerTimeout    it was not ready, or not gone, by its deadline; likewise
    ├── WrongVersion     the running server is not the release that was asked for
    ├── ServerLeftOver   a leftover server cannot be stopped
    ├── NoAccount        servers cannot run as root, and no unprivileged account can do it here
    └── NoSandbox        bubblewrap is missing
history.errors.BadSettings
├── ConfigNotRunnable    (runners.settings.dbms) the release or its build does not have what the config needs
└── UnknownOption        (runners.settings.dbms) the server refused an option; names config, option and release
"""

from runners.errors import RunnersError


class EngineError(RunnersError):
    """A server did not do what was asked of it."""


class ServerDied(EngineError):
    """The server ended by itself."""


class ServerTimeout(EngineError):
    """A deadline passed."""


class WrongVersion(EngineError):
    """The running server reports another version than the release has."""


class ServerLeftOver(EngineError):
    """A server of an earlier, dead run is still there and does not go."""


class NoAccount(EngineError):
    """There is no unprivileged account to run the server as."""

    exit_code = 2


class NoSandbox(EngineError):
    """A sandbox was asked for and there is none."""

    exit_code = 2

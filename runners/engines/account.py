"""Whom servers run as: never root.

An ordinary user runs them as itself. Root drops to the account `pointdrop` where one exists, else to `nobody`, with no
capability left and no way to gain one. Either way the kernel ends the server when the harness dies (PR_SET_PDEATHSIG;
the signal belongs to the *thread* that started the server, so start servers from a thread that lives as long as they).

>>> account = Account(name="nobody", uid=65534, gid=65534, drops=True)
>>> " ".join(account.command(["postgres", "-D", "data"], death_signal="QUIT"))
'setpriv --pdeathsig QUIT --no-new-privs --reuid 65534 --regid 65534 --clear-groups --bounding-set=-all --inh-caps=-all -- postgres -D data'
"""  # noqa: E501 - a doctest shows the command as it is

from __future__ import annotations

import os
import pwd
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from runners.errors import NoAccount

#: Accounts that root drops to, the first that exists.
UNPRIVILEGED = ("pointdrop", "nobody")


@dataclass(frozen=True)
class Account:
    """One unprivileged account; `drops` says that root becomes it."""

    name: str
    uid: int
    gid: int
    drops: bool

    def command(self, argv: Sequence[str], death_signal: str = "KILL") -> list[str]:
        """`argv` run as this account, sent `death_signal` when the harness dies."""
        prefix = ["setpriv", "--pdeathsig", death_signal, "--no-new-privs"]
        if self.drops:
            prefix += ["--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups"]
            prefix += ["--bounding-set=-all", "--inh-caps=-all"]
        return [*prefix, "--", *argv]

    def own(self, path: Path) -> None:
        """Make `path`, a folder or file that exists, this account's and nobody else's to read.

        OSError when it is a link: the account may have put it there, and what it leads to be anybody's.
        """
        place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if self.drops:
                os.fchown(place, self.uid, self.gid)
            os.fchmod(place, 0o700 if stat.S_ISDIR(os.fstat(place).st_mode) else 0o600)
        finally:
            os.close(place)

    def create(self, path: Path) -> BinaryIO:
        """A new file of this account, open for writing, in place of a file or a link of that name."""
        path.unlink(missing_ok=True)
        place = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if self.drops:
            os.fchown(place, self.uid, self.gid)
        return os.fdopen(place, "wb")

    def own_tree(self, path: Path) -> None:
        """Give `path` and everything below it to this account."""
        self.own(path)
        if self.drops:
            for folder, folders, files in os.walk(path):
                for name in (*folders, *files):
                    os.chown(Path(folder) / name, self.uid, self.gid, follow_symlinks=False)

    def barrier(self, path: Path) -> Path | None:
        """The outermost folder on the way to `path` that this account may not enter, None when the way is free."""
        if not self.drops:  # it is us, with all our groups
            return next((each for each in reversed(path.resolve().parents) if not os.access(each, os.X_OK)), None)
        for folder in reversed(path.resolve().parents):
            status = folder.stat()
            if status.st_uid == self.uid:
                bit = 0o100
            elif status.st_gid == self.gid:
                bit = 0o010
            else:
                bit = 0o001
            if not status.st_mode & bit:
                return folder
        return None


def server_account(user: str | None = None) -> Account:
    """The account servers run as; NoAccount when `user` cannot be it."""
    if shutil.which("setpriv") is None:
        raise NoAccount("setpriv is missing; install util-linux")
    uid = os.geteuid()
    if uid != 0:
        account = pwd.getpwuid(uid)
        if user not in (None, account.pw_name):
            raise NoAccount(f"only root can run servers as {user}; leave the user out to run them as {account.pw_name}")
        return Account(account.pw_name, account.pw_uid, account.pw_gid, drops=False)
    for name in (user,) if user else UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            raise NoAccount(f"{name} is root; servers run as an ordinary account")
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid, drops=True)
    raise NoAccount(f"there is no account {user or ' or '.join(UNPRIVILEGED)}; run: adduser --system --group pointdrop")

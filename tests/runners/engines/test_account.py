"""Whom servers run as, and whether that account can get where it must."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runners.engines.account import Account, server_account
from runners.errors import NoAccount

STRANGER = Account(name="stranger", uid=54321, gid=54321, drops=True)


def test_what_is_started_is_not_root_and_can_gain_nothing() -> None:
    account = server_account()
    status = subprocess.run(
        account.command(["cat", "/proc/self/status"]), check=True, capture_output=True, text=True
    ).stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["Uid"].split() == [str(account.uid)] * 4
    assert account.uid != 0
    assert fields["NoNewPrivs"] == "1"
    assert int(fields["CapEff"], 16) == 0


def test_root_is_no_account_for_a_server() -> None:
    with pytest.raises(NoAccount, match="root"):
        server_account("root" if os.geteuid() == 0 else "nobody")
    with pytest.raises(NoAccount):
        server_account("no-such-account")


def test_the_outermost_folder_in_the_way_is_named(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "open" / "data"
    inner.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    barrier = STRANGER.barrier(inner)
    assert barrier is not None
    assert (tmp_path / "closed").is_relative_to(barrier)
    owner = Account("owner", inner.stat().st_uid, inner.stat().st_gid, drops=False)
    assert owner.barrier(inner) is None


def test_what_we_may_enter_by_another_group_is_no_barrier(tmp_path: Path) -> None:
    """Servers that run as ourselves keep all our groups; who and whose group this is alone does not tell."""
    (tmp_path / "shared").mkdir(mode=0o770)
    ourselves = Account("me", uid=54321, gid=54321, drops=False)
    assert ourselves.barrier(tmp_path / "shared" / "data") is None


def test_a_link_that_an_account_left_is_not_followed(tmp_path: Path) -> None:
    """Root would give away, or write to, what it leads to."""
    account = server_account()
    owned = tmp_path / "mine"
    owned.write_text("mine")
    owned.chmod(0o644)
    link = tmp_path / "server.log"
    link.symlink_to(owned)
    with pytest.raises(OSError, match="symbolic link"):
        account.own(link)
    with account.create(link) as file:
        file.write(b"theirs")
    assert link.read_text() == "theirs" and not link.is_symlink()
    assert (link.stat().st_uid, link.stat().st_mode & 0o777) == (account.uid, 0o600)
    assert (owned.read_text(), owned.stat().st_uid, owned.stat().st_mode & 0o777) == ("mine", os.geteuid(), 0o644)


def test_own_makes_a_folder_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    account = server_account()
    account.own(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == account.uid

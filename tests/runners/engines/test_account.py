"""Whom servers run as, and whether that account can get where it must."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runners.engines.account import Account, server_account
from runners.engines.errors import NoAccount

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


def test_own_makes_a_folder_private(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    account = server_account()
    account.own(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == account.uid

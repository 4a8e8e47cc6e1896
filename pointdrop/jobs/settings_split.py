"""The arm between two releases: the new one with the settings of the old one, found by asking both.

`detector.settings_split` makes settings and code of what it measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock

from history.model import LeftSetting, SettingChange
from pointdrop.jobs.setting_changes import setting_changes
from runners.cores import Cores
from runners.engines.held_settings import hold, settings_of
from runners.sessions import HeldConfig, SessionPlan
from runners.sessions.model import PlannedRun
from runners.sessions.session import rendered_options
from runners.sessions.worker import Fetches
from runners.settings.dbms import DbmsSettings, load_dbms


def third_arm(
    plan: SessionPlan,
    base: PlannedRun,
    candidate: PlannedRun,
    catalogue: Fetches,
    *,
    configs: Path,
    state: Path,
    sandbox: bool = False,
) -> HeldConfig:
    """Ask the servers of two runs of `plan` for their settings, and the candidate which of the base's it takes.

    They are started below `state`, one at a time, on no data. The config has no options where no setting differs that
    the candidate could be given: the arm would be the candidate itself. EngineError when a server does not start,
    HostBusy when sessions hold all cores.
    """
    settings = load_dbms(plan.control.dbms, configs)
    sides = [
        (catalogue.fetch(run.release.dbms, run.release.version), rendered_options(plan, run, settings))
        for run in (base, candidate)
    ]
    directory = state / "servers" / "asked"
    directory.parent.mkdir(parents=True, exist_ok=True)
    # A core of this host, since a session that is timed has it to itself.
    with Cores().free(1), FileLock(directory.with_suffix(".lock")):
        before, now = (settings_of(*side, directory, state=state, sandbox=sandbox) for side in sides)
        changes = _in_order(setting_changes(before, now), settings)
        wanted = {change.name: change.before for change in changes}
        taken = hold(*sides[1], now, wanted, directory, state=state, sandbox=sandbox)
    return HeldConfig(
        base=candidate.config,
        options=tuple(taken.options.items()),
        of=base.release.version,
        held=tuple(change for change in changes if change.name in taken.names),
        left=tuple(
            LeftSetting(change=change, reason=taken.refused[change.name])
            for change in changes
            if change.name not in taken.names
        ),
    )


def _in_order(changes: Sequence[SettingChange], settings: DbmsSettings) -> list[SettingChange]:
    """Those first that a config of ours names: they are the likeliest to matter."""
    named = {option for config in settings.configs.values() for option in config.options}
    return sorted(changes, key=lambda change: change.name not in named)

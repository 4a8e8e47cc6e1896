"""Did somebody change an option between the two sides of a finding, or the release its own defaults?

Read from the effective settings of the runs where both sides kept them (`setting_changes.py`), else from their option
files.

Options come and go with releases: 8.0.30 has `innodb_redo_log_capacity` where 8.0.28 has `innodb_log_file_size`. That
is no change of the config. A change is an option that has another value on the two sides, or anything that differs
between the two sessions in the option file of one and the same release, as that of the control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from history.metrics import MetricRegistry
from history.model import Finding, Run, SettingChange
from history.store import Store
from pointdrop.jobs.setting_changes import one_sided, setting_changes

Options = Mapping[str, str]


@dataclass(frozen=True)
class OptionChanges:
    """What differs in the options of the two sides, as sentences."""

    changed: tuple[str, ...] = ()
    """Somebody set something else."""
    one_sided: tuple[str, ...] = ()
    """Set on one side only, as an option is that one of the releases does not have."""
    settings: tuple[SettingChange, ...] = ()
    """Effective settings that differ, of whatever cause; empty where a side kept none."""


def parse_options(text: str) -> dict[str, str]:
    """The options of an option file, `postgresql.conf` or `my.cnf`; a bare flag has an empty value.

    >>> parse_options("# a comment\\n[mysqld]\\nsync_binlog = 0\\nskip-log-bin\\n")
    {'sync_binlog': '0', 'skip_log_bin': ''}
    """
    options = {}
    for line in map(str.strip, text.splitlines()):
        if line and line[0] not in "#[;":
            name, _, value = line.partition("=")
            options[name.strip().replace("-", "_")] = value.strip()
    return options


def compare_options(before: Options, after: Options) -> tuple[list[str], list[str]]:
    """Options with two values, and options that one side has.

    >>> compare_options({"jit": "on", "old": "1"}, {"jit": "off", "new": "2"})
    (['jit was on, is off'], ['new = 2 is set after only', 'old = 1 is set before only'])
    """
    both = sorted(before.keys() & after.keys())
    changed = [f"{name} was {before[name]}, is {after[name]}" for name in both if before[name] != after[name]]
    added = [f"{name} = {after[name]} is set after only" for name in sorted(after.keys() - before.keys())]
    dropped = [f"{name} = {before[name]} is set before only" for name in sorted(before.keys() - after.keys())]
    return changed, added + dropped


def option_changes(finding: Finding, store: Store, metrics: MetricRegistry) -> OptionChanges:
    """What differs between the options of the newest runs of the two sides, over everything that moved."""
    changed, alone_in = set[str](), set[str]()
    settings: dict[str, SettingChange] = {}
    for before, after in _sides(finding, store, metrics):
        told = store.settings(before.id), store.settings(after.id)
        if all(told):
            changes = setting_changes(*told)
            settings |= {change.name: change for change in changes}
            values = [f"{c.name} was {c.before}, is {c.after}" for c in changes if c.cause == "config"]
            alone = one_sided(*told)
        else:
            values, alone = compare_options(parse_options(before.options), parse_options(after.options))
        by_hand = set(edited_options(before, after, store))
        changed |= {*values, *by_hand}
        alone_in |= {*alone} - by_hand
    return OptionChanges(tuple(sorted(changed)), tuple(sorted(alone_in)), tuple(settings.values()))


def _sides(finding: Finding, store: Store, metrics: MetricRegistry) -> Iterator[tuple[Run, Run]]:
    """The newest run of either side, for every server, config, benchmark and lane that moved."""
    keys = [move.key for move in finding.moves]
    places = sorted({(key.server, key.config, key.benchmark, metrics[key.metric].lane) for key in keys})
    for server, config, benchmark, lane in places:
        runs_of_sides = [
            store.runs(dbms=finding.dbms, version=version, server=server, config=config, benchmark=benchmark, lane=lane)
            for version in (finding.previous, finding.release)
        ]
        with_options = [[run for run in runs if run.options] for runs in runs_of_sides]
        if all(with_options):
            yield with_options[0][-1], with_options[1][-1]


def edited_options(before: Run, after: Run, store: Store) -> Iterator[str]:
    """What differs in the options of a release that the sessions of both sides measured."""
    if before.session_id == after.session_id:
        return
    left, right = (
        {
            run.release.version: parse_options(run.options)
            for run in store.runs(side.session_id, config=side.config, benchmark=side.benchmark, lane=side.lane)
            if run.options
        }
        for side in (before, after)
    )
    for version in sorted(left.keys() & right.keys()):
        values, alone = compare_options(left[version], right[version])
        yield from (*values, *alone)

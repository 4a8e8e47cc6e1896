"""What a running server says its options are, in one form for all DBMS. Pure.

An option file says what was hoped for; the server says what is: with the defaults of its release, what it sized by
itself, and where each value came from. Left out is what no two servers agree on, or what is no setting: paths, sockets,
names of the host, positions in the binlog, versions (the toolchain has those), what a session sets for itself.

>>> rows = [("port", "5432", None, "5432", "command line"), ("shared_buffers", "8192", "8kB", "16384", "default")]
>>> of_postgres(rows)
{'shared_buffers': EffectiveSetting(value='65536kB', default='131072kB', source='default')}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from history.model import EffectiveSetting

Settings = dict[str, EffectiveSetting]

#: No setting, or another one in each server.
_DROPPED = re.compile(
    # Names of this host, this server and this session, and what follows from the port.
    r"(hostname|port|report_(host|port)|server_u(uid|id)|wsrep_node_name|wsrep_start_position|pseudo_.*|timestamp"
    r"|identity|last_.*|rand_seed.*|error_count|warning_count|external_user|proxy_user|unix_socket_directories"
    # Files and folders.
    r"|(general|slow_query)_log_file|log_slow_query_file|relay_log(_.*)?|log_bin_(basename|index)|.*_file|.*dir"
    # How far the binlog is, and what was executed.
    r"|gtid_(executed|purged|owned|.*_pos|binlog_state|seq_no|next)"
    # The build, and what the machine made of the settings.
    r"|version.*|innodb_version|build_id|protocol_version|license|have_.*|wsrep_patch_version|server_version.*"
    r"|shared_memory_size.*|num_os_semaphores|huge_pages_status|in_hot_standby|transaction_(deferrable|read_only))"
)
#: Sources in the words of MySQL (`variables_info`), MariaDB (`SYSTEM_VARIABLES`) and Postgres (`pg_settings`), where
#: they are not ours: `default`, `auto` (the server computed it), `file`, `command line`.
_SOURCES = {
    "compiled": "default",
    "compile-time": "default",
    "config": "file",
    "explicit": "file",
    "global": "file",
    "server": "file",
    "extra": "file",
    "user": "file",
    "configuration file": "file",
    "override": "auto",
}
#: Variables whose own name begins so; elsewhere `skip_` turns a variable off.
_NAMED_SKIP = ("skip_name_resolve", "skip_networking", "skip_show_database")
_PATH = re.compile(r"(^|[:=, ])/")
_UNIT = re.compile(r"(\d*)([A-Za-z]+)")


def given_to(file: Iterable[str], command_line: Iterable[str]) -> dict[str, str]:
    """By variable, where a server of MySQL's family was told its value: the servers do not know it of each variable.

    >>> given_to(["skip_log_bin", "character_set_server"], ["--loose-mysqlx=0"])
    {'mysqlx': 'command line', 'log_bin': 'file', 'character_set_server': 'file'}
    """
    return {_variable(option): "command line" for option in command_line} | {
        _variable(option): "file" for option in file
    }


def of_mysql(rows: Iterable[tuple[Any, ...]], given: Mapping[str, str]) -> Settings:
    """From (name, value, source) of `performance_schema`, MySQL 8 and later, or from (name, value) of `SHOW GLOBAL
    VARIABLES`, which knows no sources. The default is known where it holds."""
    settings: Settings = {}
    for name, value, *told in rows:
        source = given.get(str(name).lower()) or (_source(told[0]) if told else "default")
        _add(settings, name, value, value if source == "default" else None, source)
    return settings


def of_mariadb(rows: Iterable[tuple[Any, ...]], given: Mapping[str, str]) -> Settings:
    """From (name, value, default, origin) of `information_schema.SYSTEM_VARIABLES`."""
    settings: Settings = {}
    for name, value, default, origin in rows:
        source = _source(origin)
        if source == "default" and (told := given.get(str(name).lower())):
            source, default = told, None  # what the server takes for the default is what it was told
        _add(settings, name, value, default, source)
    return settings


def of_postgres(rows: Iterable[tuple[Any, ...]]) -> Settings:
    """From (name, setting, unit, boot value, source) of `pg_settings`; values as an option file takes them."""
    settings: Settings = {}
    for name, value, unit, default, source in rows:
        _add(settings, name, _with_unit(value, unit), _with_unit(default, unit), _source(source))
    return settings


def _add(settings: Settings, name: str, value: Any, default: Any, source: str) -> None:
    """One setting, unless it is dropped; None is what only sessions have."""
    name = str(name).lower()
    if value is None or _DROPPED.fullmatch(name) or _PATH.search(str(value)):
        return
    default = None if default is None else str(default)
    settings[name] = EffectiveSetting(value=str(value), default=default, source=source)


def _source(word: str) -> str:
    """A source in our words; one without a word of ours is told as the server tells it.

    >>> _source("COMMAND_LINE"), _source("COMPILE-TIME"), _source("PERSISTED")
    ('command line', 'default', 'persisted')
    """
    word = str(word).lower()
    return _SOURCES.get(word) or word.replace("_", " ").replace("-", " ")


def _variable(option: str) -> str:
    """The variable of an option.

    >>> _variable("skip-log-bin"), _variable("loose-mysqlx"), _variable("skip_name_resolve")
    ('log_bin', 'mysqlx', 'skip_name_resolve')
    """
    name = option.lstrip("-").partition("=")[0].replace("-", "_").removeprefix("loose_")
    return name if name in _NAMED_SKIP else name.removeprefix("skip_")


def _with_unit(value: Any, unit: str | None) -> Any:
    """A number of pg_settings with its unit, as an option file takes it.

    >>> _with_unit("8192", "8kB"), _with_unit("30", "min"), _with_unit("-1", "kB"), _with_unit("on", None)
    ('65536kB', '30min', '-1', 'on')
    """
    match = _UNIT.fullmatch(unit or "")
    if value is None or match is None or float(value) <= 0:
        return value
    many, word = match.groups()
    return f"{int(value) * int(many)}{word}" if many else f"{value}{word}"


def differing(first: Mapping[str, EffectiveSetting], other: Mapping[str, EffectiveSetting]) -> list[str]:
    """In words, what differs between two servers that should be alike.

    >>> differing({"jit": EffectiveSetting(value="on")}, {"jit": EffectiveSetting(value="off")})
    ['jit on -> off']
    """
    absent = EffectiveSetting(value="absent")
    names = sorted(first.keys() | other.keys())
    values = [(name, first.get(name, absent).value, other.get(name, absent).value) for name in names]
    return [f"{name} {before} -> {after}" for name, before, after in values if before != after]

"""Named configs of a DBMS: `configs/dbms/<dbms>/configs.toml` -> the option file of one release on one server.

A config is a set of server options. It may extend another, and every option may say for which releases it holds, since
options come, go and are renamed:

    [configs.base.options]
    max_connections = 100
    innodb_buffer_pool_size = "{pool_mib}M"
    innodb_redo_log_capacity = { value = "{log_mib}M", since = "8.0.30" }
    innodb_log_file_size = { value = "{log_mib}M", before = "8.0.30" }

    [configs.bl1_sync0_dw1]
    extends = "base"
    options = { log_bin = "binlog", sync_binlog = 0 }

    [overlays.instructions.options]      # laid over any config by the lane that counts instructions
    innodb_flush_log_at_trx_commit = 0

An empty value is a bare flag (`skip_log_bin = ""`). `{...}` stands for a size that follows from the server profile, see
`Sizing`. `since` is the first release that has the option, `before` the first that has it no longer. A config as a
whole may need a release: `needs = { since = "12.3", reason = "..." }`; asking for it on another is
`ConfigNotRunnable`, never a silent change of what is measured.

>>> settings = DbmsSettings.model_validate({
...     "dbms": "mysql",
...     "configs": {"base": {"options": {"innodb_log_file_size": {"value": "{log_mib}M", "before": "8.0.30"}}}},
... })
>>> print(render(settings, "base", "8.0.28", Sizing(pool_mib=128, log_mib=64)).text, end="")
# mysql 8.0.28, config base
[mysqld]
innodb_log_file_size = 64M
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from history.errors import BadSettings
from history.model import HELD_MARK
from history.settings import Setting, read_model
from history.versions import version_key

Scalar = bool | int | float | str
OptionName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.\-]{0,80}$")]
ConfigName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.=,\-]{1,80}$")]

#: An option value must stay on its line in an option file.
_LINE_BREAK = re.compile(r"[\r\n\0]")
_VARIABLE = re.compile(r"\{([a-z_]+)\}")


class ConfigNotRunnable(BadSettings):
    """A config that a release or its build does not have; the message says why."""


class UnknownOption(BadSettings):
    """A server refused an option; names config, option and release."""


class Span(Setting):
    """Releases from `since` on, up to but not including `before`; an absent end is open."""

    since: str | None = None
    before: str | None = None

    def holds(self, dbms: str, version: str) -> bool:
        """Whether `version` lies in the span."""
        numbers = release_numbers(dbms, version)
        started = self.since is None or numbers >= release_numbers(dbms, self.since)
        return started and (self.before is None or numbers < release_numbers(dbms, self.before))


class Needs(Span):
    """What a whole config needs; `reason` is shown when a release is outside."""

    reason: str


class ConditionalValue(Span):
    """One value of an option, for the releases of the span."""

    value: Scalar


#: In the file: a scalar, one conditional value, or several of them.
OptionEntry = Scalar | ConditionalValue | tuple[ConditionalValue, ...]


class NamedConfig(Setting):
    """One entry of `[configs]` or `[overlays]`."""

    title: str = ""
    extends: ConfigName | None = None
    needs: Needs | None = None
    options: dict[OptionName, OptionEntry] = Field(default_factory=dict)
    initialise: dict[OptionName, OptionEntry] = Field(default_factory=dict)
    """Options of the program that creates the data directory (`initdb --no-data-checksums`); `true` is a bare flag."""
    without: tuple[OptionName, ...] = ()
    """Options of the extended config that this one leaves out."""


class DbmsSettings(Setting):
    """The whole file."""

    dbms: Literal["postgres", "mysql", "mariadb", "myrocks"]
    configs: dict[ConfigName, NamedConfig]
    overlays: dict[ConfigName, NamedConfig] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _chains_end(self) -> DbmsSettings:
        for table in (self.configs, self.overlays):
            for name in table:
                list(_chain(table, name))
                if HELD_MARK in name:
                    raise ValueError(f"{name}: {HELD_MARK!r} marks third arms of comparisons; choose another name")
        return self


class Sizing(Setting):
    """What an option value may refer to in braces; sizes follow from the server profile.

    Besides the fields there is `half_log_mib`, for servers that divide their redo log into two files.
    """

    pool_mib: int = Field(gt=0)
    """MiB of the buffer pool, shared buffers or block cache."""
    log_mib: int = Field(default=512, gt=0)
    """MiB of redo log or WAL between checkpoints."""
    cores: int = Field(default=2, gt=0)
    connections: int = Field(default=100, gt=0)

    def fill(self, text: str) -> str:
        """`text` with its variables replaced; BadSettings when it names one that does not exist."""
        sizes = {**self.model_dump(), "half_log_mib": self.log_mib // 2}

        def value(match: re.Match[str]) -> str:
            if match[1] not in sizes:
                raise BadSettings(f"{{{match[1]}}} is no size of a server; use one of {', '.join(sorted(sizes))}")
            return str(sizes[match[1]])

        return _VARIABLE.sub(value, text)


class RenderedOptions(Setting):
    """The options of one config for one release, ready for a server."""

    dbms: str
    config: str
    version: str
    options: dict[str, str]
    """In the order of the file, the extended config first."""
    initialise: dict[str, str | None] = Field(default_factory=dict)
    """Long options of the initialising program; None is a bare flag."""

    def holding(self, name: str, options: Mapping[str, str | None]) -> RenderedOptions:
        """These with other options laid over them, under another name; None leaves an option out."""
        laid = {**self.options, **options}
        kept = {option: value for option, value in laid.items() if value is not None}
        _, plus, overlays = self.config.partition("+")
        return self.model_copy(update={"config": f"{name}{plus}{overlays}", "options": kept})

    @property
    def text(self) -> str:
        """The option file, whole: `postgresql.conf` for Postgres, a `[mysqld]` group otherwise."""
        postgres = self.dbms == "postgres"
        lines = [f"# {self.dbms} {self.version}, config {self.config}"] + ([] if postgres else ["[mysqld]"])
        for name, value in self.options.items():
            if postgres:
                lines.append(f"{name} = {_quoted(value)}")
            else:
                lines.append(f"{name} = {value}" if value else name)
        return "\n".join(lines) + "\n"


def release_numbers(dbms: str, version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparing it with the ends of a span; pre-releases have their release's options.

    >>> release_numbers("mysql", "8.0.30") > release_numbers("mysql", "8.0.4"), release_numbers("postgres", "17rc1")
    (True, (17,))
    """
    recognised, numbers, *_ = version_key(dbms, version)
    if not recognised:
        raise BadSettings(f"{version!r} is no version of {dbms}; write one like 8.0.30")
    return numbers


def load_dbms(dbms: str, configs: Path) -> DbmsSettings:
    """The configs of a DBMS; BadSettings names the file, the key and what is wrong."""
    path = configs / "dbms" / dbms / "configs.toml"
    settings = read_model(path, DbmsSettings)
    if settings.dbms != dbms:
        raise BadSettings(f"{path}: dbms: must be {dbms!r}, as the folder is called (got {settings.dbms!r})")
    return settings


def render(
    settings: DbmsSettings, config: str, version: str, sizing: Sizing, overlays: tuple[str, ...] = ()
) -> RenderedOptions:
    """The options of `config` for `version`, with `overlays` laid over it in order.

    BadSettings when there is no such config or overlay; ConfigNotRunnable when the config needs another release.
    """
    layers = [
        *_named(settings.configs, config, f"config of {settings.dbms}"),
        *(layer for name in overlays for layer in _named(settings.overlays, name, f"overlay of {settings.dbms}")),
    ]
    options: dict[str, str] = {}
    initialise: dict[str, str | None] = {}
    for layer in layers:
        if layer.needs and not layer.needs.holds(settings.dbms, version):
            raise ConfigNotRunnable(f"{settings.dbms} {version} cannot run config {config}: {layer.needs.reason}")
        for name in layer.without:
            options.pop(name, None)
        for name, value in _valid(layer.options, settings.dbms, version):
            options[name] = _filled(value, sizing, name)
        for name, value in _valid(layer.initialise, settings.dbms, version):
            initialise[name] = None if value is True else _filled(value, sizing, name)
    return RenderedOptions(
        dbms=settings.dbms,
        config="+".join((config, *overlays)),
        version=version,
        options=options,
        initialise=initialise,
    )


def _named(table: Mapping[str, NamedConfig], name: str, what: str) -> list[NamedConfig]:
    if name not in table:
        raise BadSettings(f"no {what} is called {name!r}; there are {', '.join(sorted(table))}")
    return list(_chain(table, name))


def _chain(table: Mapping[str, NamedConfig], name: str) -> Iterator[NamedConfig]:
    """The config and those it extends, the outermost first; ValueError when one is missing or they go in a circle."""
    seen: list[str] = []
    while True:
        if name in seen:
            raise ValueError(f"{' extends '.join([*seen, name])}: a circle")
        if name not in table:
            raise ValueError(f"{seen[-1]} extends {name!r}, which does not exist")
        seen.append(name)
        parent = table[name].extends
        if parent is None:
            break
        name = parent
    for each in reversed(seen):
        yield table[each]


def _valid(entries: Mapping[str, OptionEntry], dbms: str, version: str) -> Iterator[tuple[str, Scalar]]:
    """The options that hold for `version`; of several values the last that holds."""
    for name, entry in entries.items():
        values = entry if isinstance(entry, tuple) else (entry,)
        for value in reversed(values):
            if not isinstance(value, ConditionalValue):
                yield name, value
                break
            if value.holds(dbms, version):
                yield name, value.value
                break


def _filled(value: Scalar, sizing: Sizing, option: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    text = sizing.fill(str(value))
    if _LINE_BREAK.search(text):
        raise BadSettings(f"the value of {option} must stay on one line")
    return text


def _quoted(value: str) -> str:
    """A value as postgresql.conf wants it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"

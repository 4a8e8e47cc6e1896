"""Which settings of another release a release can be given: asked by trying.

A release that no longer has an option, or no longer takes a value, says so when it starts, or starts and tells another
value. What is left is what the third arm of a comparison holds: the new release with the old one's settings.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from history.model import EffectiveSetting
from history.setting_values import same_value
from runners.engines.registry import engine_for
from runners.errors import EngineError, ServerDied
from runners.releases.installed import Installed
from runners.settings.dbms import ConfigNotRunnable, RenderedOptions, UnknownOption

#: Starts until all options that a release refuses are known; each takes seconds.
MOST_STARTS = 12
#: Of who may connect and how, and of what cannot be an option: never held.
_LEFT_ALONE = re.compile(
    r"(admin_)?(ssl|tls)_.*|.*authentication.*|.*password.*|mysqlx.*|plugin.*|lower_case_.*|character_set_(?!server).*"
    r"|collation_(?!server).*|log_error.*|.*_time_zone|timezone|log_timezone|skip_(networking|external_locking)"
)
#: What a switch is called in an option file: by variable, then value.
_SWITCHES: dict[tuple[str, str], dict[str, str | None]] = {
    ("log_bin", "OFF"): {"log_bin": None, "skip_log_bin": ""},
    ("log_bin", "ON"): {"skip_log_bin": None, "log_bin": "binlog"},
}
_ERROR = re.compile(r"\berror\b|fatal|there is no option|does not have")
#: Of `--sql-mode`, which is the variable sql_mode, the second; not those before it.
_INNER_DASH = re.compile(r"(?<=\w)-(?=\w)")
#: `index_merge=on,mrr=off`: flags of one variable.
_FLAGS = re.compile(r"\w+=\w+(,\w+=\w+)*")


@dataclass(frozen=True)
class Held:
    """What a release took of another one's settings."""

    options: dict[str, str | None]
    """As an option file has them; None leaves one out."""
    names: tuple[str, ...]
    """The settings they hold."""
    refused: dict[str, str]
    """Why, by setting."""


def settings_of(
    installed: Installed, options: RenderedOptions, directory: Path, *, state: Path, sandbox: bool = False
) -> dict[str, EffectiveSetting]:
    """The effective settings of an empty server of the release, started in `directory`, which is removed."""
    try:
        engine = engine_for(installed, options, directory, state=state, sandbox=sandbox)
        with engine:
            engine.initialise()
            engine.start()
            engine.wait_ready()
            settings = engine.effective_settings()
            engine.kill()
        return settings
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def hold(
    installed: Installed,
    options: RenderedOptions,
    now: Mapping[str, EffectiveSetting],
    wanted: Mapping[str, str],
    directory: Path,
    *,
    state: Path,
    sandbox: bool = False,
) -> Held:
    """What the release of `options`, whose settings are `now`, takes of the values `wanted`.

    EngineError when it does not start with them and does not say which of them is why.
    """
    refused = {name: reason for name, value in wanted.items() if (reason := _reason(name, value, now))}
    left = {name: value for name, value in wanted.items() if name not in refused}
    for _ in range(MOST_STARTS):
        if not left:
            return Held({}, (), refused)
        laid = laid_over(options, now, left)
        try:
            told = settings_of(installed, options.holding("held", laid), directory, state=state, sandbox=sandbox)
        except (UnknownOption, ConfigNotRunnable, ServerDied) as error:
            culprit = _culprit(str(error), left)
            if culprit is None:
                raise
            refused[culprit] = f"the release does not {'start with' if isinstance(error, ServerDied) else 'take'} it"
            del left[culprit]
            continue
        made = {name: told[name].value if name in told else "nothing" for name in left}
        taken = tuple(name for name in left if same_value(made[name], _merged(left[name], now[name].value)))
        refused |= {name: f"the server makes {made[name]} of it" for name in left if name not in taken}
        return Held(laid_over(options, now, {name: left[name] for name in taken}), taken, refused)
    raise EngineError(f"{installed.release.name} refuses one after the other of another release's settings: {refused}")


def _reason(name: str, value: str, now: Mapping[str, EffectiveSetting]) -> str:
    """Why a setting cannot be held at all; empty when it may be.

    >>> _reason("jit", "on\\nshared_preload_libraries = x", {"jit": EffectiveSetting(value="off")})
    'its value is no line of an option file'
    """
    if name not in now:
        return "the release does not have it"
    if now[name].source == "built in":
        return "it is built in"
    if now[name].source == "command line" or _LEFT_ALONE.fullmatch(name.lower()):
        return "Pointdrop does not set it"
    if not value.isprintable():  # a stranger's server may say anything
        return "its value is no line of an option file"
    return ""


def laid_over(
    options: RenderedOptions, now: Mapping[str, EffectiveSetting], values: Mapping[str, str]
) -> dict[str, str | None]:
    """The options that give the settings `values`; `now` are those without.

    A variable of MySQL's family need not be an option: `loose_` lets the server pass over it. InnoDB's go by their own
    names to what makes the data directory, too.
    """
    laid: dict[str, str | None] = {}
    for name, value in values.items():
        if switch := _SWITCHES.get((name, value)):
            laid |= switch
            continue
        loose = options.dbms != "postgres" and name not in options.options and not name.startswith("innodb_")
        # A bare name in an option file of MySQL's family is a flag, which few variables are.
        empty = "" if options.dbms == "postgres" else '""'
        laid[f"loose_{name}" if loose else name] = _merged(value, now[name].value) or empty
    return laid


def _merged(value: str, now: str) -> str:
    """Of a variable with flags, those that the release has, with the values of the other one.

    >>> _merged("mrr=off,gone=on", "mrr=on,new=on")
    'mrr=off,new=on'
    """
    if not (_FLAGS.fullmatch(value) and _FLAGS.fullmatch(now)):
        return value
    held = dict(flag.split("=") for flag in value.split(","))
    flags = (flag.split("=") for flag in now.split(","))
    return ",".join(f"{name}={held.get(name, own)}" for name, own in flags)


def _culprit(text: str, names: Mapping[str, str]) -> str | None:
    """The setting that an error names, the longest name first; a log warns of others besides.

    >>> _culprit("[Warning] mode is old\\n[ERROR] option '--loose-sql-mode' requires an argument", {"sql_mode": ""})
    'sql_mode'
    """
    lines = [line for line in text.lower().splitlines() if _ERROR.search(line)]
    said = _INNER_DASH.sub("_", "\n".join(lines))
    by_length = sorted(names, key=len, reverse=True)
    return next((name for name in by_length if re.search(rf"\b(loose_)?{re.escape(name.lower())}\b", said)), None)

"""What differs between the effective settings of two servers, and whose doing it is. Pure.

* `config`: somebody set it on both sides, to different values;
* `default`: nobody set it, and the new release chose another value;
* `one side`: somebody set it on one side, and the release's own value holds on the other, as with an option that one
  release replaced by another and still has.

>>> default = EffectiveSetting(value="10", default="10"), EffectiveSetting(value="200", default="200")
>>> setting_changes({"dives": default[0]}, {"dives": default[1]})
[SettingChange(name='dives', before='10', after='200', cause='default')]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from history.model import EffectiveSetting, SettingChange
from history.setting_values import same_value

Settings = Mapping[str, EffectiveSetting]
#: Sizes of what only observes, by prefix: told last, since there are many.
_OBSERVING = "performance_schema_"


def setting_changes(before: Settings, after: Settings) -> list[SettingChange]:
    """Settings that both sides have with values that differ; what is likeliest to matter first."""
    changes = []
    for name in before.keys() & after.keys():
        old, new = before[name], after[name]
        if not same_value(old.value, new.value):
            changes.append(SettingChange(name=name, before=old.value, after=new.value, cause=_cause(old, new)))
    return sorted(changes, key=lambda change: (change.name.startswith(_OBSERVING), change.name))


def _cause(old: EffectiveSetting, new: EffectiveSetting) -> Literal["config", "default", "one side"]:
    if old.set_by_nobody and new.set_by_nobody:
        return "default"
    return "one side" if old.set_by_nobody or new.set_by_nobody else "config"


def one_sided(before: Settings, after: Settings) -> list[str]:
    """What somebody set that the other release does not have, in words."""
    words = []
    for side, other, when in ((after, before, "after"), (before, after, "before")):
        names = sorted(name for name in side.keys() - other.keys() if not side[name].set_by_nobody)
        words += [f"{name} = {side[name].value} is set {when} only" for name in names]
    return words

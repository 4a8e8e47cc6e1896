"""One TOML file to one validated model; a bad file stops the command before anything runs.

The message names the file, the key, what is wrong and what is allowed:

    configs/servers/local.toml: threads: Input should be greater than or equal to 1 (got 0)
    configs/plans/local.toml: measure.0.lane: Input should be 'time' or 'instructions' (got 'cpu')
    configs/plans/local.toml: measure.0.profil: unknown key; allowed: backfill, benchmark, blocks, ...
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from history.errors import BadSettings


class Setting(BaseModel):
    """Base of every model of a file below `configs/`: immutable, no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path) -> dict[str, Any]:
    """The file's contents; BadSettings when it is not there or not TOML."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        near = sorted(other.stem for other in path.parent.glob("*.toml"))
        raise BadSettings(f"{path}: no such file; there are: {', '.join(near) or 'none'}") from None
    except OSError as error:
        raise BadSettings(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: not TOML: {error}") from error


def validate(path: Path, model: type[Model], data: Mapping[str, Any]) -> Model:
    """`data` as `model`; BadSettings with one line a problem."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise BadSettings("\n".join(_explain(path, model, dict(problem)) for problem in error.errors())) from error


def read_model(path: Path, model: type[Model]) -> Model:
    """`validate` of `read_toml`."""
    return validate(path, model, read_toml(path))


def validate_named(path: Path, model: type[Model], name: str, entry: object) -> Model:
    """The table `[name]` of the file as `model`, which has a `name`; BadSettings says in which table a problem is."""
    if not isinstance(entry, dict):
        raise BadSettings(f"{path}: {name}: a table [{name}] is wanted here (got {entry!r})")
    try:
        return model.model_validate({"name": name, **entry})
    except ValidationError as error:
        raise BadSettings("\n".join(_explain(path, model, dict(p), (name,)) for p in error.errors())) from error


def find(name_or_path: str | Path, folder: Path) -> Path:
    """A bare name means `folder/NAME.toml`; anything with a separator or `.toml` is a path."""
    text = str(name_or_path)
    return Path(text) if "/" in text or text.endswith(".toml") else folder / f"{text}.toml"


def _explain(path: Path, model: type[BaseModel], problem: dict[str, Any], table: tuple[str, ...] = ()) -> str:
    location: tuple[int | str, ...] = problem["loc"]
    key = ".".join(str(part) for part in (*table, *location)) or "(file)"
    if problem["type"] == "extra_forbidden":
        allowed = _keys(model, location[:-1])
        return f"{path}: {key}: unknown key" + (f"; allowed: {', '.join(allowed)}" if allowed else "")
    if problem["type"] == "missing":
        return f"{path}: {key}: missing"
    text = str(problem["msg"]).removeprefix("Value error, ")
    shown = problem.get("input")
    return f"{path}: {key}: {text}" + (f" (got {shown!r})" if isinstance(shown, str | int | float | bool) else "")


def _keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """The keys that are allowed at `location` below `model`; empty when it leads outside the models."""
    current: type[BaseModel] = model
    for part in location:
        if isinstance(part, int) or part not in current.model_fields:
            continue
        inner = _inner_model(current.model_fields[part].annotation)
        if inner is None:
            return []
        current = inner
    return sorted(field.alias or name for name, field in current.model_fields.items())


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, UnionType, tuple, list, dict):
        for argument in get_args(annotation):
            inner = _inner_model(argument)
            if inner is not None:
                return inner
    return None

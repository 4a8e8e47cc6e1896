"""The committed schemas are those of the models, and the committed files fit them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from runners.settings.schemas import schemas

CONFIGS = Path(__file__).parents[3] / "configs"
MAKE = "run: python -m runners.settings.schemas configs/schemas"
FILES = [
    *(("plan.json", path) for path in sorted(CONFIGS.glob("plans/*.toml"))),
    *(("server.json", path) for path in sorted(CONFIGS.glob("servers/*.toml"))),
    *(("benchmark.json", path) for path in sorted(CONFIGS.glob("benchmarks/*.toml"))),
    ("profiles.json", CONFIGS / "profiles.toml"),
]


@pytest.mark.parametrize("name", sorted(schemas()))
def test_the_committed_schema_is_that_of_the_model(name: str) -> None:
    path = CONFIGS / "schemas" / name
    assert path.read_text() == schemas()[name], MAKE


@pytest.mark.parametrize(("schema", "path"), FILES, ids=lambda value: getattr(value, "stem", str(value)))
def test_every_file_names_its_schema_and_fits_it(schema: str, path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    assert first.startswith("#:schema ")
    assert (path.parent / first.removeprefix("#:schema ")).resolve() == CONFIGS / "schemas" / schema
    jsonschema.validate(tomllib.loads(path.read_text()), json.loads(schemas()[schema]))

"""JSON Schemas of the files below `configs/`, for editors: `python -m runners.settings.schemas configs/schemas`.

An editor with a TOML language server finds a file's schema through its first line, `#:schema ../schemas/plan.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel, TypeAdapter

from runners.settings.benchmarks import Benchmark
from runners.settings.dbms import DbmsSettings
from runners.settings.plans import Plan
from runners.settings.profiles import Profile
from runners.settings.servers import Server

MODELS: dict[str, type[BaseModel]] = {
    "benchmark": Benchmark,
    "dbms-configs": DbmsSettings,
    "plan": Plan,
    "server": Server,
}


def schemas() -> dict[str, str]:
    """The text of each schema by the name of its file."""
    texts = {f"{name}.json": _text(model.model_json_schema(by_alias=True)) for name, model in MODELS.items()}
    profiles = TypeAdapter(dict[str, Profile]).json_schema()
    profiles["$defs"]["Profile"]["required"] = []  # a profile's name is its key in the file
    return texts | {"profiles.json": _text(profiles)}


def _text(schema: dict[str, object]) -> str:
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schemas().items():
        (folder / name).write_text(text)

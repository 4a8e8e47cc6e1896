"""The workflow files are clean for three linters, and keep the rules that no linter knows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROGRAMS = Path(sys.prefix) / "bin"


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


@pytest.mark.parametrize(
    "command",
    [
        ("actionlint", "-no-color", "-shellcheck", str(PROGRAMS / "shellcheck")),
        ("zizmor", "--offline", "--pedantic", "--no-progress", ".github/workflows", "action.yml"),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, FILES)),
        ("check-jsonschema", "--builtin-schema", "vendor.github-actions", "action.yml"),
    ],
    ids=lambda command: " ".join(command[:3]),
)
def test_linters_find_nothing(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        (str(PROGRAMS / command[0]), *command[1:]), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("number", [0, 1])
def test_the_ten_lines_for_other_repositories_are_ten_good_lines(number: int, tmp_path: Path) -> None:
    text = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "github-actions.md").read_text(), re.DOTALL)[number]
    assert len(text.splitlines()) <= 10
    file = tmp_path / ".github" / "workflows" / "pointdrop.yml"
    file.parent.mkdir(parents=True)
    file.write_text(text.replace("SHA", "3" * 40))
    for command in (
        ("actionlint", str(file)),
        ("zizmor", "--offline", "--no-progress", str(file)),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)),
    ):
        done = subprocess.run((str(PROGRAMS / command[0]), *command[1:]), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (job,) = yaml.safe_load(text)["jobs"].values()
    if "steps" in job:
        asked, taken = job["steps"][0], load(ROOT / "action.yml")
    else:
        asked, taken = job, load(ROOT / ".github" / "workflows" / "bench-patch.yml")[True]["workflow_call"]
        needed = [
            job["permissions"] for job in load(ROOT / ".github" / "workflows" / "bench-patch.yml")["jobs"].values()
        ]
        assert {name for one in needed for name in one} <= set(job["permissions"]), "GitHub refuses the call otherwise"
    assert set(asked["with"]) <= set(taken["inputs"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_permissions_are_empty_but_where_said(path: Path) -> None:
    assert load(path)["permissions"] == {}, "a job says what it needs"
    for name, job in load(path)["jobs"].items():
        assert job.get("permissions") is not None, f"{name} has no permissions of its own"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_by_sha_with_their_version(path: Path) -> None:
    for line in path.read_text().splitlines():
        if found := re.search(r"uses: ([^.\s]\S*)", line):
            assert re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), f"{found[1]} is not pinned"


def test_no_measuring_machine_holds_a_writing_token() -> None:
    for path in FILES:
        for name, job in load(path)["jobs"].items():
            if "self-hosted" in str(job.get("runs-on")):
                assert "write" not in job["permissions"].values(), f"{path.name}: {name}"
                assert "secrets." not in str(job), f"{path.name}: {name}"


def test_what_runs_a_patch_has_no_token_no_checkout_and_no_words_of_strangers() -> None:
    for name in ("bench-patch.yml", "pr-bench.yml"):
        job = load(ROOT / ".github" / "workflows" / name)["jobs"]["bench"]
        assert job["permissions"] == {}
        assert all("checkout" not in step.get("uses", "") for step in job["steps"])
        assert all("${{" not in step.get("run", "") for step in job["steps"])


def test_no_remark_and_no_other_label_cancels_a_benchmark() -> None:
    """A workflow's own group is joined before any job's condition is looked at."""
    asked = load(ROOT / ".github" / "workflows" / "bench-command.yml")
    assert "concurrency" not in asked and asked["jobs"]["patch"]["concurrency"]["queue"] == "max"
    group = load(ROOT / ".github" / "workflows" / "pr-bench.yml")["concurrency"]["group"]
    assert "label.name == 'bench' &&" in group and "|| github.run_id" in group


def test_nothing_that_runs_for_every_pull_request_is_self_hosted() -> None:
    for path in FILES:
        workflow = load(path)
        triggers = workflow[True]  # YAML 1.1 reads `on` as true
        if isinstance(triggers, dict) and "pull_request" in triggers and not triggers["pull_request"]:
            assert all("self-hosted" not in str(job["runs-on"]) for job in workflow["jobs"].values()), path.name

"""Workflows run by `act` in host mode, as the files are: every job starts from a fresh copy of the checkout.

Two things differ from GitHub: actions that talk to GitHub's own services are the stand-ins in `actions/`, and the
virtual environment and the cache of releases are links, as on a runner that keeps them.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
ACTIONS = Path(__file__).parent / "actions"
LABELS = ("ubuntu-24.04", "self-hosted", "linux", "small", "medium")
#: What a checkout holds that a workflow's commands need; the package itself is installed from the link `.venv`.
CHECKED_OUT = (".ci", ".github", "Makefile", "pyproject.toml", "requirements", "configs", "action.yml")
ACT_SECONDS = 900
TOKEN = "ghs_workflow"


@dataclass
class Ran:
    """What a run of a workflow did."""

    exit_code: int
    jobs: dict[str, str]
    """Result by job name, matrix values included; a job that did not run is not in it."""
    log: str
    lines: list[dict[str, Any]] = field(repr=False, default_factory=list)

    def steps(self, job: str) -> dict[str, str]:
        """Result by step of the jobs whose name begins with `job`; act gives all jobs of a matrix one result."""
        return {
            line["step"]: line["stepResult"]
            for line in self.lines
            if line.get("stepResult") and line.get("step") and _job(line).startswith(job)
        }


class Workplace:
    """A checkout, a place for artifacts, a history branch, and the environment of a runner."""

    def __init__(self, folder: Path, download_state: Path) -> None:
        self.folder = folder
        self.checkout = folder / "checkout"
        self.artifacts = folder / "artifacts"
        self.artifacts.mkdir(parents=True)
        self.branch = folder / "history.git"
        self.checkout.mkdir()
        for name in CHECKED_OUT:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, self.checkout / name)
            elif source.exists():
                shutil.copy(source, self.checkout / name)
        self._link_environment()
        state = self.checkout / "var"
        state.mkdir()
        for name in ("cache", "releases"):
            (download_state / name).mkdir(exist_ok=True)
            (state / name).symlink_to(download_state / name)
        self._git("init", "--quiet", "--initial-branch=main", str(self.checkout))
        self._git("-C", str(self.checkout), "remote", "add", "origin", "https://github.com/o/r")
        self._git("-C", str(self.checkout), "add", "Makefile")
        self._git("-C", str(self.checkout), "commit", "--quiet", "-m", "checkout")
        self._git("init", "--quiet", "--bare", str(self.branch))

    def _link_environment(self) -> None:
        """The environment of this very test run, stamped as `.ci/virtualenv` would, so that nothing is installed."""
        programs = self.checkout / ".venv" / "bin"
        programs.mkdir(parents=True)
        (programs / "pointdrop").symlink_to(Path(sys.prefix) / "bin" / "pointdrop")
        pinned = (self.checkout / "requirements" / "run.txt").read_bytes()
        stamp = hashlib.sha256(pinned + (self.checkout / "pyproject.toml").read_bytes()).hexdigest()
        (programs.parent / ".pins").write_text(f"run.txt {stamp}\n")

    def break_machine(self, server: str) -> None:
        """Let every measuring job on `server` fail, as when its disk is gone."""
        program = self.checkout / ".venv" / "bin" / "pointdrop"
        real = program.resolve()
        program.unlink()
        broken = f'case "$*" in "bench "*"--server {server} "*) echo "no disk" >&2; exit 1 ;; esac'
        program.write_text(f'#!/bin/sh\n{broken}\nexec {real} "$@"\n')
        program.chmod(0o755)

    def measure_little(self) -> None:
        """Few rows, and one test in the set `local`: a scan, most of what the server then does."""
        profiles = self.checkout / "configs" / "profiles.toml"
        head, _, tail = profiles.read_text().partition("[instructions]\n")
        kept = [line for line in tail.splitlines() if not line.startswith(("scale", "age_updates"))]
        scale = ["scale = { tables = 1, rows = 5_000, threads = 1 }", "age_updates = 500"]
        profiles.write_text("\n".join([f"{head}[instructions]", *scale, *kept]) + "\n")
        tests = self.checkout / "configs" / "benchmarks" / "sysbench.toml"
        blocks = tests.read_text().split("[[test]]")
        changed = [b if 'name = "scan.range100"' in b else b.replace(', "local"', "") for b in blocks]
        tests.write_text("[[test]]".join(changed))

    def _git(self, *arguments: str) -> None:
        subprocess.run(("git", "-c", "user.name=t", "-c", "user.email=t@localhost", *arguments), check=True)

    def act(
        self,
        workflow: str,
        event_name: str,
        event: Mapping[str, Any],
        api: str,
        environment: Mapping[str, str] = {},
        artifacts: Mapping[str, str] = {},
    ) -> Ran:
        """Run the workflow for the event; `artifacts` are files that an earlier run left."""
        file = self._prepared(workflow)
        shutil.rmtree(self.artifacts)
        self.artifacts.mkdir()
        for name, text in artifacts.items():
            (self.artifacts / name).parent.mkdir(parents=True)
            (self.artifacts / name).write_text(text)
        payload = self.folder / "event.json"
        payload.write_text(json.dumps(event))
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        temporary.chmod(0o1777)
        given = {
            "GITHUB_API_URL": api, "FAKE_ARTIFACTS": str(self.artifacts), "FAKE_CHECKOUT": str(self.checkout),
            "POINTDROP_HISTORY_GIT": str(self.branch),
            "TMPDIR": str(temporary), **environment,
        }  # fmt: skip
        command = [str(Path(sys.prefix) / "bin" / "act"), event_name, "-W", str(file), "-e", str(payload), "--json"]
        command += ["-C", str(self.checkout), "--pull=false", "--no-cache-server", "--use-gitignore=false"]
        command += ["--concurrent-jobs", "1", "-s", f"GITHUB_TOKEN={TOKEN}", "--defaultbranch", "main"]
        command += [part for label in LABELS for part in ("-P", f"{label}=-self-hosted")]
        command += [part for name, value in given.items() for part in ("--env", f"{name}={value}")]
        command += [part for stub in self._stubs(file) for part in ("--local-repository", stub)]
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        done = subprocess.run(
            command,
            cwd=self.checkout,
            env={"PATH": f"{sys.prefix}/bin:{os.environ['PATH']}", "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=ACT_SECONDS,
            check=False,
        )
        return _read(done)

    def _prepared(self, workflow: str) -> Path:
        """The workflow; `queue: max`, which act does not know, is taken out of all of them."""
        for file in (self.checkout / ".github" / "workflows").glob("*.yml"):
            lines = file.read_text().splitlines(keepends=True)
            file.write_text("".join(line for line in lines if not line.strip().startswith("queue: max")))
        return self.checkout / ".github" / "workflows" / workflow

    def _stubs(self, file: Path) -> list[str]:
        """`URL@SHA=DIRECTORY` of every action that has a stand-in."""
        found: set[str] = set()
        for other in (self.checkout / ".github" / "workflows").glob("*.yml"):
            for job in yaml.safe_load(other.read_text())["jobs"].values():
                for step in job.get("steps", ()):
                    name, _, sha = step.get("uses", "").partition("@")
                    stub = ACTIONS / name.rpartition("/")[2]
                    if name.startswith("actions/") and stub.is_dir():
                        found.add(f"https://github.com/{name}@{sha}={stub}")
        return sorted(found)


def _job(line: Mapping[str, Any]) -> str:
    """The job's name without those of the workflows around it."""
    return str(line.get("job", "")).rpartition("/")[2].strip()


def _read(done: subprocess.CompletedProcess[str]) -> Ran:
    jobs: dict[str, str] = {}
    text, lines = [], []
    for raw in done.stdout.splitlines():
        try:
            line = json.loads(raw)
        except ValueError:
            text.append(raw)
            continue
        lines.append(line)
        text.append(f"[{line.get('job', '')}] {line.get('msg', '').rstrip()}")
        if line.get("jobResult"):
            jobs[_job(line)] = line["jobResult"]
    return Ran(done.returncode, jobs, "\n".join([*text, done.stderr]), lines)

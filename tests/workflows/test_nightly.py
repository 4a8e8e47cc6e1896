"""The nightly workflow as it is shipped, run by act: from what is new to a filed issue."""

from __future__ import annotations

import pytest

from tests.fake_github import FakeGitHub
from tests.workflows.acting import TOKEN, Ran, Workplace

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]

PLAN = """
name = "nightly"
title = "one release, one test"
servers = ["small", "medium"]

[[measure]]
dbms = "postgres"
lane = "instructions"
profile = "instructions"
tests = "local"
versions = ["{version}"]
blocks = 1
"""


def night(workplace: Workplace, github: FakeGitHub, version: str) -> Ran:
    """One scheduled run that wants `version`."""
    (workplace.checkout / "configs" / "plans" / "nightly.toml").write_text(PLAN.format(version=version))
    return workplace.act("nightly.yml", "schedule", {"schedule": "17 2 * * *"}, github.url)


def test_two_nights_end_in_one_issue_though_a_machine_fails(workplace: Workplace, github: FakeGitHub) -> None:
    """17.8 counts the characters of a text in another way than 17.7, which scans notice."""
    issues = github.state.repos["o/r"].issues
    workplace.measure_little()
    workplace.break_machine("medium")
    identity = github.state.tokens.pop(TOKEN)
    first = night(workplace, github, "17.7")
    assert first.steps("Benchmark postgres 17 on small")["Keep the results"] == "success", first.log[-4000:]
    assert first.steps("Benchmark postgres 17 on medium").get("Measure") == "failure", first.log[-4000:]
    assert "Confirm postgres on small" not in first.jobs, "one release is no change"
    published = first.steps("Append, detect, alert, draw")
    assert published["File"] == "failure" and published["Keep what was found and filed"] == "success"
    assert first.jobs["Append, detect, alert, draw"] == "failure", "somebody has to know"
    assert first.jobs["Deploy the site"] == "success", "a tracker that says no does not stop the site"
    assert issues == {}
    github.state.tokens[TOKEN] = identity

    second = night(workplace, github, "17.8")
    assert second.steps("Benchmark postgres 17 on medium").get("Measure") == "failure", second.log[-4000:]
    done = {name for name, result in second.jobs.items() if result == "success"}
    assert done == {
        "Discover what is new", "Look for suspects", "Confirm postgres on small", "Append, detect, alert, draw",
        "Deploy the site",
    }, second.log[-4000:]  # fmt: skip
    (issue,) = issues.values()
    assert issue.title.startswith("postgres 17.8: scan.range100 needs 4")
    assert issue.user == "github-actions[bot]" and "perf-regression" in issue.labels
    assert " on than up to 17.7. " in issue.body and "pg_mblen" in issue.body

"""The tracker an environment asks for: `github` when there is an account, else `files`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from alerts.settings import AlertSettings
from alerts.trackers import Tracker
from alerts.trackers.files import FilesTracker
from history.errors import BadSettings

TRACKERS = ("auto", "files", "github")


def tracker_for(name: str, environment: Mapping[str, str], issues: Path, settings: AlertSettings) -> Tracker:
    """`files` writes to `issues`; `auto` is `github` when GITHUB_REPOSITORY and a token or App are set."""
    if name not in TRACKERS:
        raise BadSettings(f"no tracker {name!r}; there are {', '.join(TRACKERS)}.")
    has_account = bool(environment.get("GITHUB_TOKEN") or environment.get("POINTDROP_APP_ID"))
    if name == "files" or (name == "auto" and not (has_account and environment.get("GITHUB_REPOSITORY"))):
        return FilesTracker(issues)
    # Only GitHub needs PyGithub, which takes a while to import.
    from alerts.trackers.access import account_from
    from alerts.trackers.github import GitHubTracker

    return GitHubTracker(account_from(environment, settings.github), settings.labels, settings.github)

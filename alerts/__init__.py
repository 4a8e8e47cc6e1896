"""Findings to GitHub issues and pull request comments.

`sync(store, tracker, settings)` brings a tracker in line with the newest detection, `preview` says what it would do.
See docs/alerts.md.
"""

from alerts.plan import plan_changes
from alerts.settings import AlertSettings, load_settings
from alerts.sync import SyncReport, preview, sync

"""Where things are: the state directory, the history and the committed configuration."""

from __future__ import annotations

import os
from pathlib import Path


def state_dir() -> Path:
    """POINTDROP_STATE, else `var` below the current directory."""
    return Path(os.environ.get("POINTDROP_STATE") or "var").resolve()


def history_url(option: str | None = None) -> str:
    """The history's SQLAlchemy URL: the option, else POINTDROP_HISTORY, else SQLite in the state directory."""
    return option or os.environ.get("POINTDROP_HISTORY") or f"sqlite:///{state_dir() / 'history.db'}"


def configs_dir() -> Path:
    """POINTDROP_CONFIGS, else `configs` below the current directory, else the one beside the packages."""
    named = os.environ.get("POINTDROP_CONFIGS")
    if named:
        return Path(named).resolve()
    local = Path.cwd() / "configs"
    return local if (local / "metrics.toml").is_file() else Path(__file__).resolve().parents[1] / "configs"

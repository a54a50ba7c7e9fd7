"""Locate the user's settings and caches, which are never in a workspace."""

from __future__ import annotations

import os
from pathlib import Path


def settings_folder() -> Path:
    """``RAGWORTH_CONFIG``, or the system's folder for user settings."""
    if named := os.environ.get("RAGWORTH_CONFIG"):
        return Path(named).expanduser().absolute()
    if os.name == "nt" and (roaming := os.environ.get("APPDATA")):
        return Path(roaming) / "ragworth"
    base = Path(os.environ.get("XDG_CONFIG_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".config") / "ragworth"


def cache_folder() -> Path:
    """Folder for files that can be rebuilt: ``RAGWORTH_CACHE``, or the user's cache folder."""
    if named := os.environ.get("RAGWORTH_CACHE"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ragworth"

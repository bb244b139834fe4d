"""Which code made a row, and on what machine."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import wrssl


def provenance() -> dict[str, str]:
    """The columns ``commit``, ``torch`` and ``machine``; nothing in them names this machine or its user."""
    import torch

    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    return {"commit": commit(), "torch": torch.__version__, "machine": machine}


def commit() -> str:
    """The commit of the source folder, with ``-dirty`` where files were changed, or the version of the package."""
    release = f"v{wrssl.__version__}"
    root = Path(wrssl.__file__).resolve().parents[2]
    if not (root / ".git").exists() or not (root / "src" / "wrssl").is_dir():
        return release  # installed; a repository further up would be somebody else's
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return release
    return done.stdout.strip() or release

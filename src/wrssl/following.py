"""Which process of a run this is, for those who must know it before anything large is imported."""

from __future__ import annotations

import os


def follows() -> bool:
    """Whether this process was started by another one of its run; the first one writes and talks."""
    return os.environ.get("LOCAL_RANK", "0") != "0" or os.environ.get("NODE_RANK", "0") != "0"

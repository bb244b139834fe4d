"""``wrssl bench``: what a step costs, as ratios that were measured in one run.

A ratio survives a slow or a busy machine, an absolute time does not. ``keys.py`` is the table of what is measured; a
new figure is one function and one line there.
"""

from __future__ import annotations

from wrssl.bench.report import run_bench

__all__ = ["run_bench"]

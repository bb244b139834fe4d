"""``wrssl bench``: what a step costs, as ratios that were measured in one run.

A ratio survives a slow or a busy machine, an absolute time does not. ``report.py`` has the table of what is measured; a
new figure is one function and one line there. Everything here uses public names of ``wrssl`` only.
"""

from __future__ import annotations

from typing import Annotated

import typer


def bench(
    only: Annotated[list[str] | None, typer.Option(help="A key to measure, repeatable; default all.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """What a step costs, as ratios measured in one run on this machine, in about nine minutes."""
    from wrssl_bench.report import run_bench  # imports torch

    run_bench(only or (), json_)

"""``wrssl bench``."""

from __future__ import annotations

from typing import Annotated

import typer

from wrssl.cli.app import app
from wrssl.cli.options import AsJson


@app.command()
def bench(
    only: Annotated[list[str] | None, typer.Option(help="A key to measure, repeatable; default all.")] = None,
    json_: AsJson = False,
) -> None:
    """What a step costs, as ratios measured in one run on this machine, in about nine minutes."""
    from wrssl.bench import run_bench

    run_bench(only or (), json_)

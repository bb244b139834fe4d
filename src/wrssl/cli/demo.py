"""``wrssl demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wrssl.cli.app import app


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="A new folder for the picture and the table.")] = None,
    seed: Annotated[int, typer.Option(help="Every random number follows from it.")] = 0,
) -> None:
    """Contaminated digits and moons, no download: a table, a picture and a report, in about a minute."""
    from wrssl.demo import run_demo

    run_demo(out, seed)

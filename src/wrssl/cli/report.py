"""``wrssl report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wrssl.cli.app import app


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A finished run.")],
    out: Annotated[Path | None, typer.Option(help="A new HTML file; default report.html in the run directory.")] = None,
) -> None:
    """Write report.html again, from what the run directory holds."""
    from wrssl.api import OptionError
    from wrssl.training.page import write_page
    from wrssl.training.rundir import REPORT
    from wrssl.training.stored import load_page

    if out is not None and out.exists():
        raise OptionError(f"{out} exists already; choose another name for the report.")
    target = run / REPORT if out is None else out
    write_page(load_page(run), target)
    typer.echo(f"report: {target}")

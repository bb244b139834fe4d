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
    from wrssl.evaluate.report import render
    from wrssl.training.page import write_html
    from wrssl.training.rundir import REPORT
    from wrssl.training.stored import damage_named, load_page

    if out is not None and out.exists():
        raise OptionError(f"{out} exists already; choose another name for the report.")
    target = run / REPORT if out is None else out
    with damage_named(run):
        html = render(load_page(run))
    write_html(html, target)
    typer.echo(f"report: {target}")

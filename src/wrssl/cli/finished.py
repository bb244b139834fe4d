"""``wrssl predict`` and ``wrssl report``: what can be done with a finished run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wrssl.cli.app import app
from wrssl.cli.options import AsJson, Plugin, print_json
from wrssl.errors import OptionError


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A finished run on own images.")],
    path: Annotated[list[Path], typer.Argument(help="Images, or folders of images.")],
    out: Annotated[Path | None, typer.Option(help="A new CSV file; default standard output.")] = None,
    plugin: Plugin = None,
    json_: AsJson = False,
) -> None:
    """Label, confidence, ood_score and verdict of new images, as CSV."""
    import wrssl

    if out is not None and out.exists():
        raise OptionError(f"{out} exists already; choose another name for the table.")
    table, skipped = wrssl.load(run).judge_files(path)
    for name, reason in skipped:
        typer.echo(f"skipped: {name}: {reason}", err=True)
    if json_:
        print_json({"rows": table.to_dict("records"), "skipped": [list(pair) for pair in skipped]})
    else:
        table.to_csv(sys.stdout if out is None else out, index=False)


@app.command()
def report(
    run: Annotated[Path, typer.Argument(help="A finished run.")],
    out: Annotated[Path | None, typer.Option(help="A new HTML file; default report.html in the run directory.")] = None,
) -> None:
    """Write report.html again, from what the run directory holds."""
    from wrssl.runs import REPORT, damage_named, load_page, write_page

    if out is not None and out.exists():
        raise OptionError(f"{out} exists already; choose another name for the report.")
    target = run / REPORT if out is None else out
    with damage_named(run):
        write_page(load_page(run), target)
    typer.echo(f"report: {target}")

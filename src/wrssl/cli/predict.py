"""``wrssl predict``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from wrssl.cli import options as given
from wrssl.cli.app import app


@app.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A finished run on own images.")],
    path: Annotated[list[Path], typer.Argument(help="Images, or folders of images.")],
    out: Annotated[Path | None, typer.Option(help="A new CSV file; default standard output.")] = None,
    json_: given.AsJson = False,
) -> None:
    """Label, confidence, ood_score and verdict of images never seen, as CSV."""
    import wrssl
    from wrssl.api import OptionError
    from wrssl.training.newcomers import judge_files

    if out is not None and out.exists():
        raise OptionError(f"{out} exists already; choose another name for the table.")
    table, skipped = judge_files(wrssl.load(run), path)
    for name, reason in skipped:
        typer.echo(f"skipped: {name}: {reason}", err=True)
    if json_:
        given.print_json({"rows": table.to_dict("records"), "skipped": [list(pair) for pair in skipped]})
    else:
        table.to_csv(sys.stdout if out is None else out, index=False)

"""``wrssl audit``."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import typer

from wrssl.cli.app import app, stoppable
from wrssl.cli.options import AsJson, DataOptions, Plugin, print_json, takes
from wrssl.config import FitConfig, left_out


@app.command()
@takes(leave_out=left_out("audit"), data=("test",))
def audit(
    data: DataOptions,
    options: dict[str, Any],
    repeats: Annotated[int, typer.Option(help="Random splits of the labels; more give a narrower interval.")] = 5,
    plugin: Plugin = None,
    json_: AsJson = False,
) -> None:
    """Will this pool help or hurt? Trains without it, with it, and robustly with it, on several splits."""
    import wrssl

    if data.validation is None:  # labels that are held out by the audit itself need not be held out before
        data = dataclasses.replace(data, validation="0.0")
    scenario = data.read_for("audit", FitConfig(**options))
    with stoppable():
        found = wrssl.audit(scenario, **options, repeats=repeats)  # type: ignore[call-arg]  # its own option
    if json_:
        print_json(found.to_json())
        return
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    typer.echo(found.sentence)

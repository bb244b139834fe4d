"""``wrssl demo`` and ``wrssl methods``: what there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wrssl.cli.app import app
from wrssl.cli.options import SEED_HELP, Plugin


@app.command()
def demo(
    out: Annotated[Path | None, typer.Option(help="A new folder for the picture and the table.")] = None,
    seed: Annotated[int, typer.Option(help=SEED_HELP)] = 0,
) -> None:
    """Contaminated digits and moons, no download: a table, a picture and a report, in about a minute."""
    from wrssl.demo import run_demo

    run_demo(out, seed)


@app.command()
def methods(plugin: Plugin = None) -> None:
    """The base methods and the weightings, one line each."""
    from wrssl.registry import METHODS, WEIGHTINGS

    for title, registry in (("method", METHODS), ("weights", WEIGHTINGS)):
        typer.echo(f"--{title}")
        for name in registry.names():
            typer.echo(f"  {name:<12} {registry.get(name).summary}")

"""``wrssl methods``."""

from __future__ import annotations

import typer

from wrssl.cli.app import app


@app.command()
def methods() -> None:
    """The base methods and the weightings, one line each."""
    from wrssl.methods import METHODS
    from wrssl.weighting import WEIGHTINGS

    for title, registry in (("method", METHODS), ("weights", WEIGHTINGS)):
        typer.echo(f"--{title}")
        for name in registry.names():
            typer.echo(f"  {name:<12} {registry.get(name).summary}")

"""The command ``wrssl reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wrssl.cli import stoppable

if TYPE_CHECKING:
    from wrssl_reproduction.reproduce import Summary

NAMES = "fig2, fig4a, fig4b, fig4c, fig4d, fig5, fig6, table-k, table-svhn, table-cifar100, or all"


def reproduce(
    name: Annotated[str, typer.Argument(help=NAMES)],
    budget: Annotated[str, typer.Option(help="quick, reduced (what a CPU can do) or paper (its protocol)")] = "quick",
    seeds: Annotated[
        int | None, typer.Option(help="How many; default 1 for quick, 2 for reduced, 5 for paper.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes with one thread each; -1 is one per core.")] = -1,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default reproduce/NAME.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="Only cells on this data set, repeatable.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="With all: run this experiment, share rows with the others, repeatable.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Other than the budget's.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the data files.")] = None,
    backend: Annotated[str | None, typer.Option(help="dask: run the cells on a cluster, at --address.")] = None,
    address: Annotated[str | None, typer.Option(help="Of its scheduler, for example tcp://host:8786.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the cells and the predicted time only.")] = False,
) -> None:
    """Run a figure or table of the paper: results.csv, table.md, figure.png. The same command goes on or redraws."""
    from wrssl_reproduction.catalogue import get_experiments

    get_experiments(name, tuple(only or ()))  # a wrong name is an error before a folder is made of it
    folder = Path("reproduce") / name if out is None else out
    settings: dict[str, Any] = {
        "steps": steps, "datasets": tuple(dataset or ()), "only": tuple(only or ()),
        "data_dir": None if data_dir is None else str(data_dir),
    }  # fmt: skip
    if dry_run:
        from wrssl_reproduction.cost import forecast

        for line in forecast(name, budget, seeds, jobs, folder, **settings):
            typer.echo(line)
        return
    from wrssl_reproduction import reproduce as work
    from wrssl_reproduction.workers import cluster

    with stoppable(), cluster(backend, address) as where:
        summary = work.reproduce(name, budget, seeds, jobs if where is None else -1, folder, backend=where, **settings)
    _print(summary)
    if summary.failed:
        raise typer.Exit(1)


def _print(summary: Summary) -> None:
    there = summary.runs - len(summary.failed) - len(summary.skipped)
    typer.echo(f"{there} of {summary.runs} runs are there, {summary.new} of them new")
    for sentence, number in summary.reasons():
        typer.echo(f"skipped {number}: {sentence}")
    for sentence in dict.fromkeys(summary.failed.values()):
        typer.echo(f"failed: {sentence}", err=True)
    for name, folder in summary.folders.items():
        typer.echo(f"{name}: {folder / 'table.md'}")

"""Measure the chosen figures and print them: a table for people, or one flat JSON object."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from wrssl import __version__
from wrssl.api import OptionError
from wrssl.bench.effort import Effort
from wrssl.bench.keys import Key, known_keys
from wrssl.bench.timing import Figure
from wrssl.training.threads import threads

THREADS = 1  # the models are small, and a second thread would measure the scheduler


def run_bench(only: Sequence[str] = (), as_json: bool = False, effort: Effort | None = None) -> None:
    """Measure and print; progress goes to standard error, the result to standard output.

    Args:
        only: the keys to measure; none means all.
        as_json: one flat JSON object instead of the table.
        effort: how much work; default about nine minutes.
    """
    keys, start = choose(only), time.monotonic()
    with threads(THREADS):
        figures = {key.name: _measured(key, effort or Effort()) for key in keys}
    facts = {**environment(), "seconds": round(time.monotonic() - start, 1)}
    if as_json:
        print(json.dumps(facts | {name: as_dictionary(figure) for name, figure in figures.items()}, allow_nan=False))
    else:
        print_table(keys, figures, facts)


def choose(only: Sequence[str]) -> list[Key]:
    """The keys of these names, in the order of the table."""
    known = known_keys()
    for name in only:
        if name not in known:
            raise OptionError(f"There is nothing to measure under {name!r}; choose from {', '.join(known)}.")
    return [key for key in known.values() if not only or key.name in only]


def _measured(key: Key, effort: Effort) -> Figure:
    """The figure, with a line of progress whose second half comes when it is there."""
    start = time.monotonic()
    print(f"{key.name} … ", end="", file=sys.stderr, flush=True)
    figure = key.measure(effort)
    took = time.monotonic() - start
    print(f"{figure.median:.3f}, spread {figure.spread:.3f} ({took:.0f} s)", file=sys.stderr, flush=True)
    return figure


def environment() -> dict[str, Any]:
    """What the figures depend on, without a name of the machine or a path on it."""
    return {
        "wrssl": __version__,
        "torch": torch.__version__,
        "threads": THREADS,
        "cores": os.cpu_count() or 1,
        "machine": processor(),
    }


def processor(description: Path = Path("/proc/cpuinfo")) -> str:
    """The model of the processor."""
    if description.exists():
        for line in description.read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def as_dictionary(figure: Figure) -> dict[str, float]:
    """The figure for the JSON, with digits that mean something."""
    numbers = {"median": figure.median, "spread": figure.spread, **figure.details}
    return {name: float(f"{value:.5g}") if isinstance(value, float) else value for name, value in numbers.items()}


def print_table(keys: Sequence[Key], figures: dict[str, Figure], facts: dict[str, Any]) -> None:
    """One row per figure with its bound and whether it holds."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="ratios of medians, measured in turns; the spread is the interquartile range of the pairs")
    for name in ("key", "what"):
        table.add_column(name)
    for name in ("median", "spread", "bound", "holds"):
        table.add_column(name, justify="right", no_wrap=True)
    words = {True: "yes", False: "NO", None: ""}
    for key in keys:
        figure = figures[key.name]
        numbers = f"{figure.median:.3f}", f"{figure.spread:.3f}"
        table.add_row(key.name, key.says, *numbers, key.bound(), words[key.holds(figure)])
    console = Console()
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in facts.items()), highlight=False)

"""The table of what ``wrssl bench`` measures, and its output: a table for people, or one flat JSON object."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from wrssl import __version__
from wrssl.errors import OptionError
from wrssl.registry import WEIGHTINGS
from wrssl_bench.against_torch import help_seconds, import_over_torch, naive_over_ours, weighted_over_torch
from wrssl_bench.embedding import (
    can_be_embedded,
    over_onnxruntime,
    over_torch_best,
    over_torch_eager,
    whole_run,
    whole_run_again,
)
from wrssl_bench.pool_size import bytes_per_member, can_be_measured, step_memory, step_time
from wrssl_bench.steps import last_layer, rival, whole_network
from wrssl_bench.timing import Effort, Figure, torch_threads

THREADS = 1  # the models are small, and a second thread would measure the scheduler


def always() -> bool:
    """For a figure that needs nothing special."""
    return True


def there_is(weights: str) -> bool:
    """Whether a weighting of that name is registered."""
    return weights in WEIGHTINGS.names()


@dataclass(frozen=True)
class Key:
    """One figure.

    Attributes:
        name: its key in the JSON.
        measure: the function.
        says: what it is, for a reader of the table.
        at_most: the bound from above, where there is one.
        at_least: the bound from below, where there is one.
        possible: whether it can be measured here; where not, it is left out.
        needs: what is missing then.
    """

    name: str
    measure: Callable[[Effort], Figure]
    says: str
    at_most: float | None = None
    at_least: float | None = None
    possible: Callable[[], bool] = always
    needs: str = ""

    def bound(self) -> str:
        """The bound as text."""
        if self.at_most is not None:
            return f"≤ {self.at_most:g}"
        return "" if self.at_least is None else f"≥ {self.at_least:g}"

    def holds(self, figure: Figure) -> bool | None:
        """Whether the median is within the bound; None where there is no bound."""
        if self.at_most is not None:
            return figure.median <= self.at_most
        return None if self.at_least is None else figure.median >= self.at_least


def _rival(name: str, weights: str, bn: str, says: str) -> Key:
    return Key(
        name,
        partial(rival, weights=weights, bn=bn),
        says,
        possible=partial(there_is, weights),
        needs=f"the weighting {weights}",
    )


def _photos(name: str, measure: Callable[[Effort], Figure], says: str, **bound: float) -> Key:
    return Key(name, measure, says, possible=can_be_embedded, needs='pip install "wrssl[photos]"', **bound)


_TABLE = [
    Key("wr_over_base_vat", partial(last_layer, method="vat"), "step of wr-cluster + WBN over plain VAT", 1.10),
    Key("wr_over_base_pl", partial(last_layer, method="pl"), "the same over plain Pseudo-Label", 1.15),
    Key("wr_over_base_pi", partial(last_layer, method="pi"), "the same over the plain Π-Model", 1.15),
    Key("wr_over_base_mt", partial(last_layer, method="mt"), "the same over plain Mean Teacher", 1.15),
    Key(
        "wr_over_base_network",
        partial(whole_network, blocks=3, J=3, P=5, L=5),
        "whole network, J=3, P=5, L=5, over plain VAT",
        3.5,
    ),
    Key(
        "onestep_over_base_network",
        partial(whole_network, blocks=5, J=1, P=0, L=1),
        "whole network, J=1, P=0, L=1, over plain VAT",
        2.2,
    ),
    Key(
        "wr_over_base_network_L1",
        partial(whole_network, blocks=2, J=3, P=5, L=1),
        "whole network, J=3, P=5, L=1, over plain VAT",
    ),
    _rival("l2rw_over_base", "l2rw", "batch", "step of l2rw over plain VAT"),
    _rival("mwn_over_base", "mwn", "batch", "step of mwn over plain VAT"),
    _rival("ds3l_over_base", "ds3l", "batch", "step of ds3l over plain VAT"),
    _rival("wrdefault_over_base_vat", "wr", "weighted", "step of wr + WBN over plain VAT"),
    Key("wbn_over_bn", weighted_over_torch, "weighted over plain batch norm, forward and backward", 1.25),
    Key("step_time_1e7_over_1e4", step_time, "step with a pool of 10⁷ over one of 10⁴ members", 1.10),
    Key(
        "step_memory_1e7_over_1e4",
        step_memory,
        "growth of peak memory during 200 steps, 10⁷ over 10⁴ members",
        1.10,
        possible=can_be_measured,
        needs="Linux, which tells the memory of a process",
    ),
    Key(
        "bytes_per_member",
        bytes_per_member,
        "resident bytes per member beyond the data, at 10⁷ members",
        24.0,
        possible=can_be_measured,
        needs="Linux, which tells the memory of a process",
    ),
    Key("naive_over_ours_vat", naive_over_ours, "step of a plain PyTorch loop over the library's, VAT", at_least=2.0),
    Key("import_seconds_over_torch", import_over_torch, "import wrssl and a layer over import torch", 1.15),
    Key("help_seconds", help_seconds, "seconds of python -m wrssl --help", 0.5),
    _photos(
        "embed_over_onnxruntime", over_onnxruntime, "photographs per second, over ONNX Runtime alone", at_least=0.85
    ),
    _photos("embed_over_torch_eager", over_torch_eager, "the same over torch in batches of 16", at_least=3.0),
    _photos("embed_over_torch_best", over_torch_best, "the same over torch in its fastest batch"),
    _photos("photos_end_to_end_seconds", whole_run, "wrssl fit on folders of 2,000 photographs", at_most=60.0),
    _photos("photos_again_seconds", whole_run_again, "the same once more, with the rows in the cache", at_most=15.0),
]


def known_keys() -> dict[str, Key]:
    """Those that can be measured here, by name, in the order in which they are measured."""
    return {key.name: key for key in _TABLE if key.possible()}


def left_out() -> dict[str, str]:
    """Those that cannot, with what they need."""
    return {key.name: key.needs for key in _TABLE if not key.possible()}


def run_bench(only: Sequence[str] = (), as_json: bool = False, effort: Effort | None = None) -> None:
    """Measure and print; progress goes to standard error, the result to standard output.

    Args:
        only: the keys to measure; none means all.
        as_json: one flat JSON object instead of the table.
        effort: how much work; default about nine minutes.
    """
    keys, start = choose(only), time.monotonic()
    for name, needs in left_out().items() if not only else ():
        print(f"{name} is left out, it needs {needs}", file=sys.stderr, flush=True)
    with torch_threads(THREADS):
        figures = {key.name: _measured(key, effort or Effort()) for key in keys}
    facts = {**environment(), "seconds": round(time.monotonic() - start, 1)}
    if as_json:
        print(json.dumps(facts | {name: as_dictionary(figure) for name, figure in figures.items()}, allow_nan=False))
    else:
        print_table(keys, figures, facts)


def choose(only: Sequence[str]) -> list[Key]:
    """The keys of these names, in the order of the table."""
    known, missing = known_keys(), left_out()
    for name in only:
        if name in missing:
            raise OptionError(f"{name} cannot be measured here; it needs {missing[name]}.")
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

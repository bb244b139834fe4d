"""``--dry-run``: how many runs, what they need, how long they take; nothing is run and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wrssl.experiments.cost import cell_seconds, in_words, wall_seconds, workers
from wrssl.experiments.reproduce import prepare


def forecast(name: str, budget: str, seeds: int | None, jobs: int, out: Path, **settings: Any) -> Iterator[str]:
    """Lines for a person; the arguments are those of ``reproduce``.

    A run that several experiments share is counted where it is named first.
    """
    experiments, chosen, plan = prepare(name, budget, seeds, out, **settings)
    cells = dict(zip(plan.todo, plan.cells(), strict=True))
    yield chosen.note
    for experiment in experiments:
        wanted = [key for key, places in plan.places.items() if any(p.experiment is experiment for p in places)]
        mine = [cells[key] for key in wanted if key in cells and plan.places[key][0].experiment is experiment]
        skipped = sum(key in plan.skipped for key in wanted)
        left_out = sum(key in plan.left_out for key in wanted)
        there = sum(key not in cells and key not in plan.skipped for key in wanted) - left_out
        elsewhere = len(wanted) - len(mine) - skipped - there - left_out
        parts = [f"{len(wanted)} runs", f"{len(mine)} to make"]
        parts += [f"{there} there already"] if there else []
        parts += [f"{elsewhere} made for another experiment"] if elsewhere else []
        parts += [f"{left_out} left out"] if left_out else []
        parts += [f"{skipped} skipped for want of data"] if skipped else []
        yield f"{experiment.name}: {', '.join(parts)}; about {in_words(wall_seconds(mine, jobs))}"
    for sentence in dict.fromkeys(plan.skipped.values()):
        yield f"skipped: {sentence}"
    total = sum(map(cell_seconds, cells.values()))
    yield (
        f"in all {len(cells)} runs, about {in_words(wall_seconds(list(cells.values()), jobs))} with {workers(jobs)} "
        f"jobs on free cores ({in_words(total)} of one core); nothing was run"
    )

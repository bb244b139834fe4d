"""``reproduce``: run what is missing of an experiment, then write its table and its figure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wrssl.experiments.budget import Budget, get_budget
from wrssl.experiments.data import missing_data
from wrssl.experiments.display import Display
from wrssl.experiments.experiment import Experiment
from wrssl.experiments.outputs import write_outputs
from wrssl.experiments.parallel import Run, attempts
from wrssl.experiments.plan import Plan, folder_of, make_plan
from wrssl.experiments.provenance import provenance
from wrssl.experiments.registry import get_experiments
from wrssl.experiments.run import run_cell
from wrssl.experiments.storing import list_sentences, store

FAILED, SKIPPED = "failed.csv", "skipped.csv"


@dataclass(frozen=True)
class Summary:
    """What a call of ``reproduce`` did.

    Attributes:
        runs: how many runs the experiments want, without those that were left out.
        new: how many were made now.
        failed: a sentence for each that failed.
        skipped: a sentence for each whose data are not there.
        folders: where tables and figures are, by experiment.
    """

    runs: int
    new: int
    failed: dict[str, str]
    skipped: dict[str, str]
    folders: dict[str, Path]

    def reasons(self) -> list[tuple[str, int]]:
        """Why cells were skipped, each reason once with the number of cells."""
        return Counter(self.skipped.values()).most_common()


def prepare(
    name: str,
    budget: str = "quick",
    seeds: int | None = None,
    out: str | os.PathLike[str] = ".",
    *,
    steps: int | None = None,
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
    data_dir: str | None = None,
) -> tuple[list[Experiment], Budget, Plan]:
    """What ``reproduce`` would do; nothing is written."""
    experiments, chosen = get_experiments(name, only), get_budget(budget, seeds, steps)
    plan = make_plan(experiments, chosen, Path(out), lambda cell: missing_data(cell, data_dir), datasets, only)
    return experiments, chosen, plan


def reproduce(
    name: str,
    budget: str = "quick",
    seeds: int | None = None,
    jobs: int = 1,
    out: str | os.PathLike[str] = ".",
    *,
    steps: int | None = None,
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
    data_dir: str | None = None,
    backend: str | None = None,
    run: Run = run_cell,
) -> Summary:
    """Run an experiment of the paper, or all, and write results.csv, table.md and figure.png.

    Rows that are there are not made again, so the same call goes on where it stopped, and only draws when all is done.

    Args:
        name: a name of ``registry.NAMES``, or ``"all"``, which makes a folder per experiment.
        budget: ``"paper"``, ``"reduced"`` or ``"quick"``.
        seeds: how many; default the budget's.
        jobs: processes with one thread each; −1 for as many as there are cores.
        out: the folder of the results.
        steps: another number of steps than the budget's.
        datasets: only the cells on these data sets.
        only: with ``"all"``, make the runs of these experiments only; rows of the others are still shared.
        data_dir: where the data files are.
        backend: the name of a registered joblib backend.
        run: runs one cell.
    """
    experiments, chosen, plan = prepare(
        name, budget, seeds, out, steps=steps, datasets=datasets, only=only, data_dir=data_dir
    )  # fmt: skip
    folders = {each.name: folder_of(Path(out), each, len(experiments) == 1) for each in experiments}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    plan.settle_rows(chosen)
    cells, failed, facts = plan.cells(), dict[str, str](), provenance() if plan.todo else {}
    try:
        with Display(cells, jobs) as display:
            for attempt in attempts(cells, run, data_dir, jobs, backend):
                if attempt.outcome is None:
                    failed[attempt.cell.config_hash] = attempt.error
                else:
                    store(plan.places[attempt.cell.config_hash], attempt.outcome, chosen.name, facts)
                display.show(attempt)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"Stopped; what is done is kept in {out}, and the same command goes on.") from None
    for experiment in experiments:
        folder = folders[experiment.name]
        list_sentences(folder / FAILED, experiment, plan, failed)
        list_sentences(folder / SKIPPED, experiment, plan, plan.skipped)
        write_outputs(experiment, folder)
    return Summary(len(plan.places) - len(plan.left_out), len(cells) - len(failed), failed, plan.skipped, folders)

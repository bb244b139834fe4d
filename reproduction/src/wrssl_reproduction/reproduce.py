"""``reproduce``: run the cells of an experiment that have no row yet, then write its table and its figure."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from wrssl.runs import write_atomically
from wrssl_reproduction.cell import label_text
from wrssl_reproduction.experiment import Experiment
from wrssl_reproduction.plan import ENDINGS, Place, Plan, folder_of, prepare
from wrssl_reproduction.rows import RESULTS, append_row, make_row, provenance, set_aside
from wrssl_reproduction.run import Outcome, run_cell
from wrssl_reproduction.tables import write_outputs
from wrssl_reproduction.workers import Display, Run, attempts

FAILED, SKIPPED = "failed.csv", "skipped.csv"


@dataclass(frozen=True)
class Summary:
    """What a call of ``reproduce`` did.

    Attributes:
        runs: how many runs the experiments want, without those that were left out.
        new: how many were made now.
        failed: a sentence for each that failed.
        skipped: a sentence for each whose data are missing.
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

    Runs that have a row are not made again, so the same call continues where it stopped, and only draws when all are
    done.

    Args:
        name: a name of ``catalogue.NAMES``, or ``"all"``, which makes a folder per experiment.
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
        set_aside(folder / RESULTS)
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


def store(places: Iterable[Place], outcome: Outcome, budget: str, facts: Mapping[str, str]) -> None:
    """Give every experiment that wants this run its files and its row.

    Files come first: where there is a row, all files of its run exist.
    """
    for place in places:
        for kind in place.cell.keeps:
            target = place.kept(kind)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, partial(Path.write_bytes, data=outcome.files[ENDINGS[kind]]))
        append_row(place.results, make_row(place.experiment.name, place.cell, budget, {**outcome.measured, **facts}))


def list_sentences(path: Path, experiment: Experiment, plan: Plan, sentences: Mapping[str, str]) -> None:
    """Write one line per run of this experiment that has a sentence; no file where there is none."""
    mine = [
        (key, label_text(place.cell.labels), str(place.cell), sentence)
        for key, sentence in sentences.items()
        for place in plan.places[key]
        if place.experiment is experiment
    ]
    if not mine:
        path.unlink(missing_ok=True)
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("config_hash", "label", "cell", "reason"), *mine])

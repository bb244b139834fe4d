"""What is still to run: rows that exist are not made again, and equal runs of several experiments are made once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wrssl.errors import OptionError
from wrssl_reproduction.budget import Budget, get_budget
from wrssl_reproduction.catalogue import get_experiments
from wrssl_reproduction.cell import Cell, label_text, merged
from wrssl_reproduction.experiment import Experiment
from wrssl_reproduction.rows import RESULTS, again, append_row, read_rows, relabel
from wrssl_reproduction.run import missing_data

ENDINGS = {"weights": "weights.csv", "model": "safetensors"}
KEPT = "kept"  # the folder of the files that runs leave behind


@dataclass(frozen=True)
class Place:
    """An experiment that wants a run, and the folder of its results."""

    experiment: Experiment
    folder: Path
    cell: Cell

    @property
    def results(self) -> Path:
        """The file of its rows."""
        return self.folder / RESULTS

    def kept(self, kind: str) -> Path:
        """The path of a file that the run leaves behind."""
        return self.folder / KEPT / f"{self.cell.config_hash}.{ENDINGS[kind]}"


@dataclass
class Plan:
    """Runs by their hash.

    Attributes:
        places: of every run that is wanted.
        todo: the hashes of the runs to make, in order.
        copies: places whose row another experiment has already.
        moved: by results file and hash, the labels of rows that the catalogue shows elsewhere since they were made.
        skipped: a sentence for each run whose data are missing.
        left_out: the hashes of runs that only experiments want which are not to be run.
    """

    places: dict[str, list[Place]] = field(default_factory=dict)
    todo: list[str] = field(default_factory=list)
    copies: list[tuple[Place, dict[str, str]]] = field(default_factory=list)
    moved: dict[Path, dict[str, str]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def cells(self) -> list[Cell]:
        """The runs to make, each once, with all files that it has to leave behind."""
        return [merged(place.cell for place in self.places[key])[0] for key in self.todo]

    def note_move(self, place: Place, row: dict[str, str], budget: Budget) -> None:
        """A panel that was added later shows older rows too; rows of another budget have labels of their own."""
        label = label_text(place.cell.labels)
        if row["budget"] == budget.name and row["label"] != label:
            self.moved.setdefault(place.results, {})[row["config_hash"]] = label

    def settle_rows(self, budget: Budget) -> None:
        """Show rows where the catalogue has them now, and copy those that another experiment has."""
        for results, labels in self.moved.items():
            relabel(results, labels)
        for place, row in self.copies:
            append_row(place.results, again(row, place.experiment.name, place.cell, budget.name))


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
    """What ``reproduce`` with these arguments would do; nothing is written."""
    experiments, chosen = get_experiments(name, only), get_budget(budget, seeds, steps)
    plan = make_plan(experiments, chosen, Path(out), lambda cell: missing_data(cell, data_dir), datasets, only)
    return experiments, chosen, plan


def folder_of(out: Path, experiment: Experiment, alone: bool) -> Path:
    """``out`` itself for one experiment, a folder in it for each of several."""
    return out if alone else out / experiment.name


def make_plan(
    experiments: Sequence[Experiment],
    budget: Budget,
    out: Path,
    missing: Callable[[Cell], str | None],
    datasets: Sequence[str] = (),
    only: Sequence[str] = (),
) -> Plan:
    """Compare the runs that are wanted with the rows that exist.

    Args:
        experiments: which ones.
        budget: the numbers.
        out: the folder of all results.
        missing: a sentence where a cell's data are missing.
        datasets: only cells on these data sets; none means all.
        only: make runs of the experiments of these names only; none means all.
    """
    known_data = set(budget.settings)
    for name in datasets:
        if name not in known_data:
            raise OptionError(f"No experiment uses the data set {name!r}; choose from {', '.join(sorted(known_data))}.")
    plan, rows = Plan(), dict[Path, dict[str, dict[str, str]]]()
    for experiment in experiments:
        folder = folder_of(out, experiment, len(experiments) == 1)
        rows[folder] = {row["config_hash"]: row for row in read_rows(folder / RESULTS)}
        for cell in experiment.cells(budget):
            if not datasets or cell.dataset in datasets:
                plan.places.setdefault(cell.config_hash, []).append(Place(experiment, folder, cell))
    anywhere = {key: row for found in rows.values() for key, row in found.items()}
    answers: dict[tuple[str, str], str | None] = {}
    for key, places in plan.places.items():
        complete = all(place.kept(kind).is_file() for place in places for kind in place.cell.keeps)
        for place in places if key in anywhere else ():
            if key in rows[place.folder]:
                plan.note_move(place, rows[place.folder][key], budget)
            else:
                plan.copies.append((place, anywhere[key]))
        if key in anywhere and complete:
            continue
        if only and not any(place.experiment.name in only for place in places):
            plan.left_out += [] if key in anywhere else [key]
            continue
        cell = places[0].cell
        files = cell.dataset, cell.ood  # many cells need the same files, so each is looked for once
        if files not in answers:
            answers[files] = missing(cell)
        sentence = answers[files]
        if sentence is None:
            plan.todo.append(key)
        elif key not in anywhere:
            plan.skipped[key] = sentence
    plan.todo.sort(key=lambda key: _order(plan.places[key][0].cell))
    return plan


def _order(cell: Cell) -> tuple[object, ...]:
    """Seed by seed, so that an interrupted grid has whole seeds; cells with equal data one after the other."""
    return (
        cell.seed, cell.dataset, cell.ood, cell.mode, cell.ratio, cell.clean, cell.learns_validation,
        cell.n_validation or 0,
    )  # fmt: skip

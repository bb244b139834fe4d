"""What a grid writes while it runs: rows with their files, and lists of what failed or was skipped."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from wrssl.experiments.cell import label_text
from wrssl.experiments.columns import make_row
from wrssl.experiments.experiment import Experiment
from wrssl.experiments.plan import ENDINGS, Place, Plan
from wrssl.experiments.results import append_row
from wrssl.experiments.run import Outcome
from wrssl.training.files import write_atomically


def store(places: Iterable[Place], outcome: Outcome, budget: str, facts: Mapping[str, str]) -> None:
    """Give every experiment that wants this run its files and its row.

    Files come first: a row says that everything of its run is there.
    """
    for place in places:
        for kind in place.cell.keeps:
            target = place.kept(kind)
            target.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(target, partial(Path.write_bytes, data=outcome.files[ENDINGS[kind]]))
        append_row(place.results, make_row(place.experiment.name, place.cell, budget, {**outcome.measured, **facts}))


def list_sentences(path: Path, experiment: Experiment, plan: Plan, sentences: Mapping[str, str]) -> None:
    """One line per run of this experiment that has a sentence; no file where there is none."""
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

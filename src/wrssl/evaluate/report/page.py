"""What the template shows beyond the dictionary itself: sentences, charts, and tables in the order of reading."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from wrssl.evaluate.report.advice import ignores_pool
from wrssl.evaluate.report.answer import answer
from wrssl.evaluate.report.charts import Line, heat, histogram, lines, reliability_diagram
from wrssl.evaluate.report.packing import names_of, unpacked
from wrssl.evaluate.report.plain import short
from wrssl.evaluate.report.repeat import repeat
from wrssl.evaluate.report.tables import confusion, flat

FIRST = 48  # members that stand in the page before a script runs
PARTS = {"test": "test set", "validation": "validation set", "labeled": "labelled examples"}


def content(data: dict[str, Any]) -> dict[str, Any]:
    """Everything the template needs, by name."""
    return {
        "data": data,
        "answer": answer(data),
        "ignores_pool": ignores_pool(data),
        "charts": charts(data),
        "parts": PARTS,
        "confusion": confusion(data),
        "repeat": repeat(data["config"]),
        "settings": flat(data["config"], skip=("classes",)),
        "numbers": flat(data["metrics"]),
        "cell_of": {member: cell for cell, member in enumerate(data["shown"]["members"])},
        "first": first_members(data),
    }


def charts(data: dict[str, Any]) -> dict[str, Markup]:
    """The pictures, by name; an empty text where there is nothing to draw."""

    def curve(column: str, name: str, colour: int) -> Line:
        return Line(name, colour, [(row["step"], row.get(column)) for row in data["history"]])

    losses = [
        curve("labeled", "labelled", 1),
        *([] if ignores_pool(data) else [curve("unlabeled", "pool", 2)]),
        curve("val_loss", "validation", 3),
    ]
    return {
        "accuracy": lines(
            "Accuracy on the validation labels that choose the checkpoint",
            [curve("val_accuracy", "validation accuracy", 1)],
            data["metrics"].get("best_step"),
        ),
        "losses": lines("Losses", losses),
        "heat": heat("Weights of the pool over time", data["weight_history"]),
        "histogram": histogram("Weights of the pool at the end", data["pool"]["histogram"]),
        "reliability": reliability_diagram("Confidence and accuracy", data["judged"]["bins"]),
    }


def first_members(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of lowest weight, for a page without a script and for print."""
    members, shown = data["members"], data["shown"]["members"]
    columns = {
        name: unpacked(members[name]) for name in ("weight", "ood_score", "confidence", "verdict", "label", "cluster")
    }
    row_of = None if members["complete"] else {member: row for row, member in enumerate(sorted(shown))}
    names = names_of(members["ids"], members["count"])
    found = []
    for cell, member in enumerate(shown[:FIRST]):
        row = member if row_of is None else row_of[member]
        found.append(
            {"cell": cell, "id": short(names[row]), **{name: int(column[row]) for name, column in columns.items()}}
        )
    return found

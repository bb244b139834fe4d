"""From the dictionary of ``collect`` to the page: one file, no network, every text escaped."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from wrssl.errors import DataError
from wrssl.evaluate.report import text
from wrssl.evaluate.report.charts import Line, heat, histogram, lines, reliability_diagram
from wrssl.evaluate.report.collect import FORMAT
from wrssl.evaluate.report.excerpts import excerpt
from wrssl.evaluate.report.map_chart import map_chart, positions
from wrssl.evaluate.report.pool import names_of, script_json, unpacked
from wrssl.evaluate.report.repeat import repeat
from wrssl.evaluate.report.resemblance import ABSENT, FINE
from wrssl.evaluate.report.sentences import answer, ignores_pool

if TYPE_CHECKING:
    from jinja2 import Environment

LARGEST = 5_000_000  # bytes of a page
FIRST = 48  # members that stand in the page before a script runs
SCRIPTS = ("pool.js", "filter.js", "looks.js", "gallery.js", "export.js", "controls.js", "map.js")
PARTS = {"test": "test set", "validation": "validation set", "labeled": "labeled examples"}


def render(data: dict[str, Any]) -> str:
    """The page as text; ``data`` is what ``collect`` gave, or the same read back from JSON."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError("The stored report was made by another version of wrssl; make it again with: wrssl fit")
    data = {**ABSENT, **data}  # version 0.1.0 knew of no embedding
    style = _asset("style.css") + sheet_rules(data["sheet"])
    # One function around all of it, so that no name in it is one of the browser's.
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    template = _environment().get_template("page.html")
    # Nothing in the first two comes from the data but numbers and one data URI; the third is escaped.
    style_tag, script_tag = Markup(style), Markup(script)  # nosec B704
    escaped = script_json(for_script(data))
    embedded = Markup(escaped)  # nosec B704
    return template.render(
        **content(data), style=style_tag, script=script_tag, policy=policy(style, script), embedded=embedded
    )


def content(data: dict[str, Any]) -> dict[str, Any]:
    """What the template shows, by name."""
    return {
        "data": data,
        "answer": answer(data),
        "ignores_pool": ignores_pool(data),
        "charts": charts(data),
        "parts": PARTS,
        "confusion": confusion(data),
        "repeat": repeat(data["config"]),
        "settings": text.flat(data["config"], skip=("classes",)),
        "numbers": text.flat(data["metrics"]),
        "all_shown": len(data["shown"]["members"]) == data["pool"]["size"],
        "cell_of": {member: cell for cell, member in enumerate(data["shown"]["members"])},
        "first": first_members(data),
        "words": list(data["pool"]["verdicts"]),
        "look": "picture" if data["sheet"] else "text" if data["texts"] else None,
    }


def charts(data: dict[str, Any]) -> dict[str, Markup]:
    """The pictures, by name; an empty text where there is nothing to draw."""

    def curve(column: str, name: str, color: int) -> Line:
        return Line(name, color, [(row["step"], row.get(column)) for row in data["history"]])

    losses = [
        curve("labeled", "labeled", 1),
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
        "map": map_of(data),
    }


def map_of(data: dict[str, Any]) -> Markup:
    """The map, or an empty text where there is none."""
    if not data["map"]:
        return Markup("")
    words, verdict = list(data["pool"]["verdicts"]), unpacked(data["members"]["verdict"])
    return map_chart(data["map"], [words[verdict[row]] for row in rows_on_map(data)], labels_on_map(data))


def rows_on_map(data: dict[str, Any]) -> list[int]:
    """The row in the columns of each member on the map."""
    row_of = None if data["members"]["complete"] else _rows_of(data["shown"]["members"])
    return [member if row_of is None else row_of[member] for member in data["map"]["members"]]


def labels_on_map(data: dict[str, Any]) -> list[str]:
    """The class of each labeled example on the map."""
    codes = unpacked(data["labeled"]["label"])[: data["map"]["labels"]]
    return [data["classes"][code] for code in codes]


def confusion(data: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of the matrix, with a strength from 0 to 9 per field; None where there are too many classes."""
    matrix, names = data["judged"]["matrix"], data["classes"]
    if matrix is None:
        return None
    return [
        {
            "name": names[true],
            "recall": row[true] / sum(row) if sum(row) else None,
            "fields": [
                {
                    "number": number,
                    "kind": "hit" if predicted == true else "miss",
                    "strength": _strength(number, sum(row)),
                }
                for predicted, number in enumerate(row)
            ],
        }
        for true, row in enumerate(matrix)
    ]


def _strength(number: int, total: int) -> int:
    return 0 if number == 0 else min(9, 1 + int(9 * number / total))


def first_members(data: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of lowest weight, for a page without a script and for print."""
    members, shown = data["members"], data["shown"]["members"]
    columns = {
        name: unpacked(members[name]) for name in ("weight", "ood_score", "confidence", "verdict", "label", "cluster")
    }
    row_of = None if members["complete"] else _rows_of(shown)
    names = names_of(members["ids"], members["count"])
    found = []
    for cell, member in enumerate(shown[:FIRST]):
        row = member if row_of is None else row_of[member]
        numbers = {name: int(column[row]) for name, column in columns.items()}
        found.append({"cell": cell, "id": text.shortened(names[row]), "near": near(data, cell), **numbers})
    return found


def near(data: dict[str, Any], cell: int) -> list[dict[str, Any]]:
    """The labeled examples that are nearest to a member that is shown; none where the page does not know them."""
    found = data["neighbors"]
    if not found:
        return []
    part = slice(cell * found["number"], (cell + 1) * found["number"])
    labels = unpacked(data["labeled"]["label"])
    rows = zip(unpacked(found["place"])[part].tolist(), unpacked(found["cosine"])[part].tolist(), strict=True)
    return [
        {
            "name": data["classes"][labels[place]],
            "cosine": round(2 * cosine / FINE - 1, 2) + 0.0,  # −0 becomes 0
            "cell": len(data["shown"]["members"]) + place if place < data["labeled"]["pictured"] else None,
            "text": data["texts"]["labeled"][place] if data["texts"] and place < data["labeled"]["pictured"] else None,
        }
        for place, cosine in rows
    ]


def _rows_of(shown: list[int]) -> dict[int, int]:
    """For each member that is shown its row in the columns, where these hold no others."""
    return {member: row for row, member in enumerate(sorted(shown))}


def for_script(data: dict[str, Any]) -> dict[str, Any]:
    """The part of the dictionary that the script works on."""
    shown, members = data["shown"]["members"], data["members"]
    row_of = _rows_of(shown)
    return {
        "size": data["pool"]["size"],
        "keptAt": data["pool"]["kept_at"],
        "classes": data["classes"],
        "columns": data["sheet"]["columns"] if data["sheet"] else 0,
        "cells": [member if members["complete"] else row_of[member] for member in shown],
        "words": list(data["pool"]["verdicts"]),
        "texts": data["texts"],
        "labeled": data["labeled"],
        "neighbors": data["neighbors"],
        "map": map_for_script(data),
        "truth": data["pool"]["truth"] is not None,
        "members": members,
    }


def map_for_script(data: dict[str, Any]) -> dict[str, Any] | None:
    """Where which point is, members first; None without a map."""
    if not data["map"]:
        return None
    at = positions(data["map"])
    return {"rows": rows_on_map(data), "x": at.x.tolist(), "y": at.y.tolist()}


def policy(style: str, script: str) -> str:
    """What a browser may do with the page: this style, this script, images inside the file, and nothing else."""
    hashes = (
        base64.b64encode(hashlib.sha256(part.encode("utf-8")).digest()).decode("ascii") for part in (style, script)
    )
    return (
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
        "form-action 'none'"
    ).format(*hashes)


def sheet_rules(sheet: dict[str, Any] | None) -> str:
    """Where each picture lies on the sheet: a class per column and per line, in place of a style per picture."""
    if sheet is None:
        return ""
    if not re.fullmatch(r"data:image/(png|jpeg);base64,[A-Za-z0-9+/]+={0,2}", sheet["uri"]):
        raise DataError("The pictures of the stored report are damaged; make it again with: wrssl fit")
    columns, lines = int(sheet["columns"]), int(sheet["lines"])
    rules = [
        f".picture{{background-image:url({sheet['uri']});background-size:{100 * columns}% {100 * lines}%;"
        f"aspect-ratio:{int(sheet['width'])}/{int(sheet['height'])};"
        f"image-rendering:{'auto' if sheet.get('smooth') else 'pixelated'}}}"
    ]
    for axis, letter, number in (("x", "c", columns), ("y", "r", lines)):
        rules += [
            f".{letter}{k}{{background-position-{axis}:{100 * k / max(1, number - 1):.4f}%}}" for k in range(number)
        ]
    return "\n".join(rules) + "\n"


@lru_cache
def _asset(name: str) -> str:
    return resources.files("wrssl.evaluate.report").joinpath("assets").joinpath(name).read_text(encoding="utf-8")


@lru_cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        {name: getattr(text, name) for name in ("percent", "count", "number", "duration", "plural")}
        | {"excerpt": excerpt}
    )
    return environment

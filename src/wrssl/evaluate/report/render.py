"""From the dictionary of ``collect`` to the page: one file, no network, every text escaped."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from wrssl.api import DataError
from wrssl.evaluate.report import words
from wrssl.evaluate.report.collect import FORMAT
from wrssl.evaluate.report.packing import script_json
from wrssl.evaluate.report.page import content

if TYPE_CHECKING:
    from jinja2 import Environment

LARGEST = 5_000_000  # bytes of a page
SCRIPTS = ("pool.js", "filter.js", "gallery.js", "export.js", "controls.js")


def render(data: dict[str, Any]) -> str:
    """The page as text; ``data`` is what ``collect`` gave, or the same read back from JSON."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DataError("The stored report was made by another version of wrssl; make it again with: wrssl fit")
    style = _asset("style.css") + sheet_rules(data["sheet"])
    # One function around all of it, so that no name of ours meets one of the browser.
    script = "(() => {\n'use strict';\n" + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();\n"
    template = _environment().get_template("page.html")
    # Ours alone: nothing in the first two comes from the data but numbers and one data URI; the third is escaped.
    style_tag, script_tag = Markup(style), Markup(script)  # nosec B704
    escaped = script_json(for_script(data))
    embedded = Markup(escaped)  # nosec B704
    return template.render(
        **content(data), style=style_tag, script=script_tag, policy=policy(style, script), embedded=embedded
    )


def write(data: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the page to ``path``."""
    Path(path).write_text(render(data), encoding="utf-8", newline="\n")


def policy(style: str, script: str) -> str:
    """What a browser may do with the page: this style, this script, images inside the file, and nothing else."""
    hashes = (
        base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (style, script)
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
        f"aspect-ratio:{int(sheet['width'])}/{int(sheet['height'])}}}"
    ]
    for axis, letter, number in (("x", "c", columns), ("y", "r", lines)):
        rules += [
            f".{letter}{k}{{background-position-{axis}:{100 * k / max(1, number - 1):.4f}%}}" for k in range(number)
        ]
    return "\n".join(rules) + "\n"


def for_script(data: dict[str, Any]) -> dict[str, Any]:
    """The part of the dictionary that the script works on."""
    shown, members = data["shown"]["members"], data["members"]
    row_of = {member: row for row, member in enumerate(sorted(shown))}
    return {
        "size": data["pool"]["size"],
        "keptAt": data["pool"]["kept_at"],
        "classes": data["classes"],
        "columns": data["sheet"]["columns"] if data["sheet"] else 0,
        "cells": [member if members["complete"] else row_of[member] for member in shown] if data["sheet"] else [],
        "truth": data["pool"]["truth"] is not None,
        "members": members,
    }


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
        {name: getattr(words, name) for name in ("percent", "count", "number", "duration", "plural")}
    )
    return environment

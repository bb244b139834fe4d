"""The table of the options of a run, made of ``FitConfig`` where a page has the mark ``<!-- options of a run -->``.

The signatures of ``wrssl.fit`` and ``wrssl.audit`` are derived from ``FitConfig`` when they are imported, which the
reference, made without importing anything, cannot see.
"""

from __future__ import annotations

from typing import Any

MARK = "<!-- options of a run -->"


def table() -> str:
    """One row per option, in Markdown."""
    from wrssl.config import facts_of, options

    lines = ["| option | default | meaning |", "|---|---|---|"]
    for each in options():
        audit = "" if facts_of(each).audit else " Not in `audit`."
        lines.append(
            f"| `{each.name}` | `{each.default!r}` | {facts_of(each).help.replace('|', chr(92) + '|')}{audit} |"
        )
    return "\n".join(lines)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of every page."""
    return markdown.replace(MARK, table()) if MARK in markdown else markdown

"""The beginnings of texts, as long as their number allows."""

from __future__ import annotations

from collections.abc import Sequence

from wrssl.evaluate.report.pool import script_json
from wrssl.evaluate.report.text import as_text

LONGEST = 300  # characters
LENGTHS = (LONGEST, 200, 120, 60, 30)
BUDGET = 1_500_000  # characters as they stand in the page, where some signs are escaped


def excerpt(text: str, longest: int = LONGEST) -> str:
    """One line of at most so many characters; what was cut off is an ellipsis."""
    line = " ".join(as_text(text[: 4 * longest]).split())
    return line if len(line) <= longest and len(text) <= 4 * longest else f"{line[: longest - 1].rstrip()}…"


def excerpts(groups: Sequence[Sequence[str]]) -> list[list[str]]:
    """An excerpt of every text, all of the greatest length that keeps them within ``BUDGET``."""
    for length in LENGTHS:
        found = [[excerpt(text, length) for text in texts] for texts in groups]
        if len(script_json(found).encode("utf-8")) <= BUDGET:
            break
    return found

"""Numbers as a reader wants them."""

from __future__ import annotations

import math


def percent(share: float | None, digits: int = 1) -> str:
    """0.975 as ``97.5 %``, with a space that does not break; a dash where it is unknown."""
    return "–" if share is None else f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def count(number: int) -> str:
    """Thousands apart."""
    return f"{number:,}"


def number(value: float | None, digits: int = 2) -> str:
    """A fixed number of decimals; a dash where it is unknown."""
    return "–" if value is None else f"{value:.{digits}f}"


def plural(number_of: int, one: str, many: str | None = None) -> str:
    """``1 member``, ``2 members``."""
    return f"{count(number_of)} {one if number_of == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """Milliseconds, seconds or minutes, three digits."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min"


def wilson(share: float, rows: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share of ``rows`` trials (Wilson, 1927); unlike share ± 1.96 s it stays in [0, 1]."""
    centre = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    return max(0.0, centre - half), min(1.0, centre + half)

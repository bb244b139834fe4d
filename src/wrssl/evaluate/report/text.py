"""Values as a file can hold them, and texts and numbers as a reader wants them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LONGEST = 120  # characters of a text that is displayed only


def jsonable(value: Any) -> Any:
    """Numbers, texts, lists and dictionaries only; what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {as_text(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (bool, int)) or value is None else as_text(value)


def as_text(value: Any) -> str:
    """``str(value)``; bytes of a file name that are no characters are written as escapes, since UTF-8 has none."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def shortened(value: Any, longest: int = LONGEST) -> str:
    """A text of at most so many characters: a longer one loses its middle."""
    whole = as_text(value)
    if len(whole) <= longest:
        return whole
    end = (longest - 1) // 2
    return f"{whole[: longest - 1 - end]}…{whole[len(whole) - end :]}"


def thinned(rows: list[Any], most: int) -> list[Any]:
    """At most so many of the rows, evenly spread, the first and the last among them."""
    if len(rows) <= most:
        return rows
    return [rows[round(place * (len(rows) - 1) / (most - 1))] for place in range(most)]


def percent(share: float | None, digits: int = 1) -> str:
    """0.975 as ``97.5 %``, with a space that does not break; a dash where it is unknown."""
    return "–" if share is None else f"{100 * share:.{digits}f}\N{NO-BREAK SPACE}%"


def count(number: int) -> str:
    """With a comma between thousands."""
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


def flat(values: dict[str, Any], before: str = "", skip: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Names and values of a nested dictionary as texts, one row each."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            rows += flat(value, f"{before}{name}.")
        elif name not in skip:
            rows.append((f"{before}{name}", "–" if value in (None, {}, []) else _displayed(value)))
    return rows


def _displayed(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

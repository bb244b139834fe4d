"""Tables of the page: the confusion matrix with its colours, and dictionaries as rows."""

from __future__ import annotations

from typing import Any


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
                {"number": number, "kind": "hit" if said == true else "miss", "strength": _strength(number, sum(row))}
                for said, number in enumerate(row)
            ],
        }
        for true, row in enumerate(matrix)
    ]


def _strength(number: int, total: int) -> int:
    return 0 if number == 0 else min(9, 1 + int(9 * number / total))


def flat(values: dict[str, Any], before: str = "", skip: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Names and values of a nested dictionary, one row each."""
    rows: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict) and value:
            rows += flat(value, f"{before}{name}.")
        elif name not in skip:
            rows.append((f"{before}{name}", "–" if value in (None, {}, []) else _written(value)))
    return rows


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

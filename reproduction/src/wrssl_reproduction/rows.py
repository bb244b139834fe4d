"""results.csv: a row per run, its columns, and where it comes from.

Rows are appended one at a time, by several processes if need be, and an incomplete line is ignored. Rows that an older
revision of their weighting made go to ``superseded.csv`` beside it.
"""

from __future__ import annotations

import csv
import io
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import wrssl
from wrssl.errors import DataError
from wrssl.runs import write_atomically
from wrssl_reproduction.cell import Cell, is_superseded, label_text

RESULTS, SUPERSEDED = "results.csv", "superseded.csv"
SETTINGS = (
    "dataset", "ood", "ratio", "mode", "model", "method", "weights", "bn", "seed", "steps", "n_labels", "n_validation",
    "K", "J", "P", "L", "scope", "solver",
)  # fmt: skip
MEASURED = ("test_accuracy", "val_accuracy", "ood_auroc", "ood_fpr95", "weight_auroc", "seconds_per_step")
MORE_SETTINGS = ("clean", "learns_validation", "roles", "lr", "l1", "compat", "outer_loss")
MORE_MEASURED = ("mean_weight_id", "mean_weight_ood", "mean_seconds_per_step", "seconds")
COLUMNS = (
    "experiment", *SETTINGS, *MEASURED, "config_hash", "commit",
    *MORE_SETTINGS, *MORE_MEASURED, "budget", "label", "torch", "machine",
)  # fmt: skip
EXACT = ("ratio", "lr", "l1")  # settings, written as they are; measured numbers are rounded
DIGITS = 6


def make_row(experiment: str, cell: Cell, budget: str, measured: Mapping[str, Any]) -> dict[str, str]:
    """A row as text.

    Args:
        experiment: its name.
        cell: the run, and where it is shown.
        budget: its name.
        measured: the numbers of the run, and its ``provenance``.
    """
    row: dict[str, Any] = {name: getattr(cell, name) for name in (*SETTINGS, *MORE_SETTINGS)}
    row |= {"experiment": experiment, "budget": budget, "config_hash": cell.config_hash}
    row |= {"label": label_text(cell.labels), **measured}
    return {name: _text(name, row.get(name)) for name in COLUMNS}


def again(row: dict[str, str], experiment: str, cell: Cell, budget: str) -> dict[str, str]:
    """The row of the same run in another experiment."""
    return {**row, "experiment": experiment, "budget": budget, "label": label_text(cell.labels)}


def _text(name: str, value: Any) -> str:
    if value is None or value != value:  # NaN
        return ""
    if isinstance(value, float) and name not in EXACT:
        return f"{value:.{DIGITS}g}"
    return str(value)


def provenance() -> dict[str, str]:
    """The columns ``commit``, ``torch`` and ``machine``; they name neither this machine nor its user."""
    import torch

    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    return {"commit": commit(), "torch": torch.__version__, "machine": machine}


def commit() -> str:
    """The commit of the source folder, with ``-dirty`` where files were changed, or the version of the package."""
    release = f"v{wrssl.__version__}"
    root = Path(wrssl.__file__).resolve().parents[2]
    if not (root / ".git").exists() or not (root / "src" / "wrssl").is_dir():
        return release  # installed; a repository further up would be another project's
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return release
    return done.stdout.strip() or release


def read_rows(path: Path) -> list[dict[str, str]]:
    """The complete rows, each run once; none where there is no file."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        header = tuple(reader.fieldnames or ())
        if header and header != COLUMNS:
            raise DataError(f"{path} has other columns than rows have now; give another --out, or rename the file.")
        # A line that was cut short has too few fields (None); the run is then made again.
        found = [row for row in reader if None not in row.values() and None not in row]
    return list({row["config_hash"]: row for row in reversed(found)}.values())[::-1]


def append_row(path: Path, row: Mapping[str, str]) -> bool:
    """Add a row unless its run has one already; returns whether it was added.

    The file is locked meanwhile, and the line is written by one call, after the end of a line.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path):
        if row["config_hash"] in {known["config_hash"] for known in read_rows(path)}:
            return False
        with path.open("ab+") as file:
            end = file.seek(0, os.SEEK_END)
            before = _line(COLUMNS) if end == 0 else b""
            if end:
                file.seek(end - 1)
                before = b"" if file.read(1) == b"\n" else b"\n"
            file.write(before + _line([row[name] for name in COLUMNS]))
    return True


def relabel(path: Path, labels: Mapping[str, str]) -> None:
    """Give rows, by their ``config_hash``, other labels; everything else in them stays."""
    if not labels:
        return
    with _locked(path):
        _rewrite(path, [{**row, "label": labels.get(row["config_hash"], row["label"])} for row in read_rows(path)])


def set_aside(path: Path) -> None:
    """Move the rows that an older revision of their weighting made to ``superseded.csv`` in the same folder."""
    if not any(map(_is_old, read_rows(path))):
        return
    with _locked(path):
        rows = read_rows(path)
        for row in filter(_is_old, rows):
            append_row(path.with_name(SUPERSEDED), row)
        _rewrite(path, [row for row in rows if not _is_old(row)])


def _is_old(row: Mapping[str, str]) -> bool:
    return is_superseded(row["weights"], row["config_hash"])


def _rewrite(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    lines = [_line(COLUMNS), *(_line([row[name] for name in COLUMNS]) for row in rows)]
    write_atomically(path, partial(Path.write_bytes, data=b"".join(lines)))


def _line(values: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode("utf-8")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time is within this."""
    with path.with_name(f".{path.name}.lock").open("ab+") as file:
        try:
            import fcntl
        except ImportError:  # Windows
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
            try:
                yield
            finally:
                file.seek(0)
                msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]
            return
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file releases the lock

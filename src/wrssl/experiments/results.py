"""results.csv: rows are added one by one, by several processes if need be, and a torn line does no harm."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from wrssl.api import DataError
from wrssl.experiments.columns import COLUMNS
from wrssl.training.files import write_atomically

RESULTS = "results.csv"


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


def append_row(path: Path, row: dict[str, str]) -> bool:
    """Add a row unless its run is there already; says whether it was added.

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
        rows = [{**row, "label": labels.get(row["config_hash"], row["label"])} for row in read_rows(path)]
        lines = [_line(COLUMNS), *(_line([row[name] for name in COLUMNS]) for row in rows)]
        write_atomically(path, partial(Path.write_bytes, data=b"".join(lines)))


def _line(values: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode("utf-8")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Only one process at a time is in here."""
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
        yield  # closing the file gives the lock back

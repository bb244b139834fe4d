"""Which share of the lines of every file ran in the tests, from the data that ``make coverage`` left.

    .venv/bin/python tools/coverage_table.py docs/results/campaign/coverage.csv

Writes one row per file of the three packages, prints the share of all, and ends with an error below ``LEAST``. Files of
``wrssl`` are named within the package, so that they begin with their room, others with their package. Lines within
loops that numba compiles count as not run, since nothing can watch them there.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST = 90.0  # percent
SOURCES = {  # folder of a package, and where its files' names begin
    Path("src/wrssl"): Path("src/wrssl"),
    Path("reproduction/src/wrssl_reproduction"): Path("reproduction/src"),
    Path("benchmarks/src/wrssl_bench"): Path("benchmarks/src"),
}


def name_of(path: Path) -> str | None:
    """The name of a file, by its path in the project; None for files that belong to no package."""
    for package, start in SOURCES.items():
        if package in path.parents:
            return path.relative_to(start).as_posix()
    return None


def measured() -> dict[str, tuple[int, int]]:
    """Per file its statements, and how many of them ran."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(path)], check=True)
        files = json.loads(path.read_text())["files"]
    found = {}
    for file, content in files.items():
        path, numbers = Path(file), content["summary"]
        name = name_of(path.relative_to(Path.cwd()) if path.is_absolute() else path)
        if name is not None:
            found[name] = (numbers["num_statements"], numbers["covered_lines"])
    return found


def share(statements: int, ran: int) -> float:
    """In percent; a file without a statement has none that did not run."""
    return 100 * ran / statements if statements else 100.0


def main() -> None:
    """Write the table of what ``make coverage`` left."""
    files = measured()
    missing = {name_of(path) for package in SOURCES for path in package.rglob("*.py")} - set(files)
    if missing:
        sys.exit(f"no data for {min(map(str, missing))} and {len(missing) - 1} other files; run: make coverage")
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "statements", "ran", "percent"))
        for name, (statements, ran) in sorted(files.items()):
            writer.writerow((name, statements, ran, f"{share(statements, ran):.1f}"))
    statements, ran = (sum(numbers) for numbers in zip(*files.values(), strict=True))
    total = share(statements, ran)
    print(f"{ran} of {statements} lines ran: {total:.1f} %")
    if total < LEAST:
        sys.exit(f"{total:.1f} % of the lines ran, less than {LEAST:.0f} %")


if __name__ == "__main__":
    main()

"""The page of the campaign, made of the files that its programs wrote.

    .venv/bin/python benchmarks/programs/campaign_page.py

It reads kills.csv, soak.csv, properties.csv and coverage.csv in docs/results/campaign and writes README.md and soak.png
beside them. A part whose file is missing says so. A test compares the committed page with the committed files.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results" / "campaign"
SOURCES = [ROOT / "src" / "wrssl", ROOT / "reproduction" / "src", ROOT / "benchmarks" / "src"]
PAGE, PICTURE = "README.md", "soak.png"
OUTCOMES = ("identical", "lost", "corrupt")
Row = dict[str, str]


def rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """The first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *body]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def kills(found: list[Row]) -> str:
    counts = Counter(row["outcome"] for row in found)
    total = ", ".join(f"{counts[word]} {word}" for word in OUTCOMES)
    phases = list(dict.fromkeys(row["phase"] for row in found))
    by = Counter((row["weights"], row["phase"]) for row in found)
    same = Counter(row["weights"] for row in found if row["outcome"] == "identical")
    body = [
        [f"`{name}` on `{method}`", *(by[name, phase] for phase in phases), same[name]]
        for name, method in dict.fromkeys((row["weights"], row["method"]) for row in found)
    ]
    return f"**{len(found)} kills: {total}.**\n\n" + table(["run", *phases, "identical in the end"], body)


def growth(found: list[Row]) -> tuple[float, float, int]:
    """Most memory in the first tenth of the steps and after it, in bytes, and how many more handles were open."""
    steps = int(found[-1]["step"])
    early = [row for row in found if int(row["step"]) <= steps / 10]
    late = [row for row in found if int(row["step"]) > steps / 10]

    def most(part: list[Row], name: str) -> int:
        return max(int(row[name]) for row in part)

    more = most(late, "handles") - most(early, "handles")
    return most(early, "resident_bytes"), most(late, "resident_bytes"), more


def soak(found: list[Row]) -> str:
    before, after, more = growth(found)
    steps, seconds = int(found[-1]["step"]), float(found[-1]["seconds"])
    return (
        f"**{steps:,} steps, {1000 * seconds / steps:.1f} ms each: at most {before / 1e6:.1f} MB in the first tenth, "
        f"then at most {after / 1e6:.1f} MB ({100 * (after / before - 1):+.2f} %), {more:+d} open files.** "
        f"What grows is the history, a row per evaluation.\n\n![Memory over the steps]({PICTURE})"
    )


def properties(found: list[Row]) -> str:
    cases, failed = (sum(int(row[name]) for row in found) for name in ("cases", "failed"))
    files: dict[str, list[Row]] = defaultdict(list)
    for row in found:
        files[row["property"].partition("::")[0]].append(row)
    body = [
        [
            f"`{name}`", len(part), sum(int(row["cases"]) for row in part), sum(int(row["failed"]) for row in part),
            f"{sum(float(row['seconds']) for row in part):.0f}",
        ]
        for name, part in sorted(files.items())
    ]  # fmt: skip
    return f"**{len(found)} properties and tests, {cases:,} cases, {failed} failed.**\n\n" + table(
        ["file of tests/trust", "properties and tests", "cases", "failed", "seconds"], body
    )


def coverage(found: list[Row]) -> str:
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in found:
        room = row["file"].partition("/")[0] if "/" in row["file"] else "files beside the rooms"
        for place in (room, "all"):
            rooms[place] = [rooms[place][0] + int(row["statements"]), rooms[place][1] + int(row["ran"])]
    body = [
        [f"**{room}**" if room == "all" else room, lines, ran, f"{100 * ran / max(lines, 1):.1f}"]
        for room, (lines, ran) in sorted(rooms.items(), key=lambda item: (item[0] == "all", item[0]))
    ]
    lines, ran = rooms["all"]
    gone = [row["file"].partition("/")[0] for row in found if "/" in row["file"]]
    gone = sorted({f"`{room}`" for room in gone if not any((source / room).is_dir() for source in SOURCES)})
    older = f" Measured with an earlier version, which had the rooms {', '.join(gone)}." if gone else ""
    return f"**{100 * ran / lines:.1f} % of {lines:,} lines.**{older}\n\n" + table(["room", "lines", "ran", "%"], body)


PARTS = {
    "kills.csv": (
        "Killed and resumed",
        "Runs of `wrssl fit` on two moons, 60 steps with a state after every one, the fallback included for `wr`, "
        "killed (SIGKILL) at random moments of four phases and resumed until they end. Model, verdicts and "
        "settings must then be byte by byte those of a run that was not killed, metrics and history too, except for "
        "times. "
        "`.venv/bin/python benchmarks/programs/campaign_kills.py --out docs/results/campaign/kills.csv`",
        kills,
    ),
    "soak.csv": (
        "Very many steps",
        "One process, the default weighting, states stored on the way. "
        "`.venv/bin/python benchmarks/programs/soak.py --out docs/results/campaign/soak.csv`",
        soak,
    ),
    "properties.csv": (
        "Bad input and changed files",
        "Hypothesis draws the cases, ten times as many as in `make test` and new ones each time. "
        "The first command of `make campaign`.",
        properties,
    ),
    "coverage.csv": (
        "Lines that the tests run",
        "The whole suite without the files that only run the code of the documentation; a test checks that every test "
        "asserts something (tests/test_tests_assert.py). Loops that numba compiles count as not run. "
        "`make coverage`",
        coverage,
    ),
}


def page(folder: Path) -> str:
    """What the files in a folder say."""
    text = [
        "<!-- Written by `.venv/bin/python benchmarks/programs/campaign_page.py`; do not edit. -->",
        "# The campaign",
        "Tests that take too long for every change: `make campaign`, `make coverage` and `make mutants`, on two cores. "
        "[Mutants](mutants.md) have a page of their own.",
    ]
    for name, (title, words, told) in PARTS.items():
        found = rows(folder / name)
        text += [f"## {title}", words, told(found) if found else "Not run yet."]
    return "\n\n".join(text) + "\n"


def draw(found: list[Row], path: Path) -> None:
    """Memory over the steps, on an axis that begins at zero, so that growth looks as large as it is."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
    memory = [int(row["resident_bytes"]) / 1e6 for row in found]
    axis.plot([int(row["step"]) for row in found], memory, color="#33658a")
    axis.set(xlabel="step", ylabel="resident memory, MB", ylim=(0, 1.2 * max(memory)), xlim=(0, None))
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    (FOLDER / PAGE).write_text(page(FOLDER), encoding="utf-8")
    if found := rows(FOLDER / "soak.csv"):
        draw(found, FOLDER / PICTURE)


if __name__ == "__main__":
    main()

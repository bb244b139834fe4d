"""What each base method and each weighting costs, for the table and the pages in docs/methods/.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/programs/methods.py

A step of a method without weights is timed in turns with one of supervised training; a step of VAT with a weighting and
weighted batch norm in turns with one of plain VAT; batches of 100, LeNet, images of 28 x 28, one thread. The results go
to docs/results/methods/results.csv, the table into docs/methods/README.md, and each ratio into its page. A quick look
elsewhere: --blocks 2 --out results. One or two of them: --only NAME.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from wrssl.registry import METHODS, WEIGHTINGS
from wrssl_bench.report import environment
from wrssl_bench.steps import images, make_trainer, stepper
from wrssl_bench.timing import interleave, torch_threads

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "methods"
LENGTH, WARMUP = 10, 5  # steps per block: whole periods of L = 5


def pairs() -> Iterator[tuple[str, str, dict[str, str], dict[str, str]]]:
    """Kind, name, what is timed and what it is compared with."""
    for name in METHODS.names():
        if name != "supervised":
            yield "method", name, {"method": name}, {"method": "supervised"}
    for name in WEIGHTINGS.names():
        if name != "none":
            yield "weighting", name, {"weights": name}, {}


def measure(blocks: int, only: list[str] | None = None) -> pd.DataFrame:
    rows = []
    with torch_threads(1):
        for kind, name, timed, plain in pairs():
            if only and name not in only:
                continue
            a, b = (stepper(make_trainer(images(), **options)) for options in (timed, plain))
            figure = interleave(a, b, blocks, LENGTH, WARMUP).figure()
            rows.append({"kind": kind, "name": name, "ratio": figure.median, "spread": figure.spread})
            rows[-1] |= {**figure.details, **environment()}
            print(f"{kind} {name}: {figure.median:.2f}, spread {figure.spread:.2f}", flush=True)
    return pd.DataFrame(rows)


def write_pages(results: pd.DataFrame) -> None:
    """Put each ratio between the markers of its page, and all of them into the overview."""
    for name, ratio in zip(results["name"], results["ratio"], strict=True):
        _put(PAGES / f"{name}.md", "cost", ratio)
        _put(PAGES / "README.md", name, ratio)


def _put(page: Path, marker: str, ratio: float) -> None:
    text = page.read_text(encoding="utf-8")
    marked = re.sub(f"<!-- {marker} -->.*?<!-- end -->", f"<!-- {marker} -->{ratio:.2f}<!-- end -->", text)
    page.write_text(marked, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=12, help="pairs per ratio")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "methods", help="folder of results.csv")
    parser.add_argument("--only", nargs="+", help="these names; the rows of the others stay")
    given = parser.parse_args()
    found = measure(given.blocks, given.only)
    given.out.mkdir(parents=True, exist_ok=True)
    table = given.out / "results.csv"
    if given.only and table.is_file():
        before = pd.read_csv(table)
        found = pd.concat([before[~before["name"].isin(given.only)], found])
    found.to_csv(table, index=False, float_format="%.4f")
    if given.out == parser.get_default("out"):
        write_pages(found)

"""``wrssl demo``: what a contaminated pool does, and what weights can do about it, without a download.

Two parts: a table on real images (scikit-learn's digits, half of the pool being patches of photographs), and a picture
of decision boundaries on two moons. Every number is measured in this run.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from wrssl import progress
from wrssl.runs import claim, free_name, write_json

DIGIT_STEPS, MOON_STEPS = 250, 500
LABELS_ONLY, PLAIN, ROBUST = "supervised, labels only", "VAT", "wrssl's default (wr)"
# label: method, weights, batch-norm policy
DIGITS = {
    LABELS_ONLY: ("supervised", "none", "batch"),
    PLAIN: ("vat", "none", "batch"),
    "VAT, frozen batch norm": ("vat", "none", "frozen"),
    "VAT, the paper's weights": ("vat", "wr-cluster", "weighted"),
    ROBUST: ("vat", "wr", "weighted"),
    "VAT, perfect weights": ("vat", "oracle", "weighted"),
}
# label: model, weights, batch-norm policy
MOONS = {
    "SSL-BN: batch norm": ("mlp", "none", "batch"),
    "SSL-NBN: no batch norm": ("mlp-nobn", "none", "batch"),
    "SSL-FBN: frozen batch norm": ("mlp", "none", "frozen"),
    "wr: weights + weighted batch norm": ("mlp", "wr", "weighted"),
}


def run_demo(out: Path | None, seed: int) -> None:
    """Train everything, print the table, write table and picture into a new folder."""
    import wrssl

    folder = claim(out if out is not None else free_name("wrssl-demo"))
    started = time.monotonic()
    digits = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=seed)
    sizes = f"{len(digits.labeled[1])} labelled digits, a pool of {len(digits.unlabeled):,} images"
    print(f"{sizes} of which half are patches of photographs.", flush=True)
    rows = []
    for label, (method, weights, bn) in DIGITS.items():
        _say(f"training: {label}")
        result = wrssl.fit(digits, method=method, weights=weights, bn=bn, steps=DIGIT_STEPS, seed=seed, fallback=False)
        rows.append(_row(label, result))
        if label == ROBUST:
            _say("writing its report")
            report = result.report(folder / "report.html")
    _print_table(rows)
    accuracy = {row["run"]: row["test_accuracy"] for row in rows}
    print(_comment(accuracy[LABELS_ONLY], accuracy[PLAIN], accuracy[ROBUST]))
    write_json(folder / "table.json", rows)
    print(f"The default's run as a page, with every pool member: {report}")

    moons = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=seed)
    fitted = {}
    for label, (model, weights, bn) in MOONS.items():
        _say(f"training on two moons: {label}")
        fitted[label] = wrssl.fit(
            moons, model=model, method="vat", weights=weights, bn=bn, steps=MOON_STEPS, seed=seed, fallback=False
        )
    _say("")
    from wrssl.evaluate import draw_boundaries

    draw_boundaries(moons, fitted, folder / "moons.png")
    print(f"\nDecision boundaries on two moons with a faraway blob in the pool: {folder / 'moons.png'}")
    print(f"Done in {time.monotonic() - started:.0f} s. Next: wrssl fit --scenario digits --out RUN, or wrssl --help")


def _comment(supervised: float, plain: float, robust: float) -> str:
    """What the table says, in words that follow from its numbers."""
    verb = "hurt" if plain < supervised else "helped"
    said = f"The pool {verb} plain VAT by {100 * abs(plain - supervised):.1f} points against the labels alone."
    mended = 100 * (robust - plain)
    if mended > 0:
        return f"{said} Weights that know the patches change that by {mended:+.1f} points."
    return f"{said} Weights did not mend it here ({mended:+.1f} points)."


def _row(label: str, result: Any) -> dict[str, Any]:
    keys = ("test_accuracy", "val_accuracy", "last_val_accuracy", "mean_weight_id", "mean_weight_ood")
    return {"run": label, **{k: result.metrics[k] for k in keys}}


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Digits, 50 % photograph patches in the pool")
    table.add_column("run")
    for name in ("test accuracy", "weight of digits", "of patches"):
        table.add_column(name, justify="right")
    for row in rows:
        pool = row["run"] != LABELS_ONLY
        weights = [f"{row[k]:.2f}" if pool else "–" for k in ("mean_weight_id", "mean_weight_ood")]
        table.add_row(row["run"], f"{100 * row['test_accuracy']:.1f} %", *weights)
    _say("")
    Console().print(table)


def _say(text: str) -> None:
    """A line that the next one replaces on a terminal, a line of output elsewhere."""
    if progress.is_watched():
        print(f"\r\x1b[2K{text}", end="\n" if text else "", file=sys.stderr, flush=True)
    elif text:
        print(text, flush=True)

"""``wrssl demo``: what a contaminated pool does, and what weights can do about it, without a download.

Three parts: photographs of fruit through a pretrained embedding, where the extra ``demo`` is installed; a table for
images that are trained from scratch (scikit-learn's digits; half of the pool are patches of photographs); and a picture
of decision boundaries on two moons. Nothing is precomputed: every number is measured in this run.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wrssl import progress
from wrssl.errors import OptionError
from wrssl.runs import claim, free_name, write_json

if TYPE_CHECKING:
    from wrssl.runs import Result

PHOTO_STEPS, DIGIT_STEPS, MOON_STEPS = 200, 250, 500
LABELS_PER_CLASS = 5  # of the photographs
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
    """Train everything; print the table; write table, report and picture into a new folder.

    Args:
        out: the new folder; None chooses a free name in the current one.
        seed: of data and training.
    """
    folder = claim(out if out is not None else free_name("wrssl-demo"))
    started = time.monotonic()
    _photographs(folder, seed)
    _digits(folder, seed)
    _moons(folder, seed)
    print(f"Done in {time.monotonic() - started:.0f} s. Next: wrssl fit --scenario digits --out RUN, or wrssl --help")


def _photographs(folder: Path, seed: int) -> None:
    import wrssl
    from wrssl.demo_photos import packaged_photos, photo_task
    from wrssl.embedding import find_embedder

    try:
        photos = packaged_photos()
        find_embedder("lite0")
    except OptionError as error:
        print(f"Photographs are left out: {error}\n")
        return
    task = photo_task(photos, folder / "photographs", seed, LABELS_PER_CLASS)
    scenario = wrssl.Scenario(
        labeled=(task.labeled, [task.classes[k] for k in task.labels]),
        unlabeled=task.pool,
        test=(task.test, [task.classes[k] for k in task.test_labels]),
        is_ood=task.is_foreign,
        name="apples and pears",
    )
    print(
        f"{len(task.labels)} labeled photographs of {len(task.classes)} kinds of apples and pears, and a pool of "
        f"{len(task.pool)} of which half shows other fruit. They are seen through the pretrained network lite0.",
        flush=True,
    )
    alone = wrssl.fit(scenario, method="supervised", weights="none", steps=PHOTO_STEPS, seed=seed)
    robust = wrssl.fit(scenario, steps=PHOTO_STEPS, seed=seed)
    report = robust.report(folder / "photographs.html")
    for line in photo_lines(len(task.classes), alone.metrics, robust.metrics):
        print(line)
    print(f"The report, with a map of the pool: {report}\n")


def photo_lines(classes: int, alone: dict[str, Any], robust: dict[str, Any]) -> list[str]:
    """What was measured on the photographs, in sentences that follow from the metrics of the two runs."""
    chance, base, with_pool = (100 * value for value in (1 / classes, alone["test_accuracy"], robust["test_accuracy"]))
    found, lost = (100 * robust[name] for name in ("drop_rate_ood", "drop_rate_id"))
    return [
        f"Test accuracy: {base:.1f} % with the labels alone, {with_pool:.1f} % with the pool; guessing gives "
        f"{chance:.1f} %.",
        f"Other fruit is told from apples and pears with an AUROC of {robust['ood_auroc']:.3f}; dropped are "
        f"{found:.0f} % of what does not belong and {lost:.0f} % of what does.",
    ]


def _digits(folder: Path, seed: int) -> None:
    import wrssl

    digits = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=seed)
    sizes = f"{len(digits.labeled[1])} labeled digits, a pool of {len(digits.unlabeled):,} images"
    print(f"{sizes} of which half are patches of photographs.", flush=True)
    rows = []
    with progress.bar("digits", total=len(DIGITS)) as tick:
        for label, (method, weights, bn) in DIGITS.items():
            tick(0, title=f"training: {label}")
            result = wrssl.fit(
                digits, method=method, weights=weights, bn=bn, steps=DIGIT_STEPS, seed=seed, fallback=False,
                progress=False,
            )  # fmt: skip
            tick()
            rows.append(_row(label, result))
            if label == ROBUST:
                report = result.report(folder / "report.html")
    _print_table(rows)
    accuracy = {row["run"]: row["test_accuracy"] for row in rows}
    print(summary(accuracy[LABELS_ONLY], accuracy[PLAIN], accuracy[ROBUST]))
    write_json(folder / "table.json", rows)
    print(f"The report of the default's run, with every pool member: {report}")


def _moons(folder: Path, seed: int) -> None:
    import wrssl
    from wrssl.evaluate import draw_boundaries

    moons = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=seed)
    fitted = {}
    with progress.bar("two moons", total=len(MOONS)) as tick:
        for label, (model, weights, bn) in MOONS.items():
            tick(0, title=f"training on two moons: {label}")
            fitted[label] = wrssl.fit(
                moons, model=model, method="vat", weights=weights, bn=bn, steps=MOON_STEPS, seed=seed, fallback=False,
                progress=False,
            )  # fmt: skip
            tick()
    draw_boundaries(moons, fitted, folder / "moons.png")
    print(f"\nDecision boundaries on two moons with a faraway blob in the pool: {folder / 'moons.png'}")


def summary(supervised: float, plain: float, robust: float) -> str:
    """What the table shows, in sentences that follow from its test accuracies."""
    verb = "hurt" if plain < supervised else "helped"
    sentence = f"The pool {verb} plain VAT by {100 * abs(plain - supervised):.1f} points against the labels alone."
    change = 100 * (robust - plain)
    if change > 0:
        return f"{sentence} Weights that find the patches change that by {change:+.1f} points."
    return f"{sentence} Weights did not improve it here ({change:+.1f} points)."


def _row(label: str, result: Result) -> dict[str, Any]:
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
    Console().print(table)

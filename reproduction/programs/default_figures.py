"""The figures of ``default_tables.py``: it collects the accuracies in percent, indexed by seed, and this draws them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

# The colors of Okabe and Ito, which color-blind people can tell apart; the markers differ as well.
STYLES = {
    "none": ("plain", "#D55E00", "v"),
    "prior": ("prior", "#56B4E9", "s"),
    "wr": ("wr", "#0072B2", "o"),
    "oracle": ("oracle", "#E69F00", "D"),
    "clean": ("clean pool", "#009E73", "^"),
}
METHODS = {"vat": "VAT", "pl": "Pseudo-labels", "pi": "Π-model", "mt": "Mean teacher"}
GREY = "#555555"


def accuracy(values: Mapping[tuple[str, str, str], pd.Series], supervised: float, path: Path) -> None:
    """A panel per method, a group per pool, a point per weighting; values by method, pool and weighting."""
    picture = Figure(figsize=(9, 6.6), layout="constrained")
    panels = picture.subplots(2, 2, sharex=True, sharey=True)
    pools = list(dict.fromkeys(pool for _, pool, _ in values))
    for axes, (method, title) in zip(panels.flat, METHODS.items(), strict=True):
        for place in range(0, len(pools), 2):
            axes.axvspan(place - 0.5, place + 0.5, color="#f2f2f2", zorder=0)
        for number, (name, (text, color, marker)) in enumerate(STYLES.items()):
            found = [values[method, pool, name] for pool in pools]
            where = [place + 0.15 * (number - (len(STYLES) - 1) / 2) for place in range(len(pools))]
            means, spreads = [each.mean() for each in found], [each.std() for each in found]
            axes.errorbar(
                where, means, spreads, fmt=marker, color=color, label=text, markersize=6, capsize=2.5, elinewidth=1.4
            )  # fmt: skip
        _supervised(axes, supervised)
        axes.set_title(title)
        axes.set_xticks(range(len(pools)), pools)
        axes.tick_params(axis="x", length=0)
        axes.set_xlim(-0.5, len(pools) - 0.5)
    for axes in panels[:, 0]:
        axes.set_ylabel("test accuracy, %")
    picture.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    picture.savefig(path, dpi=130)


def ratios(values: Mapping[tuple[float, str], pd.Series], supervised: float, path: Path) -> None:
    """Lines with bands of one standard deviation, on the right without plain; values by ratio and weighting."""
    picture = Figure(figsize=(9, 4.6), layout="constrained")
    whole, part = picture.subplots(1, 2)
    places = sorted({ratio for ratio, _ in values})
    for name, style in STYLES.items():
        found = pd.DataFrame({ratio: values[ratio, name].agg(["mean", "std"]) for ratio in places}).T.dropna(how="all")
        _band(whole, found, *style)
        if name != "none":
            _band(part, found, *style)
    _supervised(whole, supervised)
    _supervised(part, float("nan"))
    whole.set(ylabel="test accuracy, %", title="Fashion-MNIST in the pool, VAT")
    part.set(title="the same, enlarged, without plain")
    for axes in (whole, part):
        axes.set_xlabel("foreign members of the pool, %")
        axes.set_xticks([100 * place for place in places])
    picture.legend(*whole.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    picture.savefig(path, dpi=130)


def _band(axes: Axes, found: pd.DataFrame, text: str, color: str, marker: str) -> None:
    """One weighting; ``found`` has a row per ratio."""
    x, mean, std = 100 * found.index.to_numpy(dtype=float), found["mean"], found["std"]
    axes.plot(x, mean, marker + "-", color=color, label=text, linewidth=1.8, markersize=6)
    axes.fill_between(x, mean - std, mean + std, color=color, alpha=0.13, linewidth=0)


def rivals(values: Mapping[str, pd.Series], expected: int, path: Path) -> None:
    """A bar per weighting, the best one on top; values by weighting."""
    found = pd.DataFrame({name: each.agg(["mean", "sem", "count"]) for name, each in values.items()}).T
    found = found[found["count"] > 0].sort_values("mean")
    picture = Figure(figsize=(9, 4.2), layout="constrained")
    axes = picture.subplots()
    colors = [STYLES["wr"][1] if name == "wr" else "#BBBBBB" for name in found.index]
    axes.barh(
        range(len(found)), found["mean"], xerr=found["sem"].fillna(0), color=colors, height=0.7, capsize=3,
        error_kw={"elinewidth": 1.4},
    )  # fmt: skip
    start = max(0, 10 * ((found["mean"].min() - 5) // 10)) if len(found) else 0
    for place, row in enumerate(found.itertuples()):
        missing = f" ({row.count:.0f} of {expected})" if row.count < expected else ""
        text, end = f"{row.mean:.1f}{missing}", row.mean + (row.sem if row.sem == row.sem else 0)
        axes.annotate(text, (end, place), xytext=(6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(found)), [STYLES[name][0] if name in STYLES else name for name in found.index])
    axes.set_xlim(start, 100)
    axes.xaxis.set_major_locator(MultipleLocator(5 if start >= 50 else 10))
    axes.set_xlabel(f"test accuracy, % (mean ± standard error over cells and seeds; the axis begins at {start:.0f})")
    _frame(axes)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    picture.savefig(path, dpi=130)


def _supervised(axes: Axes, value: float) -> None:
    """The line of the labels alone, where it is known."""
    if value == value:
        axes.axhline(value, color=GREY, linestyle="--", linewidth=1.2, label="supervised", zorder=1)
    axes.grid(axis="y", alpha=0.3)
    _frame(axes)


def _frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)

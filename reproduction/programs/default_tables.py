"""The tables and figures of the default, made of the rows that ``default_grid.py`` wrote.

    OMP_NUM_THREADS=1 .venv/bin/python reproduction/programs/default_tables.py

It reads docs/results/default/results.csv and writes README.md and the pictures beside it. A look at unfinished rows
elsewhere: --rows results.csv --out tables. Rows that are missing leave a dash, and no requirement counts
as met before all rows behind it are there.
"""

from __future__ import annotations

import argparse
import fcntl
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import default_figures
import pandas as pd
from default_grid import METHODS, POOLS, RIVALS, STAGES, Cell, shared
from default_grid import detection as short_runs

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "default"
FIELDS = list(Cell.__dataclass_fields__)
NAN, TINY = float("nan"), 1e-9
OLD_NAMES = {"false_drop": "drop_rate_id", "true_drop": "drop_rate_ood"}  # of the columns, in early files
DETECTION = (
    "ood_auroc", "ood_fpr95", "ood_aupr", "weight_auroc", "weight_fpr95", "weight_aupr", "intensity_auroc",
    "drop_rate_id", "drop_rate_ood", "mean_weight_id", "mean_weight_ood",
)  # fmt: skip
CANDIDATES = ("wr", "none", "supervised")  # the models that the fallback chooses from, in the order that decides ties
CHOICE = ("test_accuracy", "val_accuracy", "val_loss")
LABELS = {
    "none": "plain", "fallback": "wr with fallback", "clean": "clean pool", "learner": "supervised + validation labels",
    "vat": "VAT", "pl": "PL", "pi": "Pi", "mt": "MT", "wr:refine=false": "without refinement",
    "wr:admit=false": "without visits by weight", "wr:prior=false": "without prior",
    "wr:prior=false;refine=false": "without prior and refinement",
}  # fmt: skip
DIFFERENCES = (
    ("wr", "plain"),
    ("wr", "clean"),
    ("wr", "supervised"),
    ("fallback", "supervised"),
    ("fallback", "clean"),
)
REFINEMENT = (  # what it is worth, and against what
    ("with the prior", "wr", "wr:refine=false"),
    ("without it", "wr:prior=false", "wr:prior=false;refine=false"),
)
AUROC = {  # at least, by pool, with this many validation labels beside the hundred
    10_000: {"fashion": 0.99, "emnist": 0.95, "mean": 0.95},
    0: {"fashion": 0.98, "emnist": 0.90, "mean": 0.70},
}


def label(name: str) -> str:
    """How a weighting or a method is called in the tables."""
    return LABELS.get(name, name)


# ---------------------------------------------------------------------------------------------------------- the rows


@dataclass(frozen=True)
class Place:
    """A cell of the grid: everything but weighting and seed. ``seeds`` of them are expected."""

    ood: str
    ratio: float
    method: str
    model: str = "lenet"
    seeds: int = 3

    def __str__(self) -> str:
        norm = "" if self.model == "lenet" else f", {self.model}"
        return f"{self.ood} {self.ratio:.0%} {label(self.method)}{norm}".replace("%", " %")

    def cells(self, name: str) -> list[Cell]:
        """The runs behind a weighting, ``clean``, ``supervised``, ``learner`` or ``fallback``."""
        if name == "fallback":
            return [cell for each in CANDIDATES for cell in self.cells(each)]
        return [self._cell(name, seed) for seed in range(self.seeds)]

    def _cell(self, name: str, seed: int) -> Cell:
        if name in ("supervised", "learner"):
            learns = name == "learner"
            return shared(Cell("any", 0.5, "supervised", "none", seed, self.model, learns_validation=learns))
        weights = "none" if name == "clean" and self.ratio == 0 else name
        return shared(Cell(self.ood, self.ratio, self.method, weights, seed, self.model))


def core_place(ood: str, method: str) -> Place:
    """A pool at 50 %; Fashion with VAT has five seeds, being one of the ratios too."""
    return Place(ood, 0.5, method, seeds=5 if (ood, method) == ("fashion", "vat") else 3)


CORE = [core_place(ood, method) for method in METHODS for ood in POOLS]
RATIOS = [Place("fashion", ratio, "vat", seeds=5) for ratio in (0.0, 0.25, 0.5, 0.75)]
WITHOUT_NORM = [Place("mean", 0.5, method, "lenet-nobn", 5) for method in ("vat", "pl")]
RIVALRY = [Place(ood, 0.5, method) for method in ("pl", "vat") for ood in POOLS]
PAIRS = sum(place.seeds for place in RIVALRY)
EVERYWHERE = list(dict.fromkeys(CORE + RATIOS + WITHOUT_NORM))


class Rows:
    """The runs that are there; accuracies are in percent, and every answer is indexed by the seed."""

    def __init__(self, frame: pd.DataFrame) -> None:
        frame = frame.rename(columns=OLD_NAMES)
        self.frame = frame[frame["test_accuracy"].notna()]
        self.found: dict[Cell, dict[str, Any]] = {}
        for row in self.frame.to_dict("records"):
            learns = str(row["learns_validation"]) == "True"
            self.found.setdefault(Cell(**{name: row[name] for name in FIELDS} | {"learns_validation": learns}), row)

    def column(self, place: Place, name: str, column: str) -> pd.Series:
        """One column of the rows of a weighting, without the empty ones."""
        there = {cell.seed: self.found[cell].get(column) for cell in place.cells(name) if cell in self.found}
        return pd.Series(there, dtype=float).dropna()

    def accuracy(self, place: Place, name: str) -> pd.Series:
        """On the test set, in percent."""
        if name == "fallback":
            return self.fallback(place)["accuracy"]
        return 100 * self.column(place, name, "test_accuracy")

    def fallback(self, place: Place) -> pd.DataFrame:
        """What ``fit(fallback=True)`` returns: by validation accuracy, then loss, then order."""
        picked: dict[int, dict[str, Any]] = {}
        looks = {name: [self.column(place, name, column) for column in CHOICE] for name in CANDIDATES}
        for seed in range(place.seeds):
            if all(seed in column for columns in looks.values() for column in columns):
                found = {name: [column[seed] for column in columns] for name, columns in looks.items()}
                best = max(CANDIDATES, key=lambda name: (found[name][1], -found[name][2]))
                picked[seed] = {"chosen": best, "accuracy": 100 * found[best][0]}
        return pd.DataFrame.from_dict(picked, orient="index", columns=["chosen", "accuracy"])

    def count(self, cells: Iterable[Cell], *columns: str) -> tuple[int, int]:
        """How many of these runs are there, with a number in each of these columns, and how many should be."""
        wanted = set(cells)
        got = [self.found[cell] for cell in wanted if cell in self.found]
        return sum(all(pd.notna(row.get(column)) for column in columns) for row in got), len(wanted)


def read(path: Path) -> Rows:
    """The rows of a file that may still grow; a commit such as 7861e16 is no number."""
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        return Rows(pd.read_csv(file, dtype={"commit": str, "torch": str, "machine": str}))


# -------------------------------------------------------------------------------------------------------- statistics


class Difference(NamedTuple):
    """A mean over ``n`` pairs and its standard error; NaN where there are too few."""

    mean: float
    error: float
    n: int

    def __str__(self) -> str:
        return with_spread(self.mean, self.error, sign="+")


def together(*series: pd.Series) -> pd.DataFrame:
    """The seeds that all of them have, one column each."""
    return pd.concat([each.rename(number) for number, each in enumerate(series)], axis=1, join="inner")


def paired(a: pd.Series, b: pd.Series) -> Difference:
    """``a − b`` over the common seeds."""
    both = together(a, b)
    apart = both[0] - both[1]
    return Difference(float(apart.mean()), float(apart.sem()), len(apart))


def gap(plain: pd.Series, clean: pd.Series, other: pd.Series) -> float:
    """How much of ``clean − plain`` the other one recovers, in percent; NaN where that is below two points."""
    low, high, got = together(plain, clean, other).mean()
    return float(100 * (got - low) / (high - low)) if high - low >= 2 - TINY else NAN


def utilization(supervised: pd.Series, plain: pd.Series, other: pd.Series) -> float:
    """How much of what a clean pool gives over the labels alone is kept, in percent."""
    low, high, got = together(supervised, plain, other).mean()
    return float(100 * (got - low) / (high - low)) if high != low else NAN


def gap_at(rows: Rows, place: Place, name: str) -> float:
    """The gap recovered in a cell."""
    return gap(*(rows.accuracy(place, each) for each in ("none", "clean", name)))


def margin_at(rows: Rows, place: Place, name: str, against: str) -> Difference:
    """The paired difference of two weightings in a cell."""
    return paired(rows.accuracy(place, name), rows.accuracy(place, against))


def over_rivalry(rows: Rows, name: str, method: str | None = None) -> pd.Series:
    """The accuracies of a weighting in every cell in which the rivals ran, indexed by cell and seed."""
    places = [place for place in RIVALRY if method in (place.method, None)]
    found = {(str(place), seed): value for place in places for seed, value in rows.accuracy(place, name).items()}
    return pd.Series(found, dtype=float)


def detection(rows: Rows, ood: str, column: str) -> pd.Series:
    """Of ``wr`` at 50 %, all seeds and methods."""
    return pd.concat([rows.column(core_place(ood, method), "wr", column) for method in METHODS])


# ------------------------------------------------------------------------------------------------ what must hold


@dataclass(frozen=True)
class Claim:
    """A requirement, what was measured, and how many of the rows behind it are there."""

    text: str
    measured: str
    holds: bool
    have: int
    need: int

    @property
    def verdict(self) -> str:
        """In words."""
        if self.have < self.need:
            return f"not enough rows yet ({self.have} of {self.need})"
        return "holds" if self.holds else "**does not hold**"


def runs(places: Iterable[Place], *names: str) -> list[Cell]:
    """The runs behind these weightings in these cells."""
    return [cell for place in places for name in names for cell in place.cells(name)]


def claims_vat(rows: Rows) -> Iterator[Claim]:
    """1: Fashion with VAT."""
    for ratio, least in ((0.5, 95), (0.25, 90), (0.75, 90)):
        place = Place("fashion", ratio, "vat", seeds=5)
        found, cost = gap_at(rows, place, "wr"), margin_at(rows, place, "clean", "none")
        text = f"1. {place}, 5 seeds: wr recovers at least {least} % of the gap"
        words = f"{number(found, 1)} % of {cost} points"
        if cost.mean < 2 - TINY:
            words = f"not defined: clean − plain is only {cost} points"
        yield Claim(text, words, found >= least, *rows.count(runs([place], "none", "clean", "wr")))
    place = Place("fashion", 0.5, "vat", seeds=5)
    more, mean = margin_at(rows, place, "wr", "none"), rows.accuracy(place, "wr").mean()
    text = f"1. {place}, 5 seeds: wr at least 10 points above plain"
    yield Claim(text, f"{more} points", more.mean >= 10 - TINY, *rows.count(runs([place], "none", "wr")))
    text = f"1. {place}, 5 seeds: accuracy of wr at least 96 %"
    yield Claim(text, f"{number(mean)} %", mean >= 96 - TINY, *rows.count(runs([place], "wr")))


def shortfall(rows: Rows, place: Place, name: str) -> float:
    """``wr − max(plain, clean) + 0.5 + SE``, the error being that of the paired difference; negative is too low."""
    both = together(*(rows.accuracy(place, each) for each in (name, "none", "clean")))
    better = 1 if both[1].mean() >= both[2].mean() else 2
    found = paired(both[0], both[better])
    return found.mean + 0.5 + found.error


def claims_core(rows: Rows) -> Iterator[Claim]:
    """2: every pool and every base method at 50 %, as a user has it (with fallback) and without the fallback."""
    for name in ("wr", "fallback"):
        count, called = rows.count(runs(CORE, "none", "clean", name)), label(name)
        gaps = {place: gap_at(rows, place, name) for place in CORE}
        gaps = {place: value for place, value in gaps.items() if not isnan(value)}
        mean = fmean(gaps.values()) if gaps else NAN
        where = f"the {len(gaps)} core cells in which a clean pool is worth 2 points"
        text = f"2. core cells with clean ≥ plain + 2: {called} recovers at least 80 % of the gap on their mean"
        yield Claim(text, f"{number(mean, 1)} % over {where}", mean >= 80, *count)
        worst = min(gaps, key=gaps.__getitem__, default=None)
        text = f"2. core cells with clean ≥ plain + 2: {called} recovers at least 50 % of the gap in each"
        words = "no cell to judge" if worst is None else f"least {number(gaps[worst], 1)} % ({worst})"
        yield Claim(text, words, worst is not None and gaps[worst] >= 50, *count)
        rest = {place: shortfall(rows, place, name) for place in CORE if place not in gaps}
        rest = {place: value for place, value in rest.items() if not isnan(value)}
        text = f"2. all other core cells: {called} ≥ max(plain, clean) − 0.5 − one standard error"
        yield Claim(text, least_of(rest, "points to spare"), all(value >= -TINY for value in rest.values()), *count)


def claims_safety(rows: Rows) -> Iterator[Claim]:
    """3: never worse than the labels alone, and nothing lost on a clean pool."""
    spare = {}
    for place in EVERYWHERE:
        found = margin_at(rows, place, "fallback", "supervised")
        spare[place] = found.mean + found.error
    spare = {place: value for place, value in spare.items() if not isnan(value)}
    text = "3. no cell in which wr with fallback is below supervised by more than one standard error"
    holds = all(value >= -TINY for value in spare.values())
    yield Claim(text, least_of(spare, "points to spare"), holds, *rows.count(runs(EVERYWHERE, "fallback"), *CHOICE))
    place = RATIOS[0]
    used = utilization(*(rows.accuracy(place, name) for name in ("supervised", "none", "wr")))
    text = f"3. {place}: wr keeps at least 95 % of what the pool gives"
    count = rows.count(runs([place], "supervised", "none", "wr"))
    yield Claim(text, f"{number(used, 1)} %", used >= 95, *count)


def least_of(values: dict[Place, float], what: str) -> str:
    """The cell that comes closest to failing."""
    if not values:
        return "no cell to judge"
    worst = min(values, key=values.__getitem__)
    failing = sum(value < -TINY for value in values.values())
    return f"{failing} of {len(values)} cells fail; least {values[worst]:+.2f} {what} ({worst})"


def claims_detection(rows: Rows) -> Iterator[Claim]:
    """4: foreign members are found, and own ones are kept."""
    for validation, bounds in AUROC.items():
        where = "" if validation else ", 100 labels and no validation set"
        for ood, least in bounds.items():
            found, count = detected(rows, ood, validation, "ood_auroc")
            text = f"4. {ood} 50 %{where}, 5 seeds: ood_auroc at least {least}"
            yield Claim(text, number(found, 4), found >= least, *count)
        for ood in POOLS:
            found, count = detected(rows, ood, validation, "drop_rate_id")
            text = f"4. {ood} 50 %{where}, 5 seeds: at most 0.05 + 0.02 of the own members dropped"
            yield Claim(text, number(found, 4), found <= 0.07 + TINY, *count)


def detected(rows: Rows, ood: str, validation: int, column: str) -> tuple[float, tuple[int, int]]:
    """The mean of a column over the short runs of a pool, and how many of them are there."""
    cells = [shared(cell) for cell in short_runs(validation) if cell.ood == ood]
    found = [rows.found[cell].get(column) for cell in cells if cell in rows.found]
    return float(pd.Series(found, dtype=float).mean()), rows.count(cells, column)


def claims_rivals(rows: Rows) -> Iterator[Claim]:
    """5: better than every other weighting."""
    for name in ("none", "prior", *RIVALS):
        more = paired(over_rivalry(rows, "wr"), over_rivalry(rows, name))
        text = f"5. wr without fallback better than {label(name)} on the mean over {len(RIVALRY)} cells"
        yield Claim(text, f"{more} points", more.mean > 0, *rows.count(runs(RIVALRY, "wr", name)))


CLAIMS = (claims_vat, claims_core, claims_safety, claims_detection, claims_rivals)


# ---------------------------------------------------------------------------------------------------------- markdown


def number(value: float, digits: int = 2) -> str:
    """Rounded; a dash for what is not there."""
    return "–" if isnan(value) else f"{value:.{digits}f}"


def with_spread(mean: float, spread: float, digits: int = 2, sign: str = "") -> str:
    """Mean ± spread, as much of it as is known."""
    if isnan(mean):
        return "–"
    return f"{mean:{sign}.{digits}f}" + ("" if isnan(spread) else f" ± {spread:.{digits}f}")


def remark(have: int, expected: int) -> str:
    """That rows are missing, where they are."""
    return f" ({have} of {expected})" if 0 < have < expected else ""


def summary(values: pd.Series, expected: int, digits: int = 2) -> str:
    """Mean ± standard deviation."""
    return with_spread(values.mean(), values.std(), digits) + remark(len(values), expected)


def mean_only(values: pd.Series, expected: int) -> str:
    """The mean without its spread."""
    return number(values.mean()) + remark(len(values), expected)


def margin(rows: Rows, place: Place, name: str, against: str) -> str:
    """The paired difference of two weightings in a cell."""
    found = margin_at(rows, place, name, against)
    return str(found) + remark(found.n, place.seeds)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """In Markdown, the first column to the left."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *lines])


def accuracy_table(rows: Rows, places: Iterable[Place], names: Sequence[str]) -> str:
    """Mean ± standard deviation per cell and weighting."""
    lines = [
        [str(place), *(summary(rows.accuracy(place, name), place.seeds) for name in names)] for place in places
    ]  # fmt: skip
    return table(["cell", *map(label, names)], lines)


def gap_table(rows: Rows, places: Sequence[Place]) -> str:
    """The gap recovered, and its mean over the cells that have one."""
    names = ("prior", "wr", "fallback", "oracle")
    found = {place: [gap_at(rows, place, name) for name in names] for place in places}
    lines = [
        [str(place), margin(rows, place, "clean", "none"), *(number(value, 1) for value in gaps)]
        for place, gaps in found.items()
    ]
    gaps = pd.DataFrame(found.values(), columns=list(names), dtype=float)
    means = [number(gaps[name].mean(), 1) + f" ({gaps[name].count()} cells)" for name in names]
    lines.append(["**mean of the cells with a gap**", "", *means])
    return table(["cell", "clean − plain", *(f"{label(name)}, %" for name in names)], lines)


def fallback_table(rows: Rows) -> str:
    """How often each model was chosen."""
    lines, total = [], dict.fromkeys(CANDIDATES, 0)
    for place in EVERYWHERE:
        found = rows.fallback(place)
        chosen = {name: int((found["chosen"] == name).sum()) for name in CANDIDATES}
        total = {name: total[name] + chosen[name] for name in CANDIDATES}
        gain = margin(rows, place, "fallback", "wr")
        lines.append([str(place), *map(str, chosen.values()), f"{len(found)} of {place.seeds}", gain])
    seeds = sum(place.seeds for place in EVERYWHERE)
    lines.append(["**all**", *map(str, total.values()), f"{sum(total.values())} of {seeds}", ""])
    return table(["cell", *map(label, CANDIDATES), "seeds", "gain over wr"], lines)


def safety_table(rows: Rows) -> str:
    """Paired differences to supervised training."""
    columns = [(name, against) for against in ("supervised", "learner") for name in ("none", "wr", "fallback")]
    lines = [[str(place), *(margin(rows, place, *column) for column in columns)] for place in EVERYWHERE]
    words = {"supervised": "against labels", "learner": "against labels + val."}
    return table(["cell", *(f"{label(name)} {words[against]}" for name, against in columns)], lines)


def detection_table(rows: Rows) -> str:
    """How well ``wr`` tells own from foreign members."""
    expected = {ood: sum(core_place(ood, method).seeds for method in METHODS) for ood in POOLS}
    lines = [
        [f"`{name}`", *(summary(detection(rows, ood, name), expected[ood], 3) for ood in POOLS)] for name in DETECTION
    ]  # fmt: skip
    return table(["", *POOLS], lines)


def comparison_tables(rows: Rows, names: Sequence[str]) -> str:
    """Every cell in which the rivals ran, and the differences over all of them; ``wr`` is the last name."""
    lines = [[str(p), *(mean_only(rows.accuracy(p, name), p.seeds) for name in names)] for p in RIVALRY]
    lines.append(["**mean**", *(mean_only(over_rivalry(rows, name), PAIRS) for name in names)])
    cells = table(["cell", *map(label, names)], lines)
    ours, lines = over_rivalry(rows, "wr"), []
    for name in names[:-1]:
        theirs = over_rivalry(rows, name)
        more = paired(ours, theirs)
        ahead = int((together(ours, theirs).diff(axis=1)[1] < 0).sum())
        lines.append([label(name), str(more) + remark(more.n, PAIRS), f"{ahead} of {more.n}"])
    return cells + "\n\n" + table(["", "wr − this one", "wr ahead in"], lines)


def stage_tables(rows: Rows) -> str:
    """The stages, and what the refinement is worth with a prior and where there is none."""
    lines = []
    for method in ("pl", "vat", None):
        expected = sum(place.seeds for place in RIVALRY if method in (place.method, None))
        for words, one, other in REFINEMENT:
            more = paired(over_rivalry(rows, one, method), over_rivalry(rows, other, method))
            lines.append([label(method) if method else "**both**", words, str(more) + remark(more.n, expected)])
    worth = table(["method", "", "with refinement − without, points"], lines)
    return comparison_tables(rows, ("prior", *STAGES, "wr")) + "\n\n" + worth


def without_norm_tables(rows: Rows) -> str:
    """Mean images without batch norm, and whether they help."""
    lines, answers = [], []
    for place in WITHOUT_NORM:
        more = Place(place.ood, 0.0, place.method, place.model, place.seeds)
        names = ("supervised", "none", "prior", "wr", "fallback", "oracle", "clean")
        plain = rows.accuracy(place, "none")
        found = [rows.accuracy(place, name) for name in names] + [rows.accuracy(more, "none")]
        lines.append([label(place.method), *(summary(values, place.seeds) for values in found)])
        help_ = margin_at(rows, place, "none", "clean")
        instead = paired(plain, rows.accuracy(more, "none"))
        answers.append([label(place.method), str(help_), str(instead), str(help_.n), helps(help_, place.seeds)])
    head = ["method", *map(label, names), "plain, own rows in their place"]
    question = ["method", "plain − clean", "plain − own rows in their place", "pairs", "does the strange pool help?"]
    return table(head, lines) + "\n\n" + table(question, answers)


def helps(found: Difference, expected: int) -> str:
    """An answer where the difference is more than two standard errors."""
    if found.n < expected:
        return f"not enough rows yet ({found.n} of {expected} pairs)"
    if abs(found.mean) <= 2 * found.error:
        return "cannot be told: less than two standard errors"
    return "yes" if found.mean > 0 else "no, it harms"


def swapped_table(rows: Rows) -> str:
    """The same cells where clothes are the own images; ``rows`` are those of digits and not looked at."""
    path = FOLDER / "swapped.csv"
    if not path.exists():
        return "Not run yet."
    places = [replace(place, seeds=1) for place in RIVALRY]
    names = ("supervised", "none", "prior", "wr", "fallback", "clean")
    return accuracy_table(read(path), places, names)


def elsewhere_table(rows: Rows) -> str:
    """Small tables and two moons; ``rows`` are those of digits and not looked at."""
    path = FOLDER / "elsewhere.csv"
    return small_tables(pd.read_csv(path)) if path.exists() else "Not run yet."


def small_tables(found: pd.DataFrame) -> str:
    """One line per table, kind of foreign rows and base method; below, how `wr` compares on all of them."""
    names = ("supervised", "plain", "wr", "fallback", "clean")
    grouped = found.groupby(["table", "foreign", "method"], sort=False)
    lines = [
        [f"{where} {label(method)}, {kind}"]
        + [summary(100 * group.set_index("seed")[name], len(group)) for name in names]
        + [number(float(group["ood_auroc"].mean()), 3)]
        for (where, kind, method), group in grouped
    ]
    differences = []
    for name, other in DIFFERENCES:
        d = 100 * (found[name] - found[other])
        worse = f"{int((d < -2).sum())} of {len(d)}"
        differences.append([f"{label(name)} − {label(other)}", with_spread(d.mean(), d.sem(), sign="+"), worse])
    head = ["case", *map(label, names), "`ood_auroc`"]
    return "\n\n".join([table(head, lines), table(["", "points", "more than 2 points below"], differences)])


def claim_table(rows: Rows) -> str:
    """One line per requirement."""
    lines = [[claim.text, claim.measured, claim.verdict] for claims in CLAIMS for claim in claims(rows)]
    return table(["requirement", "measured", "verdict"], lines).replace("---: | ---:", "--- | ---")


def ratio_tables(rows: Rows) -> str:
    """Accuracy and gap at every ratio, and what is left of the use of a clean pool."""
    names = ("supervised", "none", "prior", "wr", "fallback", "oracle", "clean")
    low, high = (rows.accuracy(RATIOS[0], name) for name in ("supervised", "none"))
    used = {name: utilization(low, high, rows.accuracy(RATIOS[0], name)) for name in ("prior", "wr", "fallback")}
    words = ", ".join(f"{label(name)} {number(value, 1)} %" for name, value in used.items())
    sentence = f"Utilization at ratio 0, (accuracy − supervised)/(plain − supervised): {words}."
    return "\n\n".join([accuracy_table(rows, RATIOS, names), gap_table(rows, RATIOS), sentence])


SECTIONS: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "What must hold": (
        "`wr` stands for the rows as they are, without fallback, unless it says otherwise. A requirement is judged "
        "only when all of its rows exist; until then its number is that of the rows so far.",
        claim_table,
    ),
    "Accuracy at 50 %": (
        "Test accuracy in percent, mean ± standard deviation over the seeds. `clean pool` is plain with the foreign "
        "rows removed by hand, `oracle` knows which rows are foreign."
        "\n\n![Accuracy per method and pool](accuracy.png)",
        lambda rows: accuracy_table(
            rows, CORE, ("supervised", "none", "prior", "wr", "fallback", "oracle", "clean", "learner")
        ),
    ),
    "Gap recovered": (
        "(accuracy − plain)/(clean − plain) in percent, of the means over the common seeds, where clean − plain is at "
        "least 2 points; clean − plain ± its paired standard error.",
        lambda rows: gap_table(rows, CORE),
    ),
    "Other ratios": ("Fashion with VAT, five seeds.\n\n![Accuracy over the ratio](ratios.png)", ratio_tables),
    "What the fallback chose": (
        "Per seed the model with the highest validation accuracy, ties by the lowest validation loss, then in the "
        "order of the columns; only seeds of which all three rows exist.",
        fallback_table,
    ),
    "Safety margin": (
        "Accuracy minus that of supervised training, in points: mean over the seeds ± standard error. Supervised with "
        "validation labels learns half of them and chooses its checkpoint by the other half.",
        safety_table,
    ),
    "Detection": (
        "`wr` at 50 %, mean ± standard deviation over seeds and methods. `ood_*` take foreign members as the "
        "positives, `weight_*` own ones. `intensity_auroc` is a control: the mean brightness alone.",
        detection_table,
    ),
    "Rivals": (
        "Mean test accuracy at 50 % over seeds 0–2; below, paired differences over cells and seeds ± standard error."
        "\n\n![Overall mean per weighting](rivals.png)",
        lambda rows: comparison_tables(rows, ("none", *RIVALS, "prior", "wr")),
    ),
    "Stages": (
        "The same cells with a stage of `wr` switched off: its prior (all weights begin at 1), the refinement by the "
        "validation loss, or visits in proportion to weights; without the last two it is `prior`. Without prior and "
        "refinement all weights are 1, with weighted batch norm. The fallback has a table of its own above.",
        stage_tables,
    ),
    "Clothes as own images": (
        "MNIST and Fashion-MNIST are exchanged, so `fashion` stands for digits here, `mean` for means of two "
        "pieces of clothing; seed 0. Nothing was chosen on these data. `swapped.csv`",
        swapped_table,
    ),
    "Small tables": (
        "scikit-learn's digits and breast cancer, and two moons, an MLP with 600 steps, five labels per class, seeds "
        "0–2 (`default_elsewhere.py`). The foreign half is made of the own rows. The results with rows far away led to "
        "the units of the prior and to the rule for batch statistics, those on two moons to the width of a kernel; "
        "nothing was chosen on the others. "
        "`elsewhere.csv`",
        elsewhere_table,
    ),
    "Mean images without batch norm": (
        "50 % mean images, `lenet-nobn`, five seeds; differences are paired, ± standard error.",
        without_norm_tables,
    ),
}


def header(rows: Rows, arguments: Sequence[str]) -> str:
    """By which command, and of which rows."""
    command = " ".join([".venv/bin/python reproduction/programs/default_tables.py", *arguments])
    again = len(rows.frame) - len(rows.found)
    twice = f" ({again} of them repetitions, of which the first counts)" if again else ""
    facts = [f"{len(rows.frame)} rows{twice}"]
    for name in ("commit", "machine", "torch"):
        facts.append(f"{name}: " + (", ".join(f"`{v}`" for v in sorted(rows.frame[name].dropna().unique())) or "–"))
    lines = [f"<!-- Written by `{command}`; do not edit. -->", "# The default: tables and figures", ""]
    return "\n".join([*lines, *(f"* {fact}" for fact in facts)])


def page(rows: Rows, arguments: Sequence[str] = ()) -> str:
    """The whole README."""
    parts = [header(rows, arguments)]
    for title, (words, make) in SECTIONS.items():
        parts += [f"## {title}", words, make(rows)]
    return "\n\n".join(parts) + "\n"


def draw(rows: Rows, folder: Path) -> None:
    """All figures."""
    names = ("none", "prior", "wr", "oracle", "clean")
    supervised = rows.accuracy(RATIOS[0], "supervised").mean()
    core = {(p.method, p.ood, name): rows.accuracy(p, name) for p, name in product(CORE, names)}
    default_figures.accuracy(core, supervised, folder / "accuracy.png")
    ratios = {(p.ratio, name): rows.accuracy(p, name) for p, name in product(RATIOS, names)}
    default_figures.ratios(ratios, supervised, folder / "ratios.png")
    rivals = {name: over_rivalry(rows, name) for name in ("none", *RIVALS, "prior", "wr")}
    default_figures.rivals(rivals, PAIRS, folder / "rivals.png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the rows, write the page and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=Path, default=FOLDER / "results.csv")
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = parser.parse_args(given)
    if not options.rows.exists():
        parser.error(f"{options.rows} does not exist; reproduction/programs/default_grid.py writes it.")
    rows = read(options.rows)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "README.md").write_text(page(rows, given), encoding="utf-8")
    draw(rows, options.out)
    print(f"{len(rows.frame)} rows; written to {options.out}")


if __name__ == "__main__":
    main()

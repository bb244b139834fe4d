"""The formulas of docs/scale.md, their tables against what was measured, and the picture."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

BEGIN, END = "<!-- scale: begin -->", "<!-- scale: end -->"
PICTURE = "images/scale.png"
SMALL = 64  # bytes of an image in all rows but one
MIB, GB = 2.0**20, 1e9
BRIEF = 0.1  # seconds below which a relative error says nothing
WIDE, SAMPLE = 3072, 20_000  # values of a color image; members in which principal components are found
Rows = dict[tuple[str, int], dict[str, float]]

# Bytes per member that a weighting holds while it trains (docs/scale.md lists them), and of its part of a state.
HELD = {"none": 0, "wr-instance": 4, "wr-cluster": 1, "prior": 4, "wr": 17}
STATE = {"none": 0, "wr-instance": 4, "wr-cluster": 1, "prior": 4, "wr": 5}
CLUSTERS = ("wr-cluster", "wr")
# Passes over the pool and rows of samples during the set-up.
PASSES = {"none": (0, 0), "wr-instance": (0, 0), "wr-cluster": (1, 40_000), "prior": (1, 30_000), "wr": (2, 50_000)}
# The colors of Okabe and Ito, which color-blind people can tell apart; the markers differ as well.
STYLES = {
    "none": ("#555555", "v"),
    "wr-instance": ("#E69F00", "D"),
    "wr-cluster": ("#009E73", "^"),
    "prior": ("#56B4E9", "s"),
    "wr": ("#0072B2", "o"),
}


def at_the_end(weights: str) -> int:
    """Bytes per member at the peak: what is held, the weights, the table of verdicts, one flag."""
    return HELD[weights] + 8 + (34 if weights in CLUSTERS else 33) + 1


def components(width: int) -> float:
    """Bytes while principal components are found: the sample, and five matrices of the size of the covariance."""
    return 8 * width * (SAMPLE + 5 * width)


class Model:
    """The formulas, with constants from the rows of 10^5 and 10^6 members: 10^4 and 10^7 are predictions."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def _line(self, weights: str, name: str) -> tuple[float, float]:
        """Constant and slope of a straight line through 10^5 and 10^6, neither of them below 0."""
        low, high = self.rows[weights, 10**5][name], self.rows[weights, 10**6][name]
        slope = max((high - low) / 9e5, 0.0)
        return max(low - 1e5 * slope, 0.0), slope

    def peak(self, weights: str, size: int) -> float:
        """MiB beyond the start: the working memory of set-up and steps, or what the end takes."""
        return max(self.rows[weights, 10**5]["peak_mib"], at_the_end(weights) * size / MIB)

    def seconds(self, weights: str, size: int, name: str) -> float:
        """Of a part that grows with the pool."""
        constant, slope = self._line(weights, name)
        return constant + slope * size

    def slope(self, weights: str, name: str) -> float:
        """Its seconds per member."""
        return self._line(weights, name)[1]

    def step(self, weights: str, size: int) -> float:
        """Milliseconds, whatever the size."""
        return (self.rows[weights, 10**5]["ms_per_step"] + self.rows[weights, 10**6]["ms_per_step"]) / 2

    def state(self, weights: str, size: int) -> float:
        """Bytes of a state: that of the network, and the part of the weighting."""
        return self.rows[weights, 10**4]["state_bytes"] + STATE[weights] * (size - 10**4)

    def reads(self, weights: str, size: int) -> float:
        """Members read by the set-up, as a multiple of the pool."""
        passes, sampled = PASSES[weights]
        return passes + sampled / size


def read(path: Path) -> tuple[Rows, dict[str, float]]:
    """The rows by weighting and size, and the one with larger images."""
    rows: Rows = {}
    large: dict[str, float] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            names = (n for n in row if n not in ("pool", "weights", "machine", "cores") and row[n])
            numbers = {name: float(row[name]) for name in names}
            if numbers["image_bytes"] == SMALL:
                rows[row["weights"], int(row["pool"])] = numbers
            else:
                large = numbers | {"pool": float(row["pool"])}
    return rows, large


def _power(size: int) -> str:
    return f"10{'⁰¹²³⁴⁵⁶⁷⁸⁹'[len(str(size)) - 1]}"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _error(said: float, seen: float) -> str:
    """In percent of what was seen; 0 has no sign."""
    percent = round(100 * (said - seen) / seen)
    return f"{percent:+d} %".replace("-", "−") if percent else "0 %"


def _compared(
    rows: Rows,
    formula: Callable[[str, int], float],
    name: str,
    sizes: list[int],
    least: float = 0.0,
    shown: Callable[[float], str] = _short,
) -> list[str]:
    """A line per weighting: formula, measurement and, where that is above ``least``, relative error at each size."""
    lines = [
        "| weights | " + " | ".join(f"{_power(size)}: formula | measured | error" for size in sizes) + " |",
        "|---|" + "---:|---:|---:|" * len(sizes),
    ]
    for weights in HELD:
        cells = []
        for size in sizes:
            said, seen = formula(weights, size), rows[weights, size][name]
            cells.append(f"{shown(said)} | {shown(seen)} | {_error(said, seen) if seen > least else ''}")
        lines.append(f"| `{weights}` | " + " | ".join(cells) + " |")
    return lines


def tables(rows: Rows, large: dict[str, float]) -> str:
    """Everything between the marks."""
    model, sizes = Model(rows), sorted({size for _, size in rows})
    ends = [sizes[0], sizes[-1]]
    parts = ["### Peak of anonymous memory beyond the start, MiB", ""]
    parts += _compared(rows, model.peak, "peak_mib", sizes[2:])
    parts += ["", "### Set-up, seconds", ""]
    parts += _compared(rows, lambda w, n: model.seconds(w, n, "setup_seconds"), "setup_seconds", ends, BRIEF)
    parts += ["", "### A step, milliseconds", "", *_compared(rows, model.step, "ms_per_step", ends)]
    parts += ["", "### Verdicts, seconds", ""]
    parts += _compared(rows, lambda w, n: model.seconds(w, n, "judge_seconds"), "judge_seconds", ends, BRIEF)
    parts += ["", "### Members read by the set-up, as multiples of the pool", ""]
    parts += _compared(rows, model.reads, "setup_reads", [10**6], shown=lambda value: f"{value:.2f}")
    parts += ["", "### A state, bytes", "", *_compared(rows, model.state, "state_bytes", [10**5, 10**6])]
    parts += ["", "### What it comes to", "", *_plan(rows, large)]
    parts += ["", f"![Memory and time against the size of the pool]({PICTURE})"]
    return "\n".join(parts)


def _plan(rows: Rows, large: dict[str, float]) -> list[str]:
    """The default weighting on larger pools, by the formulas, with the measured costs per member."""
    model, million = Model(rows), rows["wr", 10**6]
    per_row = million["verdicts_bytes"] / 10**6
    setup, judging = (model.slope("wr", name) for name in ("setup_seconds", "judge_seconds"))
    pools = (("ImageNet", 1.3e6), ("a billion", 1e9))
    lines = ["| `wr`, one process, no change to the program | ImageNet, 1.3 million | a billion |", "|---|---:|---:|"]

    def line(what: str, value: Callable[[float], float], unit: str) -> None:
        lines.append(f"| {what} | " + " | ".join(f"{_short(value(n))} {unit}" for _, n in pools) + " |")

    line("anonymous memory at the end, beyond the start", lambda n: at_the_end("wr") * n / GB, "GB")
    line("working memory of the set-up, color images", lambda n: components(WIDE) / GB, "GB")
    line("held during the steps", lambda n: HELD["wr"] * n / GB, "GB")
    line("two states on the disk", lambda n: 2 * STATE["wr"] * n / GB, "GB")
    line("verdicts.csv", lambda n: per_row * n / GB, "GB")
    line("the pool as images of 3 × 32 × 32 bytes", lambda n: 3072 * n / GB, "GB")
    line("the pool as images of 3 × 224 × 224 bytes", lambda n: 150_528 * n / GB, "GB")
    line("read in a whole run, 3 × 32 × 32, without the steps", lambda n: 4 * 3072 * n / GB, "GB")
    line("the same at 1 GB/s", lambda n: 4 * 3072 * n / GB / 60, "min")
    line("scores and clusters, one core of this machine", lambda n: setup * n / 60, "min")
    line("verdicts, one core, this small network", lambda n: judging * n / 60, "min")
    said, seen = components(WIDE) / MIB, large["setup_peak_mib"]
    more = large["setup_seconds"] - rows["wr", 10**5]["setup_seconds"]
    return [
        *lines,
        "",
        f"With {_power(int(large['pool']))} images of 3 × 32 × 32 bytes the set-up has its peak at {_short(seen)} MiB "
        f"(formula for the principal components: {_short(said)}, {_error(said, seen)}) and takes "
        f"{_short(large['setup_seconds'])} s, {_short(more)} s more than with 64 bytes: nearly all of it once.",
    ]


def draw(rows: Rows, path: Path) -> None:
    """Memory, set-up, step and verdicts against the size; dots are measurements, lines the formulas."""
    model, picture = Model(rows), Figure(figsize=(9, 6.6), layout="constrained")
    FigureCanvasAgg(picture)
    sizes = sorted({size for _, size in rows})
    panels: tuple[tuple[str, str, Callable[[str, int], float]], ...] = (
        ("peak_mib", "peak of memory beyond the start, MiB", model.peak),
        ("setup_seconds", "set-up, s", lambda w, n: model.seconds(w, n, "setup_seconds")),
        ("ms_per_step", "a step, ms", model.step),
        ("judge_seconds", "verdicts, s", lambda w, n: model.seconds(w, n, "judge_seconds")),
    )
    fine = [round(10 ** (4 + 3 * k / 60)) for k in range(61)]
    for axes, (name, title, formula) in zip(picture.subplots(2, 2).flat, panels, strict=True):
        for weights, (color, marker) in STYLES.items():
            axes.plot(fine, [formula(weights, n) for n in fine], color=color, linewidth=1.2, alpha=0.8)
            seen = [rows[weights, size][name] for size in sizes]
            axes.plot(sizes, seen, marker, color=color, markersize=6, label=weights)
        axes.set_xscale("log")
        if name != "ms_per_step":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=11)
        axes.set_xlabel("members of the pool")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        if name == "peak_mib":
            axes.legend(frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(path, dpi=110, metadata={"Software": None})


def write_page(results: Path, page: Path) -> None:
    """Put the tables between the marks of the page, and the picture beside it."""
    rows, large = read(results)
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{tables(rows, large)}\n{END}{after}", encoding="utf-8")
    draw(rows, page.parent / PICTURE)

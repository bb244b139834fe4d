"""table.md: every number from results.csv, beside the paper's; and the files that are made from a folder of results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from wrssl.runs import write_atomically
from wrssl_reproduction.budget import BUDGETS
from wrssl_reproduction.cell import Label
from wrssl_reproduction.experiment import ACCURACY, TIME, WEIGHT, Claim, Experiment, Panel
from wrssl_reproduction.plan import ENDINGS, KEPT
from wrssl_reproduction.rows import RESULTS, read_rows
from wrssl_reproduction.statistics import UNTESTED, Finding, Protocol, Row, Spot, Stat, findings, protocols, values

TABLE, FIGURE, PAGE = "table.md", "figure.png", "README.md"
BEGIN, END = "<!-- table.md begins -->", "<!-- table.md ends -->"
NOTHING = "–"
UNITS = {
    ACCURACY: "Test accuracy in percent",
    TIME: "Time of a step relative to plain SSL",
    WEIGHT: "Mean weight at the end of training",
}
CLAIMS_NOTE = (
    "Differences are paired by seed, ± standard error, with the number of seeds in brackets. A claim holds, or does "
    "not, where three seeds or more and 95 % confidence say so."
)
FORMS = {ACCURACY: "{:.2f}", TIME: "{:.2f}", WEIGHT: "{:.3f}"}


def write_outputs(experiment: Experiment, folder: Path) -> None:
    """Write table and pictures of the rows in a folder; a README.md with the two marks gets the table between them."""
    from wrssl_reproduction import figure  # matplotlib is slow to import

    rows = read_rows(folder / RESULTS)
    text = table_text(experiment, rows)
    write_atomically(folder / TABLE, lambda path: path.write_text(text, encoding="utf-8"))
    page = folder / PAGE
    if page.is_file() and BEGIN in (old := page.read_text(encoding="utf-8")):
        new = with_table(old, text)
        write_atomically(page, lambda path: path.write_text(new, encoding="utf-8"))
    if rows:
        traces = {path.name.partition(".")[0]: path for path in (folder / KEPT).glob(f"*.{ENDINGS['weights']}")}
        figure.draw_figure(experiment, rows, traces, folder / FIGURE)
        if experiment.finish is not None:
            experiment.finish(rows, folder)


def with_table(page: str, table: str) -> str:
    """The page with this table between its marks; the table's own title is left out, since a page has one."""
    body = table.split("\n", 1)[1].strip()
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n\n{body}\n\n{END}", page, flags=re.DOTALL)


def table_text(experiment: Experiment, rows: Sequence[Row]) -> str:
    """The whole page, a function of the experiment and the rows."""
    lines = [f"# {experiment.name}: {experiment.title}", ""]
    if not rows:
        return "\n".join([*lines, "No run is there yet.", ""])
    lines += [BUDGETS[name].note for name in BUDGETS if any(row["budget"] == name for row in rows)]
    lines += ["", *_provenance(rows), ""]
    for panel in experiment.panels:
        for protocol in protocols(rows, panel):
            lines += _panel(experiment, panel, rows, protocol)
    lines += _claims(experiment, rows)
    lines += [f"* {note}" for note in (*experiment.notes, experiment.source)]
    return "\n".join([*lines, ""])


def _provenance(rows: Sequence[Row]) -> Iterable[str]:
    def each(name: str) -> str:
        return ", ".join(f"`{value}`" for value in sorted({row[name] for row in rows if row[name]}))

    seeds = ", ".join(map(str, sorted({int(row["seed"]) for row in rows})))
    hours = sum(float(row["seconds"] or 0) for row in rows) / 3600
    yield f"{len(rows)} runs, seeds {seeds}, {hours:.1f} h in all"
    yield f"(one thread each). Commit {each('commit')}; torch {each('torch')}; machine {each('machine')}."


def _panel(experiment: Experiment, panel: Panel, rows: Sequence[Row], protocol: Protocol) -> list[str]:
    found = values(rows, panel, protocol)
    budget, steps = protocol
    reduced = "" if budget == "paper" else " (REDUCED)"
    lines = [f"## {panel.title}", "", f"{UNITS[panel.value]}, mean ± standard deviation over the seeds, whose number"]
    lines += [f"is in brackets. Budget `{budget}`{reduced}: {steps:,} steps. Columns: {panel.axis}.", ""]
    lines += [f"| | {' | '.join(panel.columns)} |", f"|---|{'---:|' * len(panel.columns)}"]
    for curve in experiment.curves(panel.key, (curve for curve, _ in found)):
        cells = [_cell(experiment, panel, found, (curve, column)) for column in panel.columns]
        lines.append(f"| {curve} | {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(experiment: Experiment, panel: Panel, found: dict[Spot, dict[int, float]], spot: Spot) -> str:
    here = stat_text(Stat.of(found[spot].values()), panel.value) if spot in found else NOTHING
    printed = experiment.printed.get(Label(panel.key, *spot))
    return here if printed is None else f"{here}; paper {printed[0]:.1f} ± {printed[1]:.1f}"


def stat_text(stat: Stat, value: str) -> str:
    """Mean ± standard deviation (number)."""
    form = FORMS[value]
    spread = "" if stat.std is None else f" ± {form.format(stat.std)}"
    return f"{form.format(stat.mean)}{spread} ({stat.n})"


def _claims(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    if not experiment.claims:
        return []
    lines = ["## What the paper says", "", CLAIMS_NOTE, "", "| | paper | here | |", "|---|---|---|---|"]
    return [*lines, *(claim_line(experiment, c, findings(experiment, c, rows)) for c in experiment.claims), ""]


def claim_line(experiment: Experiment, claim: Claim, found: Sequence[Finding]) -> str:
    """A line of a table: the claim, the paper's number, ours under every protocol that has it, the verdicts."""
    start = f"| {claim.text} | {claim.printed} |"
    if not found:
        return f"{start} {NOTHING} | {UNTESTED} |"
    panel = experiment.panel(claim.better.panel)
    numbers = "; ".join(f"{_number(claim, each.stat, panel.value)}, `{each.protocol[0]}`" for each in found)
    verdicts = "; ".join(each.verdict + ("" if each.protocol[0] == "paper" else " (reduced)") for each in found)
    return f"{start} {numbers} | {verdicts} |"


def _number(claim: Claim, stat: Stat, value: str) -> str:
    """A difference ± its standard error, or a value ± its standard deviation; the seeds in brackets."""
    if claim.worse is None:
        return stat_text(stat, value) + (" ×" if value == TIME else "")
    form = "{:+.3f}" if value == WEIGHT else "{:+.2f}"
    error = "" if stat.error is None else f" ± {form.replace('+', '').format(stat.error)}"
    return f"{form.format(stat.mean)}{error} ({stat.n})"

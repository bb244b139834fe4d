"""table.md: every number from results.csv, beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wrssl.experiments.budget import BUDGETS
from wrssl.experiments.cell import Label
from wrssl.experiments.claims import UNTESTED, Finding, findings
from wrssl.experiments.experiment import ACCURACY, TIME, WEIGHT, Claim, Experiment, Panel
from wrssl.experiments.statistics import Protocol, Row, Spot, Stat, protocols, values

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


def table_text(experiment: Experiment, rows: Sequence[Row]) -> str:
    """The whole page; it depends on nothing but the experiment and the rows."""
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

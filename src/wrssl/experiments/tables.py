"""table.md: every number from results.csv, beside what the paper printed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wrssl.experiments.budget import BUDGETS
from wrssl.experiments.cell import Label
from wrssl.experiments.experiment import ACCURACY, TIME, WEIGHT, Claim, Experiment, Panel
from wrssl.experiments.statistics import Protocol, Row, Spot, Stat, paired, protocols, values

NOTHING = "–"
UNITS = {
    ACCURACY: "Test accuracy in percent",
    TIME: "Time of a step relative to plain SSL",
    WEIGHT: "Mean weight at the end of training",
}
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
    lines = ["## What the paper says", "", "Differences are in points, paired by seed, ± standard error.", ""]
    lines += ["| | paper | here |", "|---|---|---|"]
    return [*lines, *(f"| {c.text} | {c.printed} | {_measured(experiment, c, rows)} |" for c in experiment.claims), ""]


def _measured(experiment: Experiment, claim: Claim, rows: Sequence[Row]) -> str:
    """The claim's number under every protocol that has it."""
    texts = []
    panel = next(each for each in experiment.panels if each.key == claim.better.panel)
    for protocol in protocols(rows, panel):
        found = values(rows, panel, protocol)
        better = found.get(claim.better[1:], {})
        if claim.worse is None:
            text = f"{stat_text(Stat.of(better.values()), panel.value)} ×" if better else ""
        else:
            text = _difference(paired(better, found.get(claim.worse[1:], {})))
        if text:
            texts.append(f"{text}, `{protocol[0]}`")
    return "; ".join(texts) or "not run"


def _difference(differences: list[float]) -> str:
    if not differences:
        return ""
    stat = Stat.of(differences)
    return f"{stat.mean:+.2f}{'' if stat.error is None else f' ± {stat.error:.2f}'} ({stat.n})"

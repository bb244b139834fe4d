"""docs/results/claims.md: what the paper says, line by line, and what the committed rows say about it.

    .venv/bin/python reproduction/programs/claims.py

The claims are in ``wrssl_reproduction.catalogue``, the rows in ``docs/results/NAME/results.csv``.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from wrssl_reproduction.catalogue import NAMES, get_experiment
from wrssl_reproduction.experiment import Experiment
from wrssl_reproduction.rows import RESULTS, read_rows
from wrssl_reproduction.statistics import FAILS, HOLDS, UNDECIDED, UNTESTED, findings
from wrssl_reproduction.tables import CLAIMS_NOTE, claim_line

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "results"
PAGE = FOLDER / "claims.md"
# What is said in formulas: the sentence, what came out, and the test that computes it a second way.
FORMULAS = (
    (
        "Implicit differentiation gives the gradient of the validation loss at an optimum",
        "holds: finite differences of a network that is trained to its optimum again",
        "tests/hypergrad/test_network_problem.py::test_a_trained_network_obeys_the_implicit_function_theorem",
    ),
    (
        "Lemma: with P = 0 and J = 1 it is the gradient through one step, as in DS3L",
        "holds where the mixed derivative is taken before the step, not after it as in the theorem",
        "tests/hypergrad/test_network_problem.py::test_lemma_1_by_autograd_through_one_step",
    ),
    (
        "Faraway foreign rows move the mean of a batch by half their distance, and so what batch norm returns",
        "holds: closed form",
        "tests/norm/test_identities.py::test_perfect_weights_equal_batch_norm_of_the_id_part_and_plain_batch_norm_does_not",
    ),
    (
        "Weighted batch norm with perfect weights is batch norm of the own rows",
        "holds: to 1e-10 in float64",
        "tests/norm/test_identities.py::test_perfect_weights_equal_batch_norm_of_the_id_part_and_plain_batch_norm_does_not",
    ),
)


def page_text(folder: Path = FOLDER) -> str:
    """The page from the rows that are there."""
    lines = [
        "<!-- Written by `.venv/bin/python reproduction/programs/claims.py`; do not edit. -->",
        "# The paper's claims",
        "",
    ]
    tables, counts = list[str](), dict.fromkeys((HOLDS, FAILS, UNDECIDED, UNTESTED), 0)
    for name in NAMES:
        experiment = get_experiment(name)
        rows = read_rows(folder / name / RESULTS)
        tables += _heading(experiment, rows, (folder / name / "README.md").is_file())
        for claim in experiment.claims:
            found = findings(experiment, claim, rows)
            counts[found[0].verdict if found else UNTESTED] += 1
            tables.append(claim_line(experiment, claim, found))
        tables.append("")
    lines += [
        "Each sentence of the paper with a number or a direction, and what our runs say about it. " + CLAIMS_NOTE,
        "Where a row has several protocols, the paper's comes first. `wr` is this library's default.",
        "",
        ", ".join(f"{n} {words}" for words, n in counts.items()) + f": {sum(counts.values())} in all.",
        "",
    ]
    formulas = ["## Formulas", "", "| claim | here | test |", "|---|---|---|"]
    formulas += [f"| {text} | {found} | `{test}` |" for text, found, test in FORMULAS]
    return "\n".join([*lines, *tables, *formulas, ""])


def _heading(experiment: Experiment, rows: list[dict[str, str]], has_page: bool) -> list[str]:
    where = f"[{experiment.name}]({experiment.name}/README.md)" if has_page else experiment.name
    lines = [f"## {experiment.title}", "", f"{where}: `{command(rows, experiment.name)}`", ""]
    return [*lines, "| claim | paper | here | verdict |", "|---|---|---|---|"]


def command(rows: list[dict[str, str]], name: str) -> str:
    """What makes the rows that are there, or those of the paper's budget where none are.

    A few comparisons have more seeds than the rest; the command is for the rest, since it runs every cell so often.
    """
    budgets = {row["budget"] for row in rows} or {"paper"}
    runs = Counter(row["seed"] for row in rows)
    seeds = sum(2 * count >= max(runs.values()) for count in runs.values()) or 5
    return f"wrssl reproduce {name} --budget {min(budgets)} --seeds {seeds} --out {name}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page_text(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()

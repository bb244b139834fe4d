"""docs/results/claims.md says what the committed rows give, and the tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wrssl_reproduction.catalogue import NAMES, get_experiment
from wrssl_reproduction.experiment import Claim
from wrssl_reproduction.rows import RESULTS, append_row, make_row
from wrssl_reproduction.statistics import UNTESTED

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def claims(program):
    return program("reproduction/programs/claims.py")


def lines_about(text: str, claim: Claim) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"| {claim.text} | {claim.printed} |")]


def test_the_page_is_what_the_rows_give(claims):
    assert claims.PAGE.read_text(encoding="utf-8") == claims.page_text()


def test_every_claim_has_a_line_and_nothing_is_said_without_rows(claims, tmp_path):
    text = claims.page_text(tmp_path)
    all_of_them = [claim for name in NAMES for claim in get_experiment(name).claims]
    for claim in all_of_them:
        assert lines_about(text, claim), claim.text
    assert text.count(f"| – | {UNTESTED} |") == len(all_of_them)
    assert f"{len(all_of_them)} {UNTESTED}: {len(all_of_them)} in all." in text


def test_rows_give_the_number_and_the_verdict(claims, tmp_path):
    from wrssl_reproduction.budget import PAPER

    experiment = get_experiment("fig4a")
    claim = next(c for c in experiment.claims if c.printed == "almost 18 points")
    for cell in experiment.cells(PAPER):
        for label, accuracy in ((claim.better, 0.97), (claim.worse, 0.78)):
            if label in cell.labels:
                measured = {"test_accuracy": accuracy + 0.001 * cell.seed**2 * (accuracy > 0.9), "seconds": 1.0}
                append_row(tmp_path / "fig4a" / RESULTS, make_row("fig4a", cell, "paper", measured))
    (line,) = lines_about(claims.page_text(tmp_path), claim)
    assert line.endswith("| +19.60 ± 0.29 (5), `paper` | holds |")
    assert "`wrssl reproduce fig4a --budget paper --seeds 5 --out fig4a`" in claims.page_text(tmp_path)


def test_the_command_is_for_the_seeds_that_most_cells_have(claims):
    def row(seed: int) -> dict[str, str]:
        return {"budget": "paper", "seed": str(seed)}

    assert "--seeds 5 " in claims.command([], "fig2")
    assert "--seeds 3 " in claims.command([row(seed) for seed in range(3) for _ in range(10)], "fig2")
    few_with_more = [row(seed) for seed in range(5) for _ in range(10)] + [row(seed) for seed in range(5, 20)]
    assert "--seeds 5 " in claims.command(few_with_more, "fig2")


def test_the_account_of_the_claims_quotes_the_page(claims):
    account = (ROOT / "docs" / "paper-against-ours.md").read_text(encoding="utf-8")
    said = account[account.index("## In short") : account.index("## The algorithm")]
    page = claims.PAGE.read_text(encoding="utf-8")
    counts = re.search(r"(\d+) hold, (\d+) do not, (\d+) are undecided and (\d+) untested", said)
    assert counts is not None
    held, failed, undecided, untested = counts.groups()
    assert f"{held} holds, {failed} does not hold, {undecided} undecided, {untested} untested:" in page
    numbers = re.findall(r"\d+\.\d+", said)
    assert len(numbers) == 11
    assert set(numbers) <= set(re.findall(r"\d+\.\d+", page))


def test_the_named_tests_are_there(claims):
    for _, _, test in claims.FORMULAS:
        path, name = test.split("::")
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), test

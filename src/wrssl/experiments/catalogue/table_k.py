"""Table III: the number of clusters, MNIST with 50 % mean images."""

from __future__ import annotations

from collections.abc import Iterator

from wrssl.experiments.budget import Budget
from wrssl.experiments.catalogue import published
from wrssl.experiments.catalogue.cells import CLEAN, DEFAULT, ORACLE, PAPERS, PLAIN, controls, make_cell
from wrssl.experiments.catalogue.ratios import WEIGHTINGS
from wrssl.experiments.cell import EVERYWHERE, Cell, Label
from wrssl.experiments.experiment import Claim, Experiment, Panel

CLUSTERS = (5, 10, 20, 30)
PRINTED = {
    "vat": ((94.7, 0.7), (95.3, 0.4), (96.3, 0.5), (95.6, 0.5)),
    "pl": ((95.2, 0.5), (95.3, 0.5), (96.2, 0.4), (95.9, 0.5)),
}
OTHERS = (PLAIN, DEFAULT, ORACLE)
PLAIN_PURE = Label("published", f"{published.PURE_CLUSTERS}, {published.STEPPING}", published.LONGEST)
RATE, *_ = published.OPTIMISER  # the first of its columns


def _cells(budget: Budget) -> Iterator[Cell]:
    for seed in range(budget.seeds):
        for method in PRINTED:
            yield from controls(budget, "mnist", seed, method)
            for K in CLUSTERS:
                label = Label(method, PAPERS, str(K))
                yield make_cell(budget, "mnist", seed, label, method=method, ood="mean", weights="wr-cluster", K=K)
            for curve in OTHERS:
                label = Label(method, curve, EVERYWHERE)
                yield make_cell(budget, "mnist", seed, label, method=method, ood="mean", weights=WEIGHTINGS[curve])
            label = Label(method, CLEAN, EVERYWHERE)
            yield make_cell(budget, "mnist", seed, label, method=method, ood="mean", clean=True)
            for curve, clean in ((PLAIN, False), (CLEAN, True)):
                label = Label(method, f"{curve}, foreign images added", EVERYWHERE)
                yield make_cell(budget, "mnist", seed, label, method=method, ood="mean", mode="add", clean=clean)
    yield from published.cells(budget)


def _claims() -> Iterator[Claim]:
    for method, printed in PRINTED.items():
        mean, spread = printed[CLUSTERS.index(20)]
        text, place = f"Accuracy with K = 20, {method.upper()}", Label(method, PAPERS, "20")
        yield Claim(text, f"{mean:.1f} ± {spread:.1f}", place, range=(mean - 2 * spread, 100.0))
        for K in CLUSTERS:
            if K != 20:
                text = f"K hardly matters: {K} clusters instead of 20, {method.upper()}"
                yield Claim(text, "within 2 points", Label(method, PAPERS, str(K)), place, (-2.0, 2.0))
    cleaned, clusters = "A pool cleaned by hand reaches that", "The paper's method with purer clusters reaches that"
    for method, words, place in (
        ("pl", f"{cleaned}, PL, as printed", Label("pl", CLEAN, "20")),
        ("pl", f"{cleaned}, PL, {RATE}, four updates", Label("published", CLEAN, "and four updates")),
        ("vat", f"{clusters}, VAT", Label("otherwise-vat", PAPERS, published.PURE)),
        ("pl", f"{clusters}, PL, as printed", Label("otherwise-pl", PAPERS, published.PURE)),
        ("pl", f"{clusters}, PL, {RATE}", Label("published", published.PURE_CLUSTERS, RATE)),
        ("pl", f"{clusters}, PL, {published.LONGEST}, {published.STEPPING}", PLAIN_PURE),
    ):
        mean, spread = PRINTED[method][CLUSTERS.index(20)]
        yield Claim(words, f"not asked; {mean:.1f} ± {spread:.1f}", place, range=(mean - 2 * spread, 100.0))


EXPERIMENT = Experiment(
    "table-k",
    "The number of clusters K: MNIST with 50 % mean images",
    _cells,
    (
        *(
            Panel(method, f"MNIST + 50 % Mean-MNIST, {method.upper()}", tuple(map(str, CLUSTERS)), "clusters K")
            for method in PRINTED
        ),
        *published.panels(),
    ),
    printed={
        Label(method, PAPERS, str(K)): value
        for method, values in PRINTED.items()
        for K, value in zip(CLUSTERS, values, strict=True)
    },
    claims=tuple(_claims()),
    source="The paper's table of test accuracies for different numbers of clusters.",
    notes=(
        "Rows other than the paper's method do not depend on K; their number stands in every column. So does, in the "
        "last panels, the number of what the published code's images, sign and clusters cannot change.",
        "The paper does not say whether this table is with batch norm; it is here (WBN for the paper's method).",
        "The panels about the published code have three seeds. The first has a pool that was cleaned by hand in every "
        "column, which says what any weights could reach; that code's optimiser has learning rate 2e-3, its look-ahead "
        "takes three more steps of the model itself in every iteration, and its confident pseudo-labels count ten "
        "times. Its last column has as many iterations as that code and its learning rate; there the paper's method "
        "moves the weights in every iteration and by plain steps. In the other panels its mean images wrap around in "
        "eight bits, so that the sum of two bright pixels is dark, and its series subtracts where it should add, with "
        "the learning rate as its step.",
        "The paper clusters features of a pre-trained network; here it is 50 principal components of the pixels. "
        "`clusters 97.4 % pure` adds a column to them that says own or foreign and is wrong for 2.6 % of the pool; a "
        "clustering that comes with the published code is that pure at 50 %. It uses the truth, as oracle weights do, "
        "and is no method but a question: would better clusters explain the printed numbers?",
    ),
)

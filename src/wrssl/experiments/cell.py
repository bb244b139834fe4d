"""One run of an experiment as data, and the hash by which it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

PROTOCOL = 1  # to be raised when the same cell means another run, so that older rows no longer count as done
EVERYWHERE = "*"  # as the column of a label: a run that does not depend on what the columns are about
ANY = "any"  # as the foreign rows of a cell: the pool would be the same for every kind, so it is run once
_NOT_IN_HASH = ("labels", "keeps", "alone")
# Settings that came later count where they are set, so that older rows stay what they are.
_LATER = ("compat", "outer_loss", "n_unlabeled", "alpha", "purity", "plain_beta")


class Label(NamedTuple):
    """Where a run stands: which panel, which curve of it (row of its table), which column."""

    panel: str
    curve: str
    column: str


@dataclass(frozen=True)
class Cell:
    """Everything that determines the numbers of one run.

    Attributes:
        dataset: a name of ``load_scenario``.
        ood: the kind of foreign rows, or ``"any"`` where the pool holds none or nobody looks at it.
        ratio: their share.
        mode: ``"replace"``, ``"add"`` or ``"oliver"``.
        model: a name of a network.
        method: the base method.
        weights: the weighting.
        bn: the policy of batch statistics.
        seed: of every random number.
        steps: optimiser steps.
        n_labels: labels in all; None for the data set's own number.
        n_validation: validation rows; None for the data set's own number.
        K: clusters.
        J: look-ahead steps.
        P: terms of the Neumann series, or iterations of CG.
        L: steps between two weight updates.
        scope: ``"head"`` or ``"network"``.
        solver: of the linear system. These six are None where the weighting has no such option or its default is meant.
        clean: the foreign rows taken out by hand.
        learns_validation: half of the validation labels are learned, the other half chooses the checkpoint.
        roles: ``"paper"`` shares one validation set between weights and checkpoint, ``"halves"`` splits it.
        lr: learning rate; None for the method's.
        l1: strength of the L1 term; None for the default.
        compat: whose form of Pseudo-Label, see ``PseudoLabel``; None for the method's own.
        outer_loss: what drives the weights, see ``HypergradientOptions``; None for the paper's cross-entropy.
        n_unlabeled: own rows of which the pool is made; None for all that there are.
        alpha: step of look-ahead and series, see ``HypergradientOptions``; None for 1/λmax.
        purity: of clusters that are made with the truth, see ``nearly_known.py``; None for those of the weighting.
        plain_beta: step of weights that move by plain steps, as in the published code; None for normalised ones.
        labels: where the run is shown.
        keeps: what else the run leaves behind: ``"weights"`` (a curve over the steps) or ``"model"``.
        alone: its time is what counts, so nothing else may run beside it.
    """

    dataset: str
    ood: str
    ratio: float
    mode: str
    model: str
    method: str
    weights: str
    bn: str
    seed: int
    steps: int
    n_labels: int | None = None
    n_validation: int | None = None
    K: int | None = None
    J: int | None = None
    P: int | None = None
    L: int | None = None
    scope: str | None = None
    solver: str | None = None
    clean: bool = False
    learns_validation: bool = False
    roles: str = "paper"
    lr: float | None = None
    l1: float | None = None
    compat: str | None = None
    outer_loss: str | None = None
    n_unlabeled: int | None = None
    alpha: str | None = None
    purity: float | None = None
    plain_beta: float | None = None
    labels: tuple[Label, ...] = ()
    keeps: tuple[str, ...] = ()
    alone: bool = False

    @property
    def config_hash(self) -> str:
        """Sixteen hexadecimal digits of everything that determines the numbers; not of labels, time or paths."""
        settings: dict[str, Any] = {k: v for k, v in asdict(self).items() if k not in _NOT_IN_HASH}
        settings = {k: v for k, v in settings.items() if v is not None or k not in _LATER}
        settings["ratio"] = float(self.ratio)
        text = json.dumps({"protocol": PROTOCOL, **settings}, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def __str__(self) -> str:
        """A few words for a line of progress."""
        pool = "clean" if self.clean else f"{self.ood} {100 * self.ratio:g} %"
        how = f"{self.model} · {self.method} · {self.weights} · {self.bn}"
        return f"{self.dataset} {pool} · {how} · seed {self.seed}"


def merged(cells: Iterable[Cell]) -> list[Cell]:
    """Each run once, with all of its labels, in the order of first mention."""
    found: dict[str, Cell] = {}
    for cell in cells:
        known = found.get(cell.config_hash)
        if known is not None:
            labels, keeps = dict.fromkeys(known.labels + cell.labels), sorted({*known.keeps, *cell.keeps})
            cell = replace(known, labels=tuple(labels), keeps=tuple(keeps), alone=known.alone or cell.alone)
        found[cell.config_hash] = cell
    return list(found.values())


def label_text(labels: Iterable[Label]) -> str:
    """Labels as the column ``label`` of results.csv holds them."""
    return "; ".join("|".join(label) for label in labels)


def read_labels(text: str) -> tuple[Label, ...]:
    """Inverse of ``label_text``."""
    return tuple(Label(*part.split("|")) for part in text.split("; ") if part.count("|") == 2)

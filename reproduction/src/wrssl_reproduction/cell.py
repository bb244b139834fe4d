"""One run of an experiment as data, and the hash that identifies it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from wrssl.registry import WEIGHTINGS

PROTOCOL = 1  # raise it when the same cell means another run, so that older rows no longer count as done
EVERYWHERE = "*"  # as the column of a label: the run stands in every column, since it does not depend on them
ANY = "any"  # as the kind of foreign rows: the pool is the same for every kind, so the cell is run once
_REVISION = "-r"  # in a hash, before the revision of the weighting
_NOT_IN_HASH = ("labels", "keeps", "alone")
# Settings that were added later enter the hash where they are set, so that older rows keep theirs.
_LATER = ("compat", "outer_loss", "n_unlabeled", "alpha", "purity", "plain_beta")


class Label(NamedTuple):
    """Where a run is shown: the panel, its curve (a row of the table) and the column."""

    panel: str
    curve: str
    column: str


@dataclass(frozen=True)
class Cell:
    """Everything that determines the numbers of one run.

    Attributes:
        dataset: a name of ``load_scenario``.
        ood: the kind of foreign rows, or ``"any"`` where the pool holds none or is not used.
        ratio: their share.
        mode: ``"replace"``, ``"add"`` or ``"oliver"``.
        model: a name of a network.
        method: the base method.
        weights: the weighting.
        bn: the policy of batch statistics.
        seed: of every random number.
        steps: optimizer steps.
        n_labels: labels in all; None for the data set's own number.
        n_validation: validation rows; None for the data set's own number.
        K: clusters.
        J: look-ahead steps.
        P: terms of the Neumann series, or iterations of CG.
        L: steps between two weight updates.
        scope: ``"head"`` or ``"network"``.
        solver: of the linear system. These six are None where the weighting has no such option, or for its default.
        clean: whether the foreign rows are removed by hand.
        learns_validation: whether half of the validation labels are trained on; the other half chooses the checkpoint.
        roles: ``"paper"`` uses one validation set for weights and checkpoint, ``"halves"`` splits it.
        lr: learning rate; None for the method's.
        l1: strength of the L1 term; None for the default.
        compat: a variant of Pseudo-Label, a key of ``published_code.PSEUDO_LABELS``; None for the method's own form.
        outer_loss: the validation loss behind the weights, an option of the weighting; None for cross-entropy.
        n_unlabeled: number of in-distribution rows that the pool is made of; None for all.
        alpha: step of look-ahead and series, an option of the weighting; None for 1/λmax.
        purity: of clusters made with the truth (``published_code.nearly_known_sides``); None for the weighting's own.
        plain_beta: β of plain weight steps, as in the published code; None for normalized steps.
        labels: where the run is shown.
        keeps: files that the run leaves behind: ``"weights"`` (mean weights over the steps) or ``"model"``.
        alone: whether its time is measured, so that no other cell may run beside it.
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
        """Sixteen hexadecimal digits of everything that determines the numbers, not of labels, time or paths.

        A revision of the weighting above 1 is appended, as in ``0123456789abcdef-r2``.
        """
        settings: dict[str, Any] = {k: v for k, v in asdict(self).items() if k not in _NOT_IN_HASH}
        settings = {k: v for k, v in settings.items() if v is not None or k not in _LATER}
        settings["ratio"] = float(self.ratio)
        text = json.dumps({"protocol": PROTOCOL, **settings}, sort_keys=True, allow_nan=False)
        digits, revision = hashlib.sha256(text.encode()).hexdigest()[:16], revision_of(self.weights)
        return digits if revision == 1 else f"{digits}{_REVISION}{revision}"

    def __str__(self) -> str:
        """A few words for a line of progress."""
        pool = "clean" if self.clean else f"{self.ood} {100 * self.ratio:g} %"
        how = f"{self.model} · {self.method} · {self.weights} · {self.bn}"
        return f"{self.dataset} {pool} · {how} · seed {self.seed}"


def revision_of(weights: str) -> int:
    """The revision of a weighting: above 1 where the same options give other weights than in an earlier version."""
    known = WEIGHTINGS.get(weights) if weights in WEIGHTINGS.names() else None  # rows outlive their weightings
    return int(getattr(known, "revision", 1))


def is_superseded(weights: str, config_hash: str) -> bool:
    """Whether a run was made with an older revision of its weighting."""
    return int(config_hash.partition(_REVISION)[2] or 1) < revision_of(weights)


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

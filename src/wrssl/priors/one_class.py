"""The prior for rows of an embedding: how near a member is to the labels, and its neighbors in the pool to them.

Labels are few and rows are long here. A classifier of labels against pool, the prior for pixels and tables, has to
learn what is foreign from some dozens of references in a thousand dimensions. One-class scores need not: they say how
near a row is to the labels. Rows x have length 1 (``wrssl.data.Directions``). Four scores, high where a row belongs:

    neighbors    mean cosine to the 3 nearest labeled rows
    classes      cosine to the nearest class mean
    whitened     neighbors again, in the first 64 principal components of pool and labels, y/√(λ + mean λ), length 1
    energy       log Σ_c exp(10 z_c) of the ridge regression z(x) = xᵀLᵀ(LLᵀ + I/10)⁻¹Y on the labels' indicators Y

Each is brought to mean 0 and deviation 1 over the pool; s₀ is their mean. No kind is best on all data, and with a few
dozen labels nothing could choose between them. **Neighbors in the pool** then speak for each other: with the 10 nearest
members N(x) among the pool's principal components, x itself left out,

    s(x) = ½ s₀(x) + ½ mean of s over N(x),

which ten rounds solve up to a thousandth.

**References** are labeled rows that took no part in what scores them. Labels are divided into folds, each class evenly,
so that of a class with up to ten labels at most one is missing at a time. A fold is scored by labels and a pool that
was smoothed without it: with its own labels in, its neighbors in the pool would speak for it. Members still have a
small part in what judges them, which labels have not. In toy examples without a foreign member (four classes of ten
labels, 48 columns) p ≤ .05 held for .053 ± .004 of 300 members (60 draws) and for .066 ± .008 of 150 (40 draws).

**Size.** Of a large pool 10,000 random members are the sample in which scales are measured and neighbors are searched;
of many labels 2,000. All other members are read once, in parts.

AUROC of foreign against own members | share of own members with p ≤ .05, by the two-sample prior on the same rows
(development seeds 100 to 102) and by this one (100 to 103, with an energy by logistic regression; on two further draws
ridge regression was as good or better on each task):

    grocery photographs, 5 labels a class         .950 | .102    .976 | .037
    grocery photographs, 10                       .965 | .132    .978 | .061
    CIFAR-10, animals in half vehicles, 5         .878 | .106    .952 | .070
    CIFAR-10, 25                                  .957 | .074    .976 | .058
    banking77, 19 of 77 intents, 10               .875 | .074    .926 | .046
    CIFAR-100, half of the classes, 10            .676 | .098    .686 | .063
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl import progress
from wrssl.api import Rows, State
from wrssl.data import Directions, spread_over_folds, transform_from_state
from wrssl.errors import DataError
from wrssl.judging import Belonging
from wrssl.priors.calibrate import WeightCurve, belonging, weight_curve
from wrssl.priors.fit import FEWEST, Prior, no_conclusion

KINDS = ("neighbors", "classes", "whitened", "energy")
NEAREST = 3  # labels
COMPONENTS = 64
RIDGE, SHARPNESS = 0.1, 10.0
AROUND, ROUNDS = 10, 10  # neighbors in the pool, and how often they are asked
MOST_FOLDS = 10
POOL_ROWS, KNOWN_ROWS = 10_000, 2_000
CHUNK = 2_000


def unit(x: Tensor) -> Tensor:
    """Rows of length 1; a row of zeros stays."""
    rows: Tensor = x / torch.linalg.vector_norm(x, dim=1, keepdim=True).clamp_min(1e-12)
    return rows


@dataclass(frozen=True)
class Components:
    """The principal components of pool and labels.

    Attributes:
        mean: of both, (d,).
        directions: one column per component, (d, k).
        variances: λ of each, (k,).
    """

    mean: Tensor
    directions: Tensor
    variances: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Components:
        """The first ``COMPONENTS`` of these rows, or as many as there are columns.

        The labeled rows are among them. Components fit the rows that they are made of better than others, and so would
        make strangers of either the members or the labels.
        """
        mean = rows.double().mean(0)
        moved = rows.double() - mean
        values, vectors = torch.linalg.eigh(moved.T @ moved / len(rows))
        first = values.flip(0)[:COMPONENTS].clamp_min(0)
        return cls(mean.float(), vectors.flip(1)[:, :COMPONENTS].float().contiguous(), first.float())

    def __call__(self, rows: Tensor) -> Tensor:
        """The components of these rows, (n, k)."""
        return (rows - self.mean) @ self.directions

    def whitened(self, components: Tensor) -> Tensor:
        """These components in units of their spread, as rows of length 1."""
        return unit(components / (self.variances + self.variances.mean()).sqrt().clamp_min(1e-12))


@dataclass(frozen=True)
class LabelScores:
    """The four scores by one set of labels.

    Attributes:
        labeled: rows of length 1, (n, d).
        whitened: the same, whitened, (n, k).
        means: of the classes, length 1, (C, d).
        regression: Lᵀ(LLᵀ + I/10)⁻¹Y, (d, C).
        components: of the pool.
    """

    labeled: Tensor
    whitened: Tensor
    means: Tensor
    regression: Tensor
    components: Components

    @classmethod
    def of(cls, labeled: Tensor, labels: Tensor, components: Components) -> LabelScores:
        """By these labeled rows and their classes."""
        indicators = torch.nn.functional.one_hot(labels)
        indicators = indicators[:, indicators.sum(0) > 0].double()
        gram = (labeled @ labeled.T).double()
        solved = torch.linalg.solve(gram + RIDGE * torch.eye(len(labeled), dtype=torch.float64), indicators)
        means = indicators.T @ labeled.double() / indicators.sum(0).unsqueeze(1)
        return cls(
            labeled,
            components.whitened(components(labeled)),
            unit(means).float(),
            (labeled.double().T @ solved).float(),
            components,
        )

    def __call__(self, rows: Tensor) -> Tensor:
        """One column per kind, (m, 4)."""
        nearest = min(NEAREST, len(self.labeled))
        whitened = self.components.whitened(self.components(rows))
        return torch.stack(
            [
                (rows @ self.labeled.T).topk(nearest, dim=1).values.mean(1),
                (rows @ self.means.T).amax(1),
                (whitened @ self.whitened.T).topk(nearest, dim=1).values.mean(1),
                (SHARPNESS * (rows @ self.regression)).logsumexp(1),
            ],
            dim=1,
        )


def nearest_members(rows: Tensor, sample: Tensor, itself: bool) -> Tensor:
    """The ``AROUND`` members of the sample that are nearest to each row, (n, 10).

    Args:
        rows: principal components of the rows.
        sample: those of the sample.
        itself: the rows are the sample, and none is its own neighbor.
    """
    found = []
    half_square = sample.square().sum(1) / 2
    for start in range(0, len(rows), CHUNK):
        part = rows[start : start + CHUNK]
        closeness = part @ sample.T - half_square
        if itself:
            closeness[torch.arange(len(part)), start + torch.arange(len(part))] = -torch.inf
        found.append(closeness.topk(min(AROUND, len(sample) - itself), dim=1).indices)
    return torch.cat(found)


def smoothed(scores: Tensor, neighbors: Tensor) -> Tensor:
    """The s of the sample, from its s₀ and the neighbors of each member in it."""
    s = scores
    for _ in range(ROUNDS):
        s = (scores + s[neighbors].mean(1)) / 2
    return s


@dataclass(frozen=True)
class OneClass:
    """Scores rows: the labels' scores, their scale over the pool, and the pool's neighborhood.

    Attributes:
        scores: by the labels.
        scale: mean and deviation of each kind over the sample, (2, 4).
        sample: principal components of the sample, (m, k).
        settled: the s of the sample, (m,).
    """

    scores: LabelScores
    scale: Tensor
    sample: Tensor
    settled: Tensor

    @classmethod
    def of(cls, scores: LabelScores, sample: Tensor, components: Tensor, neighbors: Tensor) -> OneClass:
        """By scores of labels and a sample: its rows, its components, and the neighbors within it."""
        raw = torch.cat([scores(part) for part in sample.split(CHUNK)])
        scale = torch.stack([raw.mean(0), raw.std(0, correction=0).clamp_min(1e-12)])
        return cls(scores, scale, components, smoothed(((raw - scale[0]) / scale[1]).mean(1), neighbors))

    def alone(self, rows: Tensor) -> Tensor:
        """s₀ of these rows."""
        return ((self.scores(rows) - self.scale[0]) / self.scale[1]).mean(1)

    def __call__(self, rows: Tensor) -> Tensor:
        """The s of rows that are not in the sample, (n,)."""
        near = nearest_members(self.scores.components(rows), self.sample, itself=False)
        return (self.alone(rows) + self.settled[near].mean(1)) / 2


def fit_one_class(known: Rows, labels: NDArray[np.int64], pool: Rows, seed: int) -> Prior:
    """The prior of a pool; with too few labels or members it concludes nothing.

    Args:
        known: directions of the reference.
        labels: their classes.
        pool: directions of the pool, read in parts.
        seed: of samples and folds.
    """
    size = len(pool)
    if min(len(known), size) < FEWEST:
        return no_conclusion(size, KINDS)
    with progress.note("comparing the pool with the labels"):
        random = np.random.default_rng(seed)
        chosen, part = (_some(random, len(rows), most) for rows, most in ((known, KNOWN_ROWS), (pool, POOL_ROWS)))
        labeled, classes, sample = _finite(known[chosen]), torch.from_numpy(labels)[chosen], _finite(pool[part])
        components = Components.of(torch.cat([sample, labeled]))
        of_sample = components(sample)
        around = nearest_members(of_sample, of_sample, itself=True)

        def by(rows: Tensor) -> OneClass:
            scores = LabelScores.of(labeled[rows], classes[rows], components)
            return OneClass.of(scores, sample, of_sample, around)

        model = by(torch.ones(len(labeled), dtype=torch.bool))
        references, folds = torch.empty(len(labeled)), folds_of(classes.numpy(), random)
        for fold in range(int(folds.max()) + 1):
            held = folds == fold
            references[held] = by(~held)(labeled[held])
    scores = np.empty(size, dtype=np.float32)
    scores[part] = model.settled.numpy()
    if len(part) < size:
        inside = np.zeros(size, dtype=np.bool_)
        inside[part] = True
        for rows in progress.slices(size, CHUNK, "scoring the pool"):
            new = np.flatnonzero(~inside[rows])
            scores[rows.start + new] = model(_finite(pool[rows])[new]).numpy()
    known_scores = references.double().numpy()
    curve = weight_curve(known_scores, model.settled.double().numpy())
    return Prior(scores, known_scores, curve, dict.fromkeys(KINDS, 1 / len(KINDS)), float("nan"), model)


def folds_of(labels: NDArray[np.int64], random: np.random.Generator) -> Tensor:
    """The fold of each label, as many as the largest class has labels and at most ten, each class spread evenly."""
    number = max(2, min(MOST_FOLDS, int(np.bincount(labels).max())))
    return torch.from_numpy(spread_over_folds(labels, random.permutation(len(labels)), number))


def _some(generator: np.random.Generator, size: int, most: int) -> Tensor:
    """At most so many of the numbers below ``size``, in increasing order."""
    return torch.from_numpy(np.sort(generator.choice(size, most, replace=False)) if size > most else np.arange(size))


def _finite(rows: Tensor) -> Tensor:
    if not bool(torch.isfinite(rows).all()):
        raise DataError("The embedding contains NaN or infinite values; remove them before comparing.")
    return rows


@dataclass(frozen=True)
class OneClassScorer:
    """The ``NewSampleScorer`` of this prior.

    Attributes:
        model: what scores directions.
        known: the scores of the references.
        curve: from a score to a weight.
        directions: from stored values to directions.
    """

    model: OneClass
    known: NDArray[np.float64]
    curve: WeightCurve
    directions: Directions

    def __call__(self, x: Tensor) -> Belonging:
        """p, ood_score and weight of these examples, given as the pool was."""
        scores = torch.cat([self.model(self.directions(part)) for part in x.split(CHUNK)])
        return belonging(scores.double().numpy(), self.known, self.curve)

    def state_dict(self) -> State:
        """As tensors; ``one-class`` tells them from those of the two-sample prior."""
        model, scores = self.model, self.model.scores
        return {
            "one-class": torch.tensor(1),
            "labeled": scores.labeled,
            "whitened": scores.whitened,
            "means": scores.means,
            "regression": scores.regression,
            "components mean": scores.components.mean,
            "components": scores.components.directions.T.contiguous(),
            "variances": scores.components.variances,
            "scale": model.scale,
            "sample": model.sample,
            "settled": model.settled,
            "known": torch.from_numpy(self.known),
            "nodes": torch.from_numpy(self.curve.nodes),
            "values": torch.from_numpy(self.curve.values),
            **self.directions.state_dict(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor]) -> OneClassScorer:
        """Inverse of ``state_dict``."""
        components = Components(state["components mean"], state["components"].T.contiguous(), state["variances"])
        scores = LabelScores(state["labeled"], state["whitened"], state["means"], state["regression"], components)
        directions = transform_from_state({"center": state["center"]})
        assert isinstance(directions, Directions)
        curve = WeightCurve(state["nodes"].numpy(), state["values"].numpy())
        return cls(
            OneClass(scores, state["scale"], state["sample"], state["settled"]),
            state["known"].numpy(),
            curve,
            directions,
        )

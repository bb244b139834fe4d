"""The default kinds: four two-sample classifiers, all of them ridge logistic regression on features of the rows.

    min_{β, b}  ½ mean_labeled log(1 + e^{−z}) + ½ mean_pool log(1 + e^{z}) + ρ/2 ‖β‖²,     z = βᵀφ(x) + b

with features φ of variance 1. Both samples count as one half whatever their sizes, so that z estimates the logarithm of
p_labeled(x)/p_pool(x). The kinds differ in φ and ρ:

* ``linear``: the rows themselves. Sees foreign rows whose mean is elsewhere; the strongest kind from few references.
* ``quadratic``: products of pairs of columns. Sees foreign rows whose spread or correlations differ, such as means of
  two rows.
* ``kernel``: random Fourier features of a wide Gaussian kernel. Sees foreign rows by what lies around them.
* ``kernel-narrow``: the same with a width that follows from the distances between references.

Scoring a pool is most of what a prior costs, and φ is most of scoring, so ``score_together`` computes it once for all
fits that have it in common: those of the folds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wrssl.priors.kinds import Context, Kind, Labels, Matrix, Score
from wrssl.registry import register_prior

Features: TypeAlias = Callable[[Matrix], Matrix]

ITERATIONS = 100  # of L-BFGS; a score that is not quite at its minimum is a usable score
BLOCK = 256  # rows
LINEAR_RIDGE = 2e-3
COLUMNS = 25  # products of the first columns only: 350 features, where fifty columns would have 1,325
QUADRATIC_RIDGE = 0.5  # strong, since there are more features than references
FOURIER_FEATURES = 500
KERNEL_RIDGE = 0.08
FALL = 0.4  # see local_width
PROBED = 1000  # references whose neighbors are searched; the median of more would be the same
NARROWEST = 10  # g at most 2 to this: where references repeat, neighbors are at distance 0


@dataclass(frozen=True)
class LogisticScore:
    """The fitted z as a function of rows.

    Attributes:
        features: φ, before it is brought to variance 1; equal ones give equal features.
        center: what is subtracted from it.
        scale: what it is then divided by.
        slope: β, as one row.
        intercept: b.
    """

    features: Features
    center: Matrix
    scale: Matrix
    slope: Matrix
    intercept: Matrix

    def __call__(self, rows: Matrix) -> NDArray[np.float64]:
        """The z of these rows."""
        return self.of_features(self.features(rows))

    def of_features(self, phi: Matrix) -> NDArray[np.float64]:
        """The z of rows with these features, which are not changed."""
        scaled = np.empty(phi.shape, np.result_type(phi, self.center))
        for start in range(0, len(phi), BLOCK):  # a block is still in the cache when it is divided
            part = scaled[start : start + BLOCK]
            np.subtract(phi[start : start + BLOCK], self.center, out=part)
            np.divide(part, self.scale, out=part)
        z: NDArray[np.float64] = (scaled @ self.slope.T + self.intercept).reshape(-1).astype(np.float64)
        return z


def logistic(labeled: Matrix, pool: Matrix, features: Features, ridge: float) -> LogisticScore:
    """Fit z.

    Args:
        labeled: rows of the reference.
        pool: rows of the pool.
        features: φ, before it is brought to variance 1.
        ridge: ρ.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    phi = features(np.concatenate([labeled, pool]))
    center, scale = phi.mean(0), phi.std(0)
    scale[scale < 1e-6] = 1.0  # a feature with one value says nothing
    is_reference = np.r_[np.ones(len(labeled)), np.zeros(len(pool))]
    # sklearn sums the losses, with "balanced" class weights that add up to the number of rows.
    model = LogisticRegression(C=1 / (ridge * len(phi)), class_weight="balanced", max_iter=ITERATIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit((phi - center) / scale, is_reference)
    return LogisticScore(features, center, scale, model.coef_, model.intercept_)


def score_together(scores: Sequence[Score], rows: Matrix) -> list[NDArray[np.float64]]:
    """Each of these scores of the rows; features that one shares with the one before it are computed once."""
    found, last, phi = list[NDArray[np.float64]](), None, rows
    for score in scores:
        if not isinstance(score, LogisticScore):
            found.append(np.asarray(score(rows), dtype=np.float64))
            continue
        if score.features != last:
            last, phi = score.features, score.features(rows)
        found.append(score.of_features(phi))
    return found


def identity(rows: Matrix) -> Matrix:
    """The rows."""
    return rows


@register_prior("linear")
def linear(labeled: Matrix, labels: Labels, pool: Matrix) -> Score:
    """Logistic regression on the rows themselves."""
    return logistic(labeled, pool, identity, LINEAR_RIDGE)


def products(rows: Matrix) -> Matrix:
    """(x_i)_i and (x_i x_j)_{i ≤ j} for the first columns."""
    x = rows[:, :COLUMNS]
    width = x.shape[1]
    found = np.empty((len(x), width + width * (width + 1) // 2), dtype=x.dtype)
    found[:, :width], place = x, width
    for first in range(width):  # slices: several times as fast as gathering the columns of all pairs
        np.multiply(x[:, first : first + 1], x[:, first:], out=found[:, place : (place := place + width - first)])
    return found


@register_prior("quadratic")
def quadratic(labeled: Matrix, labels: Labels, pool: Matrix) -> Score:
    """Logistic regression on products of pairs of columns."""
    return logistic(labeled, pool, products, QUADRATIC_RIDGE)


@dataclass(frozen=True)
class Fourier:
    """√(D/2) φ for the Gaussian kernel exp(−γ‖x − x'‖²) (Rahimi, Recht, 2007); equal arguments give equal features.

        φ(x) = √(2/D) cos(Ωx + c),   Ω ~ N(0, 2γ),   c ~ U[0, 2π],   γ = g / (2d).

    Columns have variance 1, so two random rows are 2d apart (squared), and g = 1 lets the kernel fall to 1/e there.
    That is narrow in many columns and wide in few: see ``local_width``.

    Attributes:
        width: g.
        columns: d.
        seed: of Ω and c.
    """

    width: float
    columns: int
    seed: int

    @cached_property
    def _drawn(self) -> tuple[Matrix, Matrix]:
        random = np.random.default_rng(self.seed)
        spread = np.float32((self.width / self.columns) ** 0.5)
        omega = random.standard_normal((self.columns, FOURIER_FEATURES), dtype=np.float32) * spread
        shift = random.uniform(0, 2 * np.pi, FOURIER_FEATURES).astype(np.float32)  # a NumPy generator  # nosec B311
        return omega, shift

    def __call__(self, rows: Matrix) -> Matrix:
        """One row of features per row."""
        omega, shift = self._drawn
        angle: Matrix = rows @ omega
        angle += shift
        return np.cos(angle, out=angle)


def kernel(width: float) -> Kind:
    """The kind with g = ``width``."""

    def fit(labeled: Matrix, labels: Labels, pool: Matrix, context: Context) -> Score:
        return logistic(labeled, pool, Fourier(width, labeled.shape[1], context.seed), KERNEL_RIDGE)

    return fit


register_prior("kernel")(kernel(0.3))


def local_width(rows: Matrix, seed: int) -> float:
    """The g of a kernel that is as narrow as these references are dense.

    One width does not suit all data. In fifty columns all rows are about equally far from each other, and a kernel that
    falls within that distance, g = 1, is narrow already. Two moons in the plane have structure at a tenth of it. The
    distance of near neighbors tells the two apart: with r² the median over the references of the squared distance to
    the k-th nearest other,

        g = max(1, 2d · 0.4 / r²),    k = √n / 2,

    rounded to a power of 2.
    """
    from sklearn.neighbors import NearestNeighbors

    n, columns = rows.shape
    near = max(1, round(math.sqrt(n) / 2))
    probed = rows[np.random.default_rng(seed).permutation(n)[:PROBED]]
    # One more than k: the nearest of a reference is itself.
    search = NearestNeighbors(n_neighbors=min(near + 1, n), algorithm="brute").fit(rows)
    r = float(np.median(search.kneighbors(probed)[0][:, -1]))
    g = 2 * columns * FALL / max(r * r, 1e-12)
    return float(2.0 ** np.clip(round(math.log2(g)), 0, NARROWEST))


@register_prior("kernel-narrow")
def local_kernel(labeled: Matrix, labels: Labels, pool: Matrix, context: Context) -> Score:
    """The kernel whose width follows from all references, so that the folds have the same features."""
    return kernel(local_width(context.references, context.seed))(labeled, labels, pool, context)

"""What only the paper's published code does, or what explains its results: four changes, registered by name.

* the series ``neumann-published``: the terms of the Neumann series with a minus where a plus belongs;
* two variants of Pseudo-Label: ``pl-oliver``, of the code that the published code is based on, and ``pl-published``;
* clusters of a given purity, as an embedding for the weighting ``wr-cluster``;
* mean images that wrap around in eight bits: the kind ``mean-wrapped`` of the scenario ``mnist``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.data import Foreign, Parts, Request, Scenario, pairs_of_taken, register_foreign, torch_stream
from wrssl.errors import DataError
from wrssl.evaluate import is_ood
from wrssl.hypergrad import largest_eigenvalue
from wrssl.methods import PseudoLabel
from wrssl.registry import register_method, register_solver
from wrssl.training import EmbeddedRows, principal_components

PSEUDO_LABELS = {"oliver": "pl-oliver", "wrssl": "pl-published"}  # the field ``compat`` of a cell: name of the method
FAR = 100.0  # in units of the largest norm: k-means never joins members that are so far apart


def register() -> None:
    """Make the solver and the methods available by name; once more does no harm."""
    register_solver("neumann-published", series=True)(neumann_published)
    register_method(PSEUDO_LABELS["oliver"])(OliverPseudoLabel)
    register_method(PSEUDO_LABELS["wrssl"])(PublishedPseudoLabel)
    register_foreign("mnist", "mean-wrapped", like="mean")(mean_wrapped)


def neumann_published(
    matvec: Callable[[Tensor], Tensor],
    b: Tensor,
    *,
    terms: int = 5,
    alpha: float | Tensor | None = None,
    check: bool = True,
) -> Tensor:
    """``x = b − Σ_{p=1}^{P} (I − αH)^p b``: the Neumann series with the wrong sign.

    For αH ≪ 1 this is (1 − P) b, so that from P = 2 on a step along −x ascends where ``neumann`` descends.

    Args:
        matvec: the product with a symmetric H.
        b: the right-hand side, any shape.
        terms: P.
        alpha: α, in that code the learning rate; None takes 1/λ_max, as ``neumann`` does.
        check: accepted and ignored, since nothing converges.

    Returns:
        x, shaped like ``b``.
    """
    if alpha is None:
        largest, _ = largest_eigenvalue(matvec, b, iterations=20)
        alpha = 1.0 / largest.clamp_min(torch.finfo(largest.dtype).eps)
    term = total = b
    for _ in range(terms):
        term = term - alpha * matvec(term)
        total = total - term
    return total


class OliverPseudoLabel(PseudoLabel):
    """Pseudo-Label of Oliver et al. (realistic-ssl-evaluation), nearly the same as Lee's.

        t_j = 1[max p_j ≥ τ] · softmax(10 · onehot(argmax p_j)),   r_j = KL(t_j ‖ p_j)

    The divergence is the cross-entropy less the entropy of the target, so the curvature is that of ``pl``.
    """

    summary: ClassVar[str] = "pl with a soft target, as in realistic-ssl-evaluation"

    def targets(self, logits: Tensor) -> Tensor:
        """t, shape (B, C)."""
        hard = super().targets(logits)
        return hard.amax(1, keepdim=True) * (10 * hard).softmax(1)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r, shape (B,)."""
        return super().loss(logits, targets) + torch.xlogy(targets, targets).sum(1)


class PublishedPseudoLabel(PseudoLabel):
    """Pseudo-Label of the paper's published code: a tenfold loss where it is confident.

    t_j = 10 · onehot(argmax p_j) where max p_j ≥ τ, else p_j,   r_j = −Σ_c t_jc log p_jc
    """

    summary: ClassVar[str] = "pl of the paper's published code, with a tenfold loss"

    def targets(self, logits: Tensor) -> Tensor:
        """t, shape (B, C)."""
        hard = super().targets(logits)
        return torch.where(hard.amax(1, keepdim=True) > 0, 10 * hard, logits.detach().softmax(1))


def mean_wrapped(request: Request, parts: Parts) -> Foreign:
    """MNIST's ``mean`` images as the published code adds two images up, in eight bits: the same pairs as ``mean``.

    Where both images are bright the result is dark (200 and 200 give 72), which no mean of two images would be.
    """
    return pairs_of_taken("mean-wrapped", request.seed, wrapped_mean_of_two)


def wrapped_mean_of_two(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """⌊((a + b) mod 256) / 2⌋ of uint8 images."""
    return (first + second) // 2  # numpy's 8-bit sums wrap around


def nearly_known_sides(scenario: Scenario, purity: float, seed: int) -> Tensor:
    """An embedding of the pool in which k-means finds clusters of a given purity.

    The paper clusters features of a pre-trained network. A clustering for 50 % that comes with its published code puts
    97.4 % of the members into clusters whose majority is on their side, in-distribution or foreign; clusters of
    principal components mix the two. What would the paper's weights do if its clusters were better? Principal
    components of the pool get one more column, which says the side and is wrong for some members:

        row_j = (z_j, s_j · c),    s_j = ±1 by the truth with probability ``purity``, else the other,

    where c is far beyond every ‖z_j‖, so that k-means divides each side by itself. This uses the truth, as oracle
    weights do.

    Args:
        scenario: whose pool and truth.
        purity: probability of the right side.
        seed: of the errors and of the sample for the components.

    Returns:
        The rows, shape (M, components + 1).
    """
    foreign = is_ood(scenario)
    if foreign is None:
        raise DataError(
            "Clusters of a given purity need to know which members are foreign; this scenario does not say."
        )
    pool = scenario.unlabeled
    rows = EmbeddedRows(pool, principal_components(pool, torch_stream(seed, "components")))[:]
    wrong = torch.rand(len(foreign), generator=torch_stream(seed, "purity")) >= purity
    side = (foreign ^ wrong).float() * 2 - 1
    return torch.cat([rows, side[:, None] * FAR * rows.norm(dim=1).max()], 1)

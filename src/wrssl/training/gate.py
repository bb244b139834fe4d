"""A safety gate: the pool has no say in a step in which it pulls against the labels.

Fix-A-Step (Huang, Sidhom, Wessler, Hughes, 2023: "Fix-A-Step: Semi-Supervised Learning from Uncurated Unlabeled Data"):

    drop λ · mean_j(f_j r_j) where ⟨∇ CE_labelled, ∇ λ mean_j(f_j r_j)⟩ < 0

Here both gradients are those of the last layer, which are known without another backbone pass.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from wrssl.api import Method, OptionError
from wrssl.training.batch import LabeledBatch

GATES = ("cosine",)


class Gate:
    """1 where the unlabelled term may pass, 0 where not; a tensor, so that nothing waits for the device."""

    def __call__(self, head: nn.Linear, labeled: LabeledBatch, term: Tensor) -> Tensor:
        """Compare the gradient of ``term``, which stays differentiable, with that of the labelled loss."""
        parameters = [p for p in (head.weight, head.bias) if p is not None]
        theirs = torch.autograd.grad(term, parameters, retain_graph=True, materialize_grads=True)
        with torch.no_grad():
            error = head(labeled.features).softmax(1)
            error[torch.arange(len(error)), labeled.y] -= 1
            ours = [error.t() @ labeled.features, error.sum(0)]  # times 1/B, which does not change the sign
            product = sum(((a * b).sum() for a, b in zip(ours, theirs, strict=False)), start=term.new_zeros(()))
            return (product >= 0).to(term.dtype)


def make_gate(name: str | None, method: Method) -> Gate | None:
    """The gate with this name, or a sentence about what does not go."""
    if name is None:
        return None
    if name not in GATES:
        raise OptionError(f"There is no gate {name!r}; choose {' or '.join(map(repr, GATES))}, or leave gate=None.")
    if method.mixes_labeled or not method.uses_unlabeled:
        raise OptionError(
            "A gate compares the term of the pool with that of the labels, and this method does not have both; "
            "leave gate=None."
        )
    return Gate()

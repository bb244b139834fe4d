"""All parameters of a network as one vector."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from torch import Tensor

from wrssl.hypergrad.shapes import check_weights

Params = dict[str, Tensor]
Flat = TypeVar("Flat", bound="FlatProblem")
P = TypeVar("P", bound="FlatProblem")


class FlatProblem:
    """What problems over a dictionary of parameters share: θ, the weights and the numbers of L_T.

    Args:
        params: name to tensor, for example ``dict(model.named_parameters())``; copied.
        w: weights, ``(B_u,)``.
        coef: λ.
        ridge: μ; it belongs to L_T.
        damping: δ, added to the curvature only.
    """

    def __init__(self, params: Mapping[str, Tensor], w: Tensor, coef: float, ridge: float, damping: float) -> None:
        self.shapes = {name: value.shape for name, value in params.items()}
        self.theta = torch.cat([value.detach().reshape(-1) for value in params.values()])
        self.w = check_weights(w, w.numel()).to(self.theta)
        self.coef, self.ridge, self.damping = coef, ridge, damping
        self.known: Callable[[], Tensor] | None = None
        self._started: Tensor | None = None

    def params(self, theta: Tensor) -> Params:
        """The flat vector as a dictionary of parameters."""
        pieces: tuple[Tensor, ...] = torch.split_with_sizes(theta, [s.numel() for s in self.shapes.values()])
        return {name: piece.view(shape) for (name, shape), piece in zip(self.shapes.items(), pieces, strict=True)}

    def start(self) -> Tensor:
        """θ⁰: a copy."""
        self._started = self.theta.clone()
        return self._started

    def known_gradient(self, theta: Tensor) -> Tensor | None:
        """∇L_T at θ⁰, where somebody gave a cheaper way to it as ``known``; None elsewhere.

        A training step has the graph of its loss at θ⁰ already: one backward pass instead of two forward ones as well.
        """
        return self.known() if self.known is not None and theta is self._started else None

    def with_weights(self: P, w: Tensor) -> P:
        """The same problem with other weights."""
        other = copy.copy(self)
        other.w, other.known = check_weights(w, self.w.numel()).to(self.theta), None
        return other

    def at(self: P, theta: Tensor) -> P:
        """The same problem that starts at another θ."""
        other = copy.copy(self)
        other.theta, other.known = theta.detach(), None
        return other

"""Virtual Adversarial Training (Miyato et al., 2018: "Virtual Adversarial Training")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor

from wrssl.api import Context, Method, Net, OptionError, Pass, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import gaussian_like
from wrssl.registry import register_method

DIRECTIONS = ("oliver", "miyato")
TRACE = 1e-20  # the weight of a row of weight 0 in the search for its own direction


def unit(d: Tensor) -> Tensor:
    """Each example scaled to length 1: d/(10⁻¹² + max|d|), then by 1/√(10⁻⁶ + ‖·‖²), which cannot overflow."""
    flat = d.flatten(1)
    flat = flat / (1e-12 + flat.abs().amax(1, keepdim=True))
    return (flat / (1e-6 + flat.square().sum(1, keepdim=True)).sqrt()).view_as(d)


@register_method("vat")
class VAT(Method):
    """The prediction should not change in the direction in which it changes most.

        p = sg p(x);   d ~ N(0, I), scaled to length 1
        repeat K times:  d ← unit(∇_d Σ_j w_j KL(p_j ‖ p(x_j + ξ d_j)))
        r_j = KL(p(x_j + ε d_j) ‖ p_j)      kl="oliver" (Oliver et al. 2018, and the paper)
        r_j = KL(p_j ‖ p(x_j + ε d_j))      kl="miyato"

    The gradient flows through the perturbed pass only. The power iteration always uses KL(clean ‖ perturbed). On MNIST
    the first direction trains steadily, the second decays after some hundred steps.

    Args:
        eps: ε; None takes the scenario's (3 on MNIST, 0.5 on moons).
        xi: ξ; the references' 10⁻⁶ is below the float32 resolution of x, where the direction is mostly rounding noise.
        power_iterations: K.
        kl: the direction of the divergence.
    """

    summary: ClassVar[str] = "the prediction withstands the worst small perturbation"

    def __init__(
        self,
        eps: float | None = None,
        xi: float = 0.1,
        power_iterations: int = 1,
        kl: str = "oliver",
        coef: float = 0.3,
        lr: float = 3e-3,
    ) -> None:
        if kl not in DIRECTIONS:
            raise OptionError(f"vat knows kl={' and '.join(DIRECTIONS)}, not {kl!r}.")
        self.eps, self.xi, self.power_iterations, self.kl = eps, xi, power_iterations, kl
        self.coef, self.lr = coef, lr
        self.curvature = "kl" if kl == "oliver" else "ce"
        self._parameters: list[Tensor] = []

    def setup(self, net: Net) -> None:
        """Remember the parameters; to walk over the model in every pass would take time."""
        self._parameters = list(net.module.parameters())

    @contextmanager
    def _constant_parameters(self) -> Iterator[None]:
        """Only the derivative by the input is wanted: within this, passes keep nothing for those by parameters."""
        trained = [p for p in self._parameters if p.requires_grad]  # now: a callback may freeze some during a run
        for p in trained:
            p.requires_grad_(False)
        try:
            yield
        finally:
            for p in trained:
                p.requires_grad_(True)

    def direction(self, net: Net, x: Tensor, p: Tensor, generator: torch.Generator) -> Tensor:
        """The adversarial direction d of each example, length 1."""
        d = unit(gaussian_like(x, generator))
        for _ in range(self.power_iterations):
            d = d.detach().requires_grad_()
            with self._constant_parameters():
                logits = net.logits(x + self.xi * d, Pass.PERTURBED)
            rows = LOSSES["ce"].value(logits, p)
            if net.weights is None:
                d = unit(torch.autograd.grad(rows.sum(), d)[0])
            else:  # rows share batch statistics: a row without weight must not steer the others
                counts = net.weights.clamp_min(TRACE)
                gradient = torch.autograd.grad((counts * rows).sum(), d)[0]
                d = unit(gradient / counts.view(-1, *[1] * (d.dim() - 1)))
        return d.detach()

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The clean pass, the power iteration, the perturbed pass."""
        with torch.no_grad():
            p = net.logits(x, Pass.UNLABELED).softmax(1)
        eps = context.epsilon if self.eps is None else self.eps
        inputs = x + eps * self.direction(net, x, p, context.attack)
        return Views(inputs, Pass.PERTURBED, net.features(inputs, Pass.PERTURBED), p)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j, the divergence between the perturbed and the clean prediction."""
        if self.kl == "miyato":
            return LOSSES["ce"].value(logits, targets) + torch.xlogy(targets, targets).sum(1)
        return LOSSES["kl"].value(logits, targets)

"""From the pieces of a step to dL_V/dw: the bridge between the loop and ``wrssl.hypergrad``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call

from wrssl.api import Method, Pass, State, Views
from wrssl.hypergrad import Estimate, HeadProblem, NetworkProblem, implicit_hypergradient
from wrssl.hypergrad.options import HypergradientOptions
from wrssl.hypergrad.zspace import LogitLoss, automatic, logit_loss
from wrssl.norm import Source, statistics
from wrssl.training.passes import PolicyNet


@dataclass(frozen=True)
class LabeledBatch:
    """A batch with labels: its inputs, features and classes."""

    x: Tensor
    features: Tensor
    y: Tensor

    def rows(self, mask: Tensor) -> LabeledBatch:
        """The part of the batch where ``mask`` is True."""
        return LabeledBatch(self.x[mask], self.features[mask], self.y[mask])


def logit_loss_of(method: Method) -> LogitLoss:
    """The method's loss with its derivatives: the closed form that it names, or automatic ones."""
    return automatic(method.loss) if method.curvature is None else logit_loss(method.curvature)


def head_problem(
    net: PolicyNet,
    method: Method,
    labeled: LabeledBatch,
    views: Views,
    w: Tensor,
    validation: LabeledBatch,
    options: HypergradientOptions,
) -> HeadProblem:
    """The last layer on the features that the step has computed anyway."""
    return HeadProblem(
        net.head.weight,
        net.head.bias,
        labeled.features,
        labeled.y,
        views.features,
        views.targets,
        w,
        validation.features,
        validation.y,
        zloss=logit_loss_of(method),
        coef=method.coef,
        curvature=options.curvature,
    )


def network_problem(
    net: PolicyNet, method: Method, labeled: LabeledBatch, views: Views, w: Tensor, validation: LabeledBatch
) -> NetworkProblem:
    """All parameters; every loss is a function of a parameter dictionary, evaluated with ``functional_call``.

    Labelled and validation rows are look-ahead passes (batch statistics, no update). The unlabelled rows repeat the
    gradient-carrying pass of the step, with the statistics that it used and no update: the loss that is differentiated
    must be the loss that is trained.
    """

    def logits(parameters: dict[str, Tensor], x: Tensor, source: Source, weights: Tensor | None) -> Tensor:
        with statistics(net.layers, source, False, weights):
            output: Tensor = functional_call(net.module, parameters, (x,))
        return output

    def cross_entropy(batch: LabeledBatch, kind: Pass, parameters: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(logits(parameters, batch.x, net.table[kind][0], None), batch.y)

    def unlabeled(parameters: dict[str, Tensor]) -> Tensor:
        return method.loss(logits(parameters, views.inputs, net.table[views.kind][0], net.weights), views.targets)

    return NetworkProblem(
        {name: p.detach() for name, p in net.module.named_parameters() if p.requires_grad},
        partial(cross_entropy, labeled, Pass.LOOKAHEAD),
        unlabeled,
        partial(cross_entropy, validation, Pass.VALIDATION),
        w,
        coef=method.coef,
    )


class HypergradientEstimator:
    """Runs the estimate of one training run and keeps the eigenvector that warm-starts λmax between updates."""

    def __init__(self, net: PolicyNet, method: Method) -> None:
        self.net, self.method = net, method
        self.eigenvector: Tensor | None = None

    def __call__(
        self, labeled: LabeledBatch, views: Views, w: Tensor, validation: LabeledBatch, options: HypergradientOptions
    ) -> Estimate:
        """dL_V/dw of this batch; the model and its buffers stay as they are."""
        problem: HeadProblem | NetworkProblem
        if options.scope == "head":
            problem = head_problem(self.net, self.method, labeled, views, w, validation, options)
        else:
            problem = network_problem(self.net, self.method, labeled, views, w, validation)
        warm = 2 if self.eigenvector is not None else 10  # products for λmax
        estimate = implicit_hypergradient(
            problem,
            options.solver,
            lookahead=options.J,
            step=options.alpha,
            mixed_at=options.mixed_at,
            relative_damping=options.damping,
            power_iterations=warm,
            eigenvector=self.eigenvector,
            diagnose=options.scope == "head",  # one more backward pass would be dear for the whole network
            **_solver_options(options),
        )
        self.eigenvector = estimate.eigenvector if estimate.eigenvector is not None else self.eigenvector
        return estimate

    def state_dict(self) -> State:
        """The eigenvector: a resumed run continues with the very same step sizes."""
        return {} if self.eigenvector is None else {"eigenvector": self.eigenvector}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.eigenvector = state.get("eigenvector")


def _solver_options(options: HypergradientOptions) -> dict[str, Any]:
    if options.solver == "neumann":
        # An α from outside may diverge, and must say so. With α = 1/λmax a positive semi-definite series cannot; an
        # indefinite Hessian (exact curvature) lets its negative modes grow, mildly for the few terms of the paper.
        return {"terms": options.P, "check": options.alpha is not None}
    if options.solver == "cg":
        return {"iterations": options.P, "tolerance": 1e-3}
    return {}

"""From the pieces of a step to dL_V/dw: the bridge between the loop and ``wrssl.hypergrad``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import HypergradientRequest, Method, Pass, State, Views
from wrssl.hypergrad import (
    BilevelProblem,
    Estimate,
    HeadProblem,
    HeadRows,
    LogitLoss,
    LogitProblem,
    LogitRows,
    NetworkProblem,
    automatic,
    implicit_hypergradient,
    largest_eigenvalue,
    logit_loss,
    safe_step,
    solver_options,
)
from wrssl.norm import statistics
from wrssl.training.batches import LabeledBatch
from wrssl.training.passes import PolicyNet

# Updates before which λmax of the whole network is measured: it moves in the beginning, and slowly later.
EARLY, REFRESH = (0, 5, 10, 20), 50


def logit_loss_of(method: Method) -> LogitLoss:
    """The method's loss with its derivatives: the closed form that it names, or automatic ones."""
    return automatic(method.loss) if method.curvature is None else logit_loss(method.curvature)


@dataclass(frozen=True)
class StepRows:
    """What a step hands to an estimate.

    Attributes:
        labeled: the rows behind L_T.
        views: the unlabeled rows of L_T.
        w: their factors in L_T.
        validation: the rows behind L_V.
    """

    labeled: LabeledBatch
    views: Views
    w: Tensor
    validation: LabeledBatch


def head_problem(net: PolicyNet, method: Method, rows: StepRows, request: HypergradientRequest) -> HeadProblem:
    """The last layer on the features that the step has computed anyway."""
    labeled, views, validation = rows.labeled, rows.views, rows.validation
    return HeadProblem(
        net.head.weight,
        net.head.bias,
        HeadRows(labeled.features, labeled.y),
        HeadRows(views.features, views.targets),
        HeadRows(validation.features, validation.y),
        rows.w,
        zloss=logit_loss_of(method),
        coef=method.coef,
        curvature=request.curvature,
        outer_loss=request.outer_loss,
    )


def network_problem(
    net: PolicyNet, method: Method, rows: StepRows, request: HypergradientRequest
) -> LogitProblem | NetworkProblem:
    """All parameters; every batch is a function of a parameter dictionary.

    Labeled and validation rows are look-ahead passes (batch statistics, no update). The unlabeled rows repeat the
    gradient-carrying pass of the step, with the statistics that it used and no update: the loss that is differentiated
    must be the loss that is trained.
    """
    exact, labeled, views, validation = request.curvature == "exact", rows.labeled, rows.views, rows.validation

    def logits(x: Tensor, kind: Pass, weights: Tensor | None, parameters: dict[str, Tensor]) -> Tensor:
        with statistics(net.layers, net.table[kind][0], False, weights):
            return net.call(parameters, x, plain=exact)

    on_labeled = partial(logits, labeled.x, Pass.LOOKAHEAD, None)
    on_pool = partial(logits, views.inputs, views.kind, net.weights_of(views.mixed))
    on_validation = partial(logits, validation.x, Pass.VALIDATION, None)
    parameters = {name: p.detach() for name, p in net.module.named_parameters() if p.requires_grad}
    if not exact:
        return LogitProblem(
            parameters,
            LogitRows(on_labeled, labeled.y) if len(labeled.y) else None,
            LogitRows(on_pool, views.targets),
            LogitRows(on_validation, validation.y),
            rows.w,
            zloss=logit_loss_of(method),
            coef=method.coef,
        )
    return NetworkProblem(
        parameters,
        lambda p: F.cross_entropy(on_labeled(p), labeled.y) if len(labeled.y) else torch.zeros(()),
        lambda p: method.loss(on_pool(p), views.targets),
        lambda p: F.cross_entropy(on_validation(p), validation.y),
        rows.w,
        coef=method.coef,
        hessian="reverse",
    )


class HypergradientEstimator:
    """Runs the estimate of one training run and keeps the eigenvector that warm-starts λmax between updates.

    Args:
        net: the network.
        method: whose loss is weighted.
        ridge: μ, the weight decay of the training, which is part of L_T.
    """

    def __init__(self, net: PolicyNet, method: Method, ridge: float = 0.0) -> None:
        self.net, self.method, self.ridge = net, method, ridge
        self.eigenvector: Tensor | None = None
        self.eigenvalue: Tensor | None = None
        self.updates = 0

    def __call__(
        self, rows: StepRows, request: HypergradientRequest, gradient: Callable[[], Tensor] | None = None
    ) -> Estimate:
        """dL_V/dw of this batch; the model and its buffers stay as they are.

        Args:
            rows: of this step.
            request: how to estimate, with the learning rate in the place of ``"lr"``.
            gradient: ∇L_T at the current parameters, if the step knows a cheaper way to it than two passes.
        """
        problem: HeadProblem | LogitProblem | NetworkProblem
        if request.scope == "head":
            problem = head_problem(self.net, self.method, rows, request)
        else:
            problem = network_problem(self.net, self.method, rows, request)
            problem.known = None if self.ridge else gradient  # that of the step is without the ridge
        problem.ridge = self.ridge
        warm = 1 if self.eigenvector is not None else 10  # products for λmax
        estimate = implicit_hypergradient(
            problem,
            request.solver,
            lookahead=request.J,
            step=self._step(problem, request),
            mixed_at=request.mixed_at,
            relative_damping=request.damping,
            power_iterations=warm,
            eigenvector=self.eigenvector,
            diagnose=request.scope == "head",  # one more backward pass would be dear for the whole network
            **solver_options(request),
        )
        self.eigenvector = estimate.eigenvector if estimate.eigenvector is not None else self.eigenvector
        if estimate.largest_eigenvalue is None:  # it was measured here, or not at all
            estimate = replace(estimate, largest_eigenvalue=self.eigenvalue)
        return estimate

    def _step(self, problem: BilevelProblem, request: HypergradientRequest) -> float | Tensor | None:
        """1/λmax for the whole network, measured anew every ``REFRESH`` updates and more often in the beginning.

        There a product costs as much as a training step, and the series tolerates a λmax that doubles; for the head it
        costs almost nothing, and is measured where it is used.
        """
        assert not isinstance(request.alpha, str), "with_rate comes first"
        if request.scope == "head" or request.alpha is not None or request.damping > 0:
            return request.alpha
        if self.eigenvalue is None or self.updates in EARLY or self.updates % REFRESH == 0:
            products = 10 if self.eigenvector is None else 2
            self.eigenvalue, self.eigenvector = largest_eigenvalue(
                problem.curvature(problem.start()), problem.start(), start=self.eigenvector, iterations=products
            )
        self.updates += 1
        return safe_step(self.eigenvalue)

    def state_dict(self) -> State:
        """What a resumed run needs to continue with the very same step sizes."""
        state = {"eigenvector": self.eigenvector, "eigenvalue": self.eigenvalue}
        tensors: State = {name: value for name, value in state.items() if value is not None}
        return {**tensors, "updates": torch.tensor(self.updates)} if tensors else {}

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``."""
        self.eigenvector, self.eigenvalue = state.get("eigenvector"), state.get("eigenvalue")
        self.updates = int(state.get("updates", 0))

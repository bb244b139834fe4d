"""``wrssl.check_hypergradient``: is the hypergradient right on this model and this data?"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from wrssl.api import Context, HypergradientRequest, OptionError, Pass
from wrssl.config import FitConfig
from wrssl.data import Scenario, torch_stream
from wrssl.hypergrad import CheckResult, check_head, check_one_step, check_request
from wrssl.registry import METHODS
from wrssl.training.batches import Batches, LabeledBatch, TrainingData
from wrssl.training.building import build_network
from wrssl.training.hypergradient import StepRows, head_problem, network_problem


def check_hypergradient(
    model: str | nn.Module,
    scenario: Scenario,
    *,
    method: str = "vat",
    method_options: dict[str, Any] | None = None,
    scope: str = "head",
    solver: str = "exact",
    curvature: str = "exact",
    ridge: float = 1e-2,
    eta: float = 0.1,
    at: str = "solution",
    batch_size: int = 100,
    seed: int = 0,
    bn: str = "batch",
    head: str | None = None,
    **options: Any,
) -> CheckResult:
    """Compare an estimate of dL_V/dw with finite differences, on a float64 copy of your model and one batch of data.

    ``scope="head"`` re-trains the last layer (with ridge) for each changed weight, the strictest test there is.
    ``scope="network"`` differentiates through one real training step of size ``eta`` (Lemma 1). The model is not
    changed, and no random state is touched.

    Args:
        model: a name or your own module.
        scenario: where the batch comes from; it needs a validation set.
        method: the base method whose loss is weighted.
        method_options: its options.
        scope: ``"head"`` or ``"network"``.
        solver: ``"exact"``, ``"cg"`` or ``"neumann"`` (head only).
        curvature: ``"exact"`` or ``"gauss-newton"``.
        ridge: of the re-trained head, so that it has one solution.
        eta: the step of ``scope="network"``.
        at: ``"solution"`` tests the estimator at the re-trained head, ``"start"`` where the head is now.
        batch_size: examples of each kind.
        seed: of batch, perturbations and initialization.
        bn: the batch-statistics policy.
        head: the name of the last layer where tracing cannot find it.
        options: of the estimator, such as ``terms=5, lookahead=3``.

    Returns:
        Cosine, relative error and both gradients; ``print`` it for a sentence.
    """
    if scenario.validation is None:
        raise OptionError("check_hypergradient needs validation labels; give the scenario a validation set.")
    request = check_request(HypergradientRequest(scope=scope, curvature=curvature))
    device = torch.device("cpu")
    config = FitConfig(model=model, bn=bn, head=head, seed=seed, batch_size=batch_size)
    net = build_network(scenario, config, device)
    net.parts.model.double()
    base = METHODS.create(method, method_options)
    if not base.uses_unlabeled:
        raise OptionError(f"The method {method!r} ignores the pool, so there is no weight to differentiate.")
    base.setup(net)
    batch = Batches(TrainingData.of(scenario, seed, "halves"), batch_size, seed, device)(0, True)
    if batch.validation is None:
        raise OptionError("check_hypergradient needs at least two validation examples.")
    streams = torch_stream(seed, "augment"), torch_stream(seed, "attack")
    x_l, (x_v, y_v) = batch.x_l.double(), (batch.validation[0].double(), batch.validation[1])
    known = x_l, batch.y_l
    context = Context(0, 1, *streams, scenario.noise, scenario.vat_epsilon, scenario.augmentation, known)
    weights = 0.25 + 0.5 * torch.rand(len(batch.index), generator=torch_stream(seed, "check"), dtype=torch.float64)
    net.weights = weights
    views = base.views(net, batch.x_u.double(), context)
    row_weights = weights if views.mixed is None else views.mixed.weights(weights)
    with torch.no_grad():
        labeled = LabeledBatch(x_l, net.features(x_l, Pass.LOOKAHEAD), batch.y_l)
        labeled = labeled.rows(slice(0)) if base.mixes_labeled else labeled
        validation = LabeledBatch(x_v, net.features(x_v, Pass.VALIDATION), y_v)
    rows = StepRows(labeled, views, row_weights, validation)
    if scope == "head":
        problem = head_problem(net, base, rows, request)
        problem.ridge = ridge
        return check_head(problem, solver, at=at, **options)
    return check_one_step(network_problem(net, base, rows, request), eta)

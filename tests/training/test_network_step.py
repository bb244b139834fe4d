"""The hypergradient of the whole network within a training: the gradient it is told, and when λmax is measured."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from wrssl.api import Context, Pool
from wrssl.data import torch_stream
from wrssl.fast import accelerate
from wrssl.hypergrad import largest_eigenvalue
from wrssl.models import build_model, split
from wrssl.norm import convert_batchnorm, use_native_kernels
from wrssl.registry import METHODS, WEIGHTINGS
from wrssl.training.batches import Batch
from wrssl.training.hypergradient import EARLY, REFRESH, network_problem
from wrssl.training.passes import PolicyNet
from wrssl.training.step import TrainingStep

POOL = 30


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def make(method="entmin", bn="weighted", shape=(3,), fast=True, **options):
    """A small network, or LeNet where the inputs are images, in float64, with a weight update in every step."""
    if len(shape) == 3:
        model = build_model("lenet", shape, 2, torch.Generator().manual_seed(0)).double()
    else:
        model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2)).double()
        with torch.no_grad():
            for number, p in enumerate(model.parameters()):
                p.copy_(randn(*p.shape, seed=number) * 0.7)
    use_native_kernels(convert_batchnorm(model), fast)
    net = PolicyNet(split(model, randn(4, *shape, seed=9)), bn, accelerate if fast else None)
    base = METHODS.create(method, {"threshold": 0.0} if method == "pl" else {})
    base.setup(net)
    weighting = WEIGHTINGS.create("wr-instance", {"L": 1, "scope": "network", **options})
    weighting.setup(Pool(POOL, 2, lambda kind: randn(POOL, 3, seed=3).float(), 0, None))
    weighting.table = torch.linspace(0.1, 1, POOL, dtype=torch.float64)
    optimizer = torch.optim.SGD(net.module.parameters(), lr=0.05)
    net.parts.train()
    return TrainingStep(net, base, weighting, optimizer)


def take(step, number, shape=(3,)):
    """Step ``number``, with data of its own."""
    x_l, x_u, x_v = (randn(n, *shape, seed=1000 * n + number) for n in (6, 8, 7))
    y_l, y_v = torch.arange(6) % 2, torch.arange(7) % 2
    index = (torch.arange(8) + 3 * number) % POOL
    streams = torch_stream(0, "augment", number), torch_stream(0, "attack", number)
    batch, context = Batch(x_l, y_l, x_u, index, (x_v, y_v)), Context(number, 100, *streams, 0.1, 0.5)
    return step(batch, context, step.weighting.request(number))


class Watched:
    """Stands in the place of a step's estimator, and looks at what it is told and at what it answers.

    Attributes:
        gradients: ∇L_T at θ⁰ of every update, as the step tells it and computed from scratch.
        measured: how λmax was measured, in the updates in which it was: the number of products, and whether they began
            without the eigenvector of the measurement before.
    """

    def __init__(self, step):
        self.estimator, self.net, self.method = step.hypergradient, step.net, step.method
        self.gradients, self.measured = [], []
        step.hypergradient = self

    def __call__(self, rows, request, gradient):
        if request.scope == "network":
            problem = network_problem(self.net, self.method, rows, request)
            theta = problem.start()
            self.gradients.append((gradient(), problem.train_gradient(theta.clone())))
        before, vector = self.estimator.eigenvalue, self.estimator.eigenvector
        estimate = self.estimator(rows, request, gradient)
        if self.estimator.eigenvalue is not before:
            curvature = problem.curvature(theta)
            for start in [None] if vector is None else [None, vector]:
                for products in (1, 2, 3, 9, 10, 11):
                    value, _ = largest_eigenvalue(curvature, theta, start=start, iterations=products)
                    if torch.equal(value, self.estimator.eigenvalue):
                        self.measured.append((products, start is None))
        return estimate

    def __getattr__(self, name):
        return getattr(self.estimator, name)


@pytest.mark.parametrize("bn", ["batch", "frozen", "eval", "weighted"])
@pytest.mark.parametrize("method", ["pl", "pi", "mt", "vat", "entmin"])
def test_the_gradient_that_the_step_knows_is_the_gradient(method, bn):
    """A step differentiates its own graphs; the problem evaluates the network anew. The weights are not equal."""
    step = make(method, bn, J=2, P=1)
    watched = Watched(step)
    for number in range(3):
        take(step, number)
    assert len(watched.gradients) == 3
    for told, scratch in watched.gradients:
        assert told.norm() > 1e-3
        torch.testing.assert_close(told, scratch, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("bn", ["batch", "frozen", "weighted"])
def test_the_same_with_fused_blocks(bn, fast):
    step = make("vat", bn, (1, 28, 28), fast, J=1, P=0)
    watched = Watched(step)
    take(step, 0, (1, 28, 28))
    ((told, scratch),) = watched.gradients
    assert told.norm() > 1e-3
    torch.testing.assert_close(told, scratch, rtol=1e-8, atol=1e-11)


MEASURED = [*EARLY, REFRESH, 2 * REFRESH]


def test_the_largest_eigenvalue_is_measured_anew_every_so_many_updates():
    step, at, values = make(J=1, P=1), [], []
    measured = Watched(step).measured
    for number in range(2 * REFRESH + 2):
        before = len(measured)
        outcome = take(step, number)
        if len(measured) > before:
            at.append(number)
        values.append(float(1 / outcome.estimate.step))
    assert at == MEASURED
    assert measured == [(10, True)] + [(2, False)] * (len(at) - 1)  # the later ones from the eigenvector before
    for first, last in itertools.pairwise(at):
        assert len(set(values[first:last])) == 1
    assert len(set(values)) == len(at)


@pytest.mark.parametrize("options", [{"alpha": 0.01}, {"damping": 0.1}, {"scope": "head"}])
def test_it_is_not_measured_where_the_step_is_given_or_measured_elsewhere(options):
    step = make(J=1, P=1, **options)
    watched = Watched(step)
    take(step, 0)
    take(step, 1)
    assert not watched.measured
    assert "eigenvalue" not in step.hypergradient.state_dict()


@pytest.mark.parametrize("stop", [1, REFRESH - 1, REFRESH, REFRESH + 3])
def test_a_stopped_run_goes_on_with_the_same_steps(stop):
    whole, first, second = make(J=1, P=1), make(J=1, P=1), make(J=1, P=1)
    expected = [take(whole, number) for number in range(2 * REFRESH + 1)]
    for number in range(stop):
        take(first, number)
    measured = Watched(second).measured
    state = {name: value.clone() for name, value in first.hypergradient.state_dict().items()}
    second.net.module.load_state_dict(first.net.module.state_dict())
    second.weighting.load_state_dict(first.weighting.state_dict())
    second.hypergradient.load_state_dict(state)
    for number in range(stop, len(expected)):
        outcome, before = take(second, number), expected[number]
        assert torch.equal(outcome.estimate.step, before.estimate.step)
        assert torch.equal(outcome.estimate.gradient, before.estimate.gradient)
        assert torch.equal(outcome.loss, before.loss)
    assert measured == [(2, False)] * sum(number >= stop for number in MEASURED)
    assert torch.equal(second.weighting.table, whole.weighting.table)


def test_before_the_first_update_there_is_nothing_to_store():
    step = make()
    assert step.hypergradient.state_dict() == {}
    step.hypergradient.load_state_dict({})
    take(step, 0)
    assert set(step.hypergradient.state_dict()) == {"eigenvector", "eigenvalue", "updates"}


def test_the_dense_solver_takes_the_whole_network_too():
    assert take(make(J=0, solver="exact", damping=0.1), 0).estimate.gradient.isfinite().all()
    for curvature in ("exact", "gauss-newton"):
        assert take(make(J=1, solver="cg", curvature=curvature), 0).estimate.gradient.isfinite().all()

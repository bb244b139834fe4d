"""The fast paths compute the same numbers: whole trainings with all of them on, and the same layer by layer.

In float64 every loss, parameter and weight must agree. In float32 they cannot for long. A training is chaotic: Adam
divides by the size of the gradient, ReLU and max-pooling choose, a weight is cut at 0 and 1, so that differences grow
tenfold within some fifteen steps of VAT with its usual learning rate, whichever order of summation they come from. A
tenth of that rate tames it. In float32 the first steps are compared one by one, and of the whole training the mean.
"""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

import wrssl
from wrssl.config import FitConfig
from wrssl.data import prepare
from wrssl.evaluate import logits_of
from wrssl.training import BuildContext, Callback, Plan, Trainer, TrainingData, build_network
from wrssl.training.batches import Roles

STEPS, FIRST, RATE = 200, 20, 3e-4
BATCH = {torch.float64: 6, torch.float32: 10}
CPU = torch.device("cpu")
# A batch norm takes the bias of the layer before it away again. Its gradient is 0: exactly so in the fused blocks,
# rounding noise in the layers, which Adam scales up to full steps. The loss never sees these parameters,
# only the running mean follows them.
WITHOUT_EFFECT = ("conv1.bias", "conv2.bias", "conv3.bias", "fc.bias")


@pytest.fixture(scope="module")
def images():
    """The 8x8 digits and their foreign patches, enlarged to the 28x28 of MNIST."""
    small = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)

    def enlarge(x):
        return F.interpolate(prepare(x), (28, 28), mode="bilinear")

    (x_l, y_l), (x_v, y_v) = small.labeled, small.validation
    return wrssl.Scenario((enlarge(x_l), y_l), enlarge(small.unlabeled[:400]), (enlarge(x_v[:80]), y_v[:80]))


def double_trainer(scenario, method, weights, bn, fast, weight_options):
    """As ``wrssl.fit`` puts it together, with everything that is a number in float64."""
    config = FitConfig("lenet", method, weights, bn, weight_options=weight_options, fast=fast)
    data = TrainingData.of(scenario, 0, "halves")
    candidate = BuildContext(scenario, data, config, CPU).build()
    net, base, weighting = candidate.net, candidate.method, candidate.weighting
    net.module.double()
    base.setup(net)  # once more: a teacher is a copy of the network
    candidate.prepare_weighting()
    if hasattr(weighting, "table"):
        weighting.table = weighting.table.double()
    roles = Roles(*((x.double(), y) for x, y in (data.roles.meta, data.roles.select)))
    labeled = (data.labeled[0].double(), data.labeled[1])
    data = dataclasses.replace(data, labeled=labeled, unlabeled=data.unlabeled.double(), roles=roles)
    return Trainer(data, net, base, weighting, Plan(STEPS, BATCH[torch.float64], RATE, 0, STEPS), CPU)


def is_fused(net, x):
    """Whether fused blocks compute the features: there is one of their functions in the graph."""
    layers, seen = [net.parts.backbone(x).grad_fn], set()
    while layers:
        node = layers.pop()
        if node is not None and node not in seen:
            seen.add(node)
            layers += [below for below, _ in node.next_functions]
    return any("ConvNormPool" in node.name() for node in seen)


DOUBLE = [
    ("vat", "wr-cluster", "weighted", {}),
    ("pl", "wr-cluster", "batch", {"scope": "network", "J": 1, "P": 1}),
    ("mt", "wr-instance", "frozen", {}),
]


@pytest.mark.parametrize(("method", "weights", "bn", "options"), DOUBLE, ids=lambda v: v if isinstance(v, str) else "")
def test_in_float64_whole_trainings_agree(images, method, weights, bn, options):
    losses, states, tables = [], [], []
    for fast in (True, False):
        trainer = double_trainer(images, method, weights, bn, fast, options)
        outcomes = [trainer.step(step) for step in range(STEPS)]
        assert is_fused(trainer.net, images.unlabeled[:3].double()) is fast  # else nothing would be compared
        losses.append(torch.stack([torch.stack([o.loss, o.unlabeled, o.mean_weight]) for o in outcomes]))
        states.append(trainer.net.module.state_dict())
        tables.append(trainer.weighting.table)
    assert losses[0].dtype == torch.float64
    assert tables[0].unique().numel() > 2
    torch.testing.assert_close(*losses, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(*tables, rtol=0, atol=1e-8)
    for name, value in states[0].items():
        torch.testing.assert_close(value, states[1][name], rtol=0, atol=1e-7, msg=lambda m, n=name: f"{n}: {m}")


class Losses(Callback):
    def __init__(self):
        self.values = []

    def on_step(self, trainer, outcome):
        self.values.append(float(outcome.loss))


# VAT divides by the length of a gradient that is nearly zero where the prediction is flat, as it is in the beginning.
# With its usual xi of 0.1 the perturbed pass of step 0 is 3e-4 from float64 in the last batch norm, the clean one 4e-6,
# with the fast paths and without; then a unit at -4e-6 falls on the other side of its ReLU in one of the two, and the
# losses part by up to 2e-3 within 20 steps. A search farther out has a gradient that rounding does not reach.
OPTIONS = {"vat": {"xi": 3.0}}
# Even so such a unit turns up in step 16, where the losses are 1.2e-4 apart (in float64 they agree to the end, above).
SINGLE = [("vat", "wr-cluster", 1e-4, 16), ("pl", "wr-cluster", 1e-5, FIRST), ("mt", "none", 1e-5, FIRST)]


@pytest.mark.parametrize(("method", "weights", "tolerance", "first"), SINGLE)
def test_in_float32_trainings_agree_as_long_as_they_can(images, method, weights, tolerance, first):
    losses, options = [], {"steps": STEPS, "batch_size": BATCH[torch.float32], "lr": RATE, "threads": 1}
    options["method_options"] = OPTIONS.get(method)
    for fast in (True, False):
        watcher = Losses()
        result = wrssl.fit(images, "lenet", method, weights, fast=fast, callbacks=[watcher], **options)
        assert result.config["fast"] is fast
        losses.append(torch.tensor(watcher.values))
    torch.testing.assert_close(losses[0][:first], losses[1][:first], rtol=tolerance, atol=0)
    assert float(losses[0].mean()) == pytest.approx(float(losses[1].mean()), rel=0.02)
    assert losses[0][-20:].mean() < 0.5 * losses[0][:20].mean()  # it was a training


@pytest.mark.parametrize("method", ["vat", "pl", "mt"])
def test_in_float32_the_first_steps_lead_to_the_same_parameters(images, method):
    """Measured by the way that each tensor has gone."""
    start = build_network(images, FitConfig("lenet"), CPU).module.state_dict()
    options = {"steps": 5, "batch_size": BATCH[torch.float32], "lr": RATE, "threads": 1, "budget": "paper"}
    options["method_options"] = OPTIONS.get(method)
    fast, plain = (
        wrssl.fit(images, "lenet", method, "wr-cluster", fast=fast, **options).model.state_dict()
        for fast in (True, False)
    )
    for name, before in start.items():
        if name not in WITHOUT_EFFECT and "running_mean" not in name and before.is_floating_point():
            way = (plain[name] - before).norm()
            assert (fast[name] - plain[name]).norm() < 0.01 * way, name


@pytest.mark.parametrize("model", ["lenet", "lenet-nobn"])
def test_evaluations_run_through_the_fused_blocks_and_change_nothing(images, model):
    net = build_network(images, FitConfig(model), CPU)
    net.module.double()
    net.parts.eval()
    x = images.unlabeled[:150].double()
    with torch.no_grad():  # running statistics that are not those of a new layer
        for layer in net.layers:
            layer.running_mean.uniform_(-1, 1)
            layer.running_var.uniform_(0.5, 2)
    assert is_fused(net, x)  # else nothing would be compared
    net.parts.train()
    before = {name: value.clone() for name, value in net.module.state_dict().items()}
    fused, plain = logits_of(net.joined, x, CPU), logits_of(net.module, x, CPU)
    torch.testing.assert_close(fused, plain, rtol=1e-6, atol=1e-6)  # logits_of returns float32
    assert plain.std() > 0.01
    assert all(module.training for module in (*net.module.modules(), *net.joined.modules()))
    torch.testing.assert_close(net.module.state_dict(), before, rtol=0, atol=0)

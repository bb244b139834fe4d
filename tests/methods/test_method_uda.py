"""UDA against NumPy: the sharpened target, the strict threshold before sharpening, the gradient of the strong view."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wrssl.api import OptionError, Pass
from wrssl.hypergrad import LOSSES
from wrssl.methods import METHODS

AUGMENT = 101  # the seed of the context's generator
TAU = 0.6


def by_hand(ref, twin, x, noise, tau=TAU, T=0.4):
    """(strong inputs, mask, sharpened weak prediction, r, dr/dz of the strong view)."""
    weak, strong = ref.augmented(x, AUGMENT, noise, "ws")
    z, p = twin.logits(weak), twin.probabilities(strong)
    sharp = np.exp(z / T) / np.exp(z / T).sum(1, keepdims=True)
    mask = ref.softmax(z).max(1) > tau
    return strong, mask, sharp, np.where(mask, ref.kl(sharp, p), 0.0), mask[:, None] * (p - sharp)


@pytest.fixture(params=[0.0, 0.15], ids=["augmentation", "augmentation-and-noise"])
def case(request, ref, make_net, x, make_context, shaky):
    """(net, method, views, what NumPy makes of it), with members on both sides of the threshold."""
    net, method = make_net(scale=2.0), METHODS.create("uda", {"threshold": TAU})
    views = method.views(net, x, make_context(noise=request.param, augmentation=shaky))
    hand = by_hand(ref, ref.Net(net.module), x.numpy(), request.param)
    assert 2 <= hand[1].sum() <= 7, "both sides of the threshold are needed"
    return net, method, views, hand


def test_views_and_loss(case, ref):
    net, method, views, (inputs, mask, sharp, want, _) = case
    ref.close(views.inputs, inputs)
    ref.close(views.targets, mask[:, None] * sharp)
    ref.close(views.features, ref.Net(net.module).features(inputs))
    r = method.loss(net.head(views.features), views.targets)
    ref.close(r, want)
    assert (r[torch.as_tensor(~mask)] == 0).all(), "a row of zeros has exactly no loss"
    assert (r[torch.as_tensor(mask)] > 0).all()


def test_the_weighted_mean_has_the_gradient_of_the_strong_view_alone(case, ref):
    net, method, views, (inputs, mask, sharp, _, slope) = case
    w = np.linspace(0.1, 1.0, 9)
    loss = 1.7 * (torch.as_tensor(w) * method.loss(net.head(views.features), views.targets)).mean()
    gradients = torch.autograd.grad(loss, list(net.module.parameters()))
    twin = ref.Net(net.module)

    def objective(net):  # the target is a constant
        return 1.7 * (w * mask * ref.kl(sharp, net.probabilities(inputs))).mean()

    differences = ref.slopes(objective, twin)
    closed = twin.parameter_gradients(inputs, 1.7 / 9 * w[:, None] * slope)
    for got, exact, near in zip(gradients, closed, differences, strict=True):
        ref.close(got, exact)
        ref.close(got, near, tolerance=1e-8)


def test_passes(case, ref, x):
    net, _, views, (inputs, *_) = case
    assert net.order() == [("student", Pass.UNLABELED, False), ("student", Pass.PERTURBED, True)]
    assert not np.allclose(net.calls[0].inputs.numpy(), x.numpy()), "the target comes from a view, not from x itself"
    ref.close(net.calls[1].inputs, inputs)
    assert views.kind is Pass.PERTURBED
    assert views.mixed is None


def test_the_threshold_itself_is_not_passed():
    z = torch.zeros(1, 2, dtype=torch.float64)  # p = (½, ½) without rounding
    missed = METHODS.create("uda", {"threshold": 0.5}).targets(z)
    passed = METHODS.create("uda", {"threshold": math.nextafter(0.5, 0.0)}).targets(z)
    assert missed.tolist() == [[0.0, 0.0]]
    assert passed.tolist() == [[0.5, 0.5]]


def test_the_prediction_passes_before_it_is_sharpened():
    """p = (0.7, 0.3): after sharpening (0.89, 0.11), but 0.7 does not pass 0.8."""
    z = torch.tensor([[0.7, 0.3], [0.85, 0.15]], dtype=torch.float64).log()
    method = METHODS.create("uda")
    assert (z / 0.4).softmax(1).max(1).values.min() > 0.8
    target = method.targets(z)
    assert target[0].tolist() == [0.0, 0.0]
    a, b = 0.85**2.5, 0.15**2.5
    assert target[1].tolist() == pytest.approx([a / (a + b), b / (a + b)], abs=1e-14)


@pytest.mark.parametrize("T", [0.1, 0.4, 1.0, 3.0])
def test_sharpening(T, ref):
    z = 2 * ref.normal(20, 4, seed=1)
    p = ref.softmax(z.numpy())
    sharp = p ** (1 / T) / (p ** (1 / T)).sum(1, keepdims=True)
    ref.close(METHODS.create("uda", {"T": T, "threshold": 0.0}).targets(z), sharp)


def test_the_divergence_by_hand():
    z, t = torch.zeros(3, 2, dtype=torch.float64), torch.tensor([[0.75, 0.25], [1.0, 0.0], [0.0, 0.0]]).double()
    r = METHODS.create("uda").loss(z, t)
    want = [0.75 * math.log(1.5) + 0.25 * math.log(0.5), math.log(2), 0.0]
    assert r.tolist() == pytest.approx(want, abs=1e-15)
    assert r[2] == 0


def test_a_strong_view_that_shows_the_target_has_no_loss(ref):
    z = ref.normal(6, 3, seed=2)
    r = METHODS.create("uda").loss(z, z.softmax(1))
    torch.testing.assert_close(r, torch.zeros(6, dtype=torch.float64), rtol=0, atol=1e-14)


def test_saturated_predictions_stay_finite():
    z = torch.tensor([[200.0, 0.0, 0.0], [0.0, 200.0, 0.0]], requires_grad=True)
    method = METHODS.create("uda")
    r = method.loss(z, method.targets(torch.tensor([[300.0, 0.0, 0.0], [300.0, 0.0, 0.0]])))
    r.sum().backward()
    assert torch.isfinite(r).all()
    assert torch.isfinite(z.grad).all()


def test_the_closed_form_differs_from_the_loss_by_a_constant(case):
    net, method, views, _ = case
    z = net.head(views.features).detach()
    others = [method.loss(moved, views.targets) - LOSSES["ce"].value(moved, views.targets) for moved in (z, 3 * z + 1)]
    torch.testing.assert_close(*others, rtol=1e-12, atol=1e-12)


def test_without_augmentation_and_noise_both_views_are_the_batch(make_net, x, make_context):
    net, method = make_net(), METHODS.create("uda", {"T": 1.0, "threshold": 0.0})
    views = method.views(net, x, make_context())
    assert views.inputs is x
    assert torch.equal(net.calls[0].inputs, x)
    assert method.loss(net.head(views.features), views.targets).abs().max() < 1e-14


def test_options(make_net):
    method = METHODS.create("uda")
    assert (method.threshold, method.T, method.coef, method.lr) == (0.8, 0.4, 1.0, 3e-3)
    for T in (0.0, -1.0, math.nan):
        with pytest.raises(OptionError, match="temperature T of uda must be above 0"):
            METHODS.create("uda", {"T": T})

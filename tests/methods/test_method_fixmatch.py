"""FixMatch against NumPy: the hard label of the weak view, the inclusive threshold, the gradient of the strong view."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from wrssl.api import Pass
from wrssl.methods import METHODS

AUGMENT = 101  # the seed of the context's generator
TAU = 0.6


@pytest.fixture(params=[0.0, 0.15], ids=["augmentation", "augmentation-and-noise"])
def case(request, ref, make_net, x, make_context, shaky):
    """(net, method, views, strong inputs, mask, labels by NumPy)."""
    net, method = make_net(scale=2.0), METHODS.create("fixmatch", {"threshold": TAU})
    views = method.views(net, x, make_context(noise=request.param, augmentation=shaky))
    weak, strong = ref.augmented(x.numpy(), AUGMENT, request.param, "ws")
    p = ref.Net(net.module).probabilities(weak)
    mask, label = p.max(1) >= TAU, p.argmax(1)
    assert 2 <= mask.sum() <= 7, "both sides of the threshold are needed"
    decided = ref.Net(net.module).probabilities(strong).argmax(1)
    assert (decided != label)[mask].any(), "the views never disagree, so the test could not tell them apart"
    return net, method, views, strong, mask, label


def test_views_and_loss(case, ref):
    net, method, views, inputs, mask, label = case
    p = ref.Net(net.module).probabilities(inputs)
    ref.close(views.inputs, inputs)
    ref.close(views.targets, mask[:, None] * np.eye(3)[label])
    r = method.loss(net.head(views.features), views.targets)
    ref.close(r, np.where(mask, -np.log(p[np.arange(9), label]), 0.0))
    assert (r[torch.as_tensor(~mask)] == 0).all()


def test_the_weighted_mean_has_the_gradient_of_the_strong_view_alone(case, ref):
    net, method, views, inputs, mask, label = case
    w, twin = np.linspace(1.0, 0.2, 9), ref.Net(net.module)
    loss = 0.6 * (torch.as_tensor(w) * method.loss(net.head(views.features), views.targets)).mean()
    gradients = torch.autograd.grad(loss, list(net.module.parameters()))

    def objective(net):
        return 0.6 * (w * mask * -np.log(net.probabilities(inputs)[np.arange(9), label])).mean()

    slope = (0.6 / 9 * w * mask)[:, None] * (twin.probabilities(inputs) - np.eye(3)[label])
    closed, differences = twin.parameter_gradients(inputs, slope), ref.slopes(objective, twin)
    for got, exact, near in zip(gradients, closed, differences, strict=True):
        ref.close(got, exact)
        ref.close(got, near, tolerance=1e-8)


def test_passes(case, ref, x):
    net, _, views, inputs, *_ = case
    assert net.order() == [("student", Pass.UNLABELED, False), ("student", Pass.PERTURBED, True)]
    assert not np.allclose(net.calls[0].inputs.numpy(), x.numpy())
    ref.close(net.calls[1].inputs, inputs)
    assert views.kind is Pass.PERTURBED


def test_the_threshold_itself_is_confident():
    z = torch.zeros(1, 2, dtype=torch.float64)  # p = (½, ½) without rounding
    assert METHODS.create("fixmatch", {"threshold": 0.5}).targets(z).tolist() == [[1.0, 0.0]]
    assert METHODS.create("fixmatch", {"threshold": math.nextafter(0.5, 1.0)}).targets(z).tolist() == [[0.0, 0.0]]


def test_below_the_threshold_loss_and_gradient_are_exactly_zero(ref):
    method = METHODS.create("fixmatch", {"threshold": 0.999999})
    z = ref.normal(30, 4, seed=3).requires_grad_()
    r = method.loss(z, method.targets(z.detach()))
    (gradient,) = torch.autograd.grad(r.sum(), z)
    assert (r == 0).all()
    assert (gradient == 0).all()


def test_without_augmentation_and_noise_it_is_pseudo_label(make_net, x, make_context):
    losses, gradients = [], []
    for name in ("fixmatch", "pl"):
        net, method = make_net(scale=3.0), METHODS.create(name, {"threshold": TAU})
        views = method.views(net, x, make_context())
        r = method.loss(net.head(views.features), views.targets)
        losses.append(r)
        gradients.append(torch.autograd.grad(r.sum(), list(net.module.parameters())))
    assert (losses[0] > 0).any()
    torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=0)
    for mine, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-14)


def test_the_defaults():
    method = METHODS.create("fixmatch")
    assert (method.threshold, method.coef, method.lr, method.curvature) == (0.95, 1.0, 3e-3, "ce")

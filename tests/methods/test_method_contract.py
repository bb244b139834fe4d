"""What every base method promises: its passes, one loss per example, constant targets, own randomness only."""

from __future__ import annotations

import copy

import pytest
import torch

from wrssl.api import OptionError, Pass
from wrssl.hypergrad.zspace import LOSSES
from wrssl.methods import METHODS, list_methods

U, P, T = Pass.UNLABELED, Pass.PERTURBED, Pass.TEACHER
# The passes of one step in their order: who, which kind, with a graph.
PASSES = {
    "supervised": [("student", U, True)],
    "pl": [("student", U, True)],
    "pi": [("student", U, True), ("student", P, False)],
    "mt": [("student", U, True), ("teacher", T, False)],
    "vat": [("student", U, False), ("student", P, True), ("student", P, True)],
    "entmin": [("student", U, True)],
}
VARIANTS = [
    ("supervised", {}),
    ("pl", {"threshold": 0.5}),
    ("pl", {"threshold": 0.5, "compat": "oliver"}),
    ("pl", {"threshold": 0.5, "compat": "wrssl"}),
    ("pi", {}),
    ("mt", {}),
    ("vat", {}),
    ("vat", {"kl": "miyato"}),
    ("entmin", {}),
]
# The coefficients and learning rates of the paper's table; entmin's of VAT+EM.
DEFAULTS = {
    "supervised": (0.0, 3e-3),
    "pl": (1.0, 3e-4),
    "pi": (20.0, 3e-3),
    "mt": (8.0, 4e-4),
    "vat": (0.3, 3e-3),
    "entmin": (0.06, 3e-3),
}


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *map(str, v[1].values())]))
def case(request, make_net):
    name, options = request.param
    net, method = make_net(), METHODS.create(name, options)
    method.setup(net)
    return name, method, net


def test_the_methods_of_this_version():
    assert set(list_methods()) >= set(PASSES)


def test_passes_and_their_order(case, x, make_context):
    name, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    assert net.order() == PASSES[name]
    last = [c for c in net.calls if c.who == "student" and c.gradient][-1]
    assert views.kind is last.kind
    assert torch.equal(views.inputs, last.inputs), "views.inputs is not what went into the pass that learns"


def test_views_hold_attached_features_and_constant_targets(case, x, make_context):
    _, method, net = case
    before = x.clone()
    views = method.views(net, x, make_context(noise=0.1))
    assert views.features.requires_grad
    torch.testing.assert_close(views.features, net.module[:-1](views.inputs))
    assert views.features.shape == (9, 6)
    assert len(views.targets) == 9
    assert not views.targets.requires_grad
    assert not views.inputs.requires_grad
    assert torch.equal(x, before), "the batch itself was changed"
    assert all(p.grad is None for p in net.module.parameters()), "views left gradients behind"


def test_one_loss_per_example(case, x, make_context):
    _, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    logits = net.head(views.features)
    r = method.loss(logits, views.targets)
    assert r.shape == (9,)
    assert r.min() >= 0
    # Row j depends on row j alone, and the loss is a pure function.
    rows = torch.tensor([4, 0, 7])
    torch.testing.assert_close(method.loss(logits[rows], views.targets[rows]), r[rows], rtol=1e-12, atol=1e-15)
    assert torch.equal(method.loss(logits, views.targets), r)
    assert method.loss(logits[:1], views.targets[:1]).shape == (1,)


def test_no_gradient_reaches_the_targets(case, x, make_context):
    _, method, net = case
    if method.uses_unlabeled:
        views = method.views(net, x, make_context(noise=0.1))
        method.loss(net.head(views.features), views.targets).sum().backward()
        assert all(p.grad is not None for p in net.module.parameters())
    if getattr(method, "teacher", None) is not None:
        assert all(p.grad is None and not p.requires_grad for p in method.teacher.parameters())


def test_the_named_closed_form_has_the_gradient_of_the_loss(case, x, make_context):
    """The last-layer hypergradient uses the closed form instead of ``loss``; they may differ by a constant."""
    name, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    z = net.head(views.features).detach().requires_grad_()
    r = method.loss(z, views.targets)
    if method.curvature is None:
        assert name == "supervised"
        return
    (gradient,) = torch.autograd.grad(r.sum(), z)
    closed = LOSSES[method.curvature].gradient(z.detach(), views.targets)
    torch.testing.assert_close(closed, gradient, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_random_numbers_come_from_the_generator_of_their_kind(case, x, make_context, noise, global_rng_untouched):
    name, method, net = case
    context, fresh = make_context(noise=noise), make_context()
    views = method.views(net, x, context)
    method.loss(net.head(views.features), views.targets).sum()
    method.after_step(net, 0)
    augmented = not torch.equal(context.augment.get_state(), fresh.augment.get_state())
    attacked = not torch.equal(context.attack.get_state(), fresh.attack.get_state())
    assert augmented == (name in ("pi", "mt") and noise > 0)
    assert attacked == (name == "vat")


def test_equal_generators_give_equal_views_and_others_do_not(case, x, make_context):
    name, method, net = case
    one, two = (method.views(net, x, make_context(noise=0.1)) for _ in range(2))
    assert torch.equal(one.inputs, two.inputs)
    assert torch.equal(one.targets, two.targets)
    if name in ("pi", "mt", "vat"):
        context = make_context(noise=0.1)
        context.augment.manual_seed(1)
        context.attack.manual_seed(1)
        assert not torch.allclose(method.views(net, x, context).inputs, one.inputs)


def test_a_second_look_at_float32_and_images(case, make_context):
    """Inputs of any shape and type: images in float32."""
    _, method, net = case
    net.module = torch.nn.Sequential(torch.nn.Flatten(), *copy.deepcopy(net.module).float())
    method.setup(net)
    images = torch.randn(5, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    views = method.views(net, images, make_context(noise=0.1))
    r = method.loss(net.head(views.features), views.targets)
    assert views.inputs.shape == images.shape
    assert r.shape == (5,)
    assert r.dtype == torch.float32
    assert torch.isfinite(r).all()


@pytest.mark.parametrize("name", PASSES)
def test_defaults(name):
    method = METHODS.create(name)
    assert (method.coef, method.lr) == DEFAULTS[name]
    assert method.uses_unlabeled == (name != "supervised")
    assert method.summary
    assert "\n" not in method.summary


@pytest.mark.parametrize("name", [n for n in PASSES if n != "supervised"])
def test_coefficient_and_learning_rate_are_options(name):
    method = METHODS.create(name, {"coef": 0.125, "lr": 0.25})
    assert (method.coef, method.lr) == (0.125, 0.25)


@pytest.mark.parametrize("name", PASSES)
def test_an_unknown_option_is_a_sentence(name):
    with pytest.raises(OptionError, match=f"The method '{name}' has no option 'temperature'; its options are: "):
        METHODS.create(name, {"temperature": 1.0})

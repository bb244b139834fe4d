"""What every base method promises: its passes, one loss per row, constant targets, own randomness only."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch

from wrssl.api import OptionError, Pass
from wrssl.hypergrad import automatic, logit_loss
from wrssl.methods import METHODS, list_methods

U, P, T = Pass.UNLABELED, Pass.PERTURBED, Pass.TEACHER
# The passes of one step in their order: network, kind, with a graph or not.
PASSES = {
    "supervised": [("student", U, True)],
    "pl": [("student", U, True)],
    "pi": [("student", U, True), ("student", P, False)],
    "mt": [("student", U, True), ("teacher", T, False)],
    "vat": [("student", U, False), ("student", P, True), ("student", P, True)],
    "entmin": [("student", U, True)],
    "uda": [("student", U, False), ("student", P, True)],
    "mixmatch": [("student", U, False), ("student", P, False), ("student", P, True)],
    "fixmatch": [("student", U, False), ("student", P, True)],
}
AUGMENTED = {"pi", "mt", "uda", "mixmatch", "fixmatch"}  # of the methods that augment their inputs
VARIANTS = [
    ("supervised", {}),
    ("pl", {"threshold": 0.5}),
    ("pi", {}),
    ("mt", {}),
    ("vat", {}),
    ("vat", {"kl": "miyato"}),
    ("entmin", {}),
    ("uda", {"threshold": 0.5}),
    ("mixmatch", {"ramp": 0.0}),
    ("mixmatch", {"ramp": 0.0, "mix_within": "pool"}),
    ("fixmatch", {"threshold": 0.5}),
]
# The coefficients and learning rates of the paper's table; entmin's of VAT+EM; those of the last three for Adam.
DEFAULTS = {
    "supervised": (0.0, 3e-3),
    "pl": (1.0, 3e-4),
    "pi": (20.0, 3e-3),
    "mt": (8.0, 4e-4),
    "vat": (0.3, 3e-3),
    "entmin": (0.06, 3e-3),
    "uda": (1.0, 3e-3),
    "mixmatch": (75.0, 3e-3),
    "fixmatch": (1.0, 3e-3),
}


@pytest.fixture(params=VARIANTS, ids=lambda v: "-".join([v[0], *map(str, v[1].values())]))
def case(request, make_net):
    name, options = request.param
    net, method = make_net(), METHODS.create(name, options)
    method.setup(net)
    return name, method, net


@pytest.fixture
def make_context(make_context, labeled):
    """With the labeled batch, which the step gives to every method."""
    return partial(make_context, labeled=labeled)


def number_of_rows(method, members=9, labels=5):
    """One row per member; the labeled batch and two views of each member where rows are mixed."""
    return labels + 2 * members if method.mixes_labeled else members


def test_the_methods_of_this_version():
    assert set(list_methods()) >= set(PASSES)


def test_passes_and_their_order(case, x, make_context):
    name, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    assert net.order() == PASSES[name]
    last = [c for c in net.calls if c.network == "student" and c.gradient][-1]
    assert views.kind is last.kind
    assert torch.equal(views.inputs, last.inputs), "views.inputs is not what went into the pass that learns"


def test_views_hold_attached_features_and_constant_targets(case, x, make_context):
    _, method, net = case
    before = x.clone()
    views = method.views(net, x, make_context(noise=0.1))
    assert views.features.requires_grad
    torch.testing.assert_close(views.features, net.module[:-1](views.inputs))
    rows = number_of_rows(method)
    assert views.features.shape == (rows, 6)
    assert len(views.inputs) == len(views.targets) == rows
    assert not views.targets.requires_grad
    assert not views.inputs.requires_grad
    assert torch.equal(x, before), "the batch itself was changed"
    assert all(p.grad is None for p in net.module.parameters()), "views left gradients behind"


def test_rows_are_the_batch_unless_they_say_where_they_come_from(case, x, make_context):
    _, method, net = case
    mixed = method.views(net, x, make_context(noise=0.1)).mixed
    assert (mixed is not None) == method.mixes_labeled
    assert [c.mixed is not None for c in net.calls] == [False] * (len(net.calls) - 1) + [mixed is not None]
    if mixed is not None:
        assert net.calls[-1].mixed is mixed, "the pass must know whose weights its rows have"
        assert mixed.first.shape == mixed.second.shape == mixed.share.shape == (number_of_rows(method),)
        assert mixed.first.tolist() == [-1] * 5 + [*range(9)] * 2
        assert sorted(mixed.second.tolist()) == sorted(mixed.first.tolist())
        assert ((mixed.share >= 0.5) & (mixed.share <= 1)).all()


def test_one_loss_per_row(case, x, make_context):
    _, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    logits = net.head(views.features)
    r = method.loss(logits, views.targets)
    assert r.shape == (number_of_rows(method),)
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
    _, method, net = case
    views = method.views(net, x, make_context(noise=0.1))
    z = net.head(views.features).detach().requires_grad_()
    r = method.loss(z, views.targets)
    if not method.uses_unlabeled:
        return
    (gradient,) = torch.autograd.grad(r.sum(), z)
    form = automatic(method.loss) if method.curvature is None else logit_loss(method.curvature)
    closed = form.gradient(z.detach(), views.targets)
    torch.testing.assert_close(closed, gradient, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_random_numbers_come_from_the_generator_of_their_kind(
    case, x, make_context, noise, augmented, shaky, global_rng_untouched
):
    name, method, net = case
    context, fresh = make_context(noise=noise, augmentation=shaky if augmented else None), make_context()
    views = method.views(net, x, context)
    method.loss(net.head(views.features), views.targets).sum()
    method.after_step(net, 0)
    drawn = not torch.equal(context.augment.get_state(), fresh.augment.get_state())
    attacked = not torch.equal(context.attack.get_state(), fresh.attack.get_state())
    assert drawn == (name == "mixmatch" or (name in AUGMENTED and (noise > 0 or augmented)))
    assert attacked == (name == "vat")


def test_equal_generators_give_equal_views_and_others_do_not(case, x, make_context):
    name, method, net = case
    one, two = (method.views(net, x, make_context(noise=0.1)) for _ in range(2))
    assert torch.equal(one.inputs, two.inputs)
    assert torch.equal(one.targets, two.targets)
    if name in AUGMENTED | {"vat"}:
        context = make_context(noise=0.1)
        context.augment.manual_seed(1)
        context.attack.manual_seed(1)
        assert not torch.allclose(method.views(net, x, context).inputs, one.inputs)


def test_images_in_float32(case, make_context):
    """Inputs have any shape and floating-point type."""
    _, method, net = case
    net.module = torch.nn.Sequential(torch.nn.Flatten(), *copy.deepcopy(net.module).float())
    method.setup(net)
    images = torch.randn(5, 1, 2, 2, generator=torch.Generator().manual_seed(1))
    known = images[:3] + 1, torch.tensor([0, 2, 1])
    views = method.views(net, images, make_context(noise=0.1, labeled=known))
    r = method.loss(net.head(views.features), views.targets)
    rows = number_of_rows(method, 5, 3)
    assert views.inputs.shape == (rows, 1, 2, 2)
    assert r.shape == (rows,)
    assert views.inputs.dtype == views.targets.dtype == r.dtype == torch.float32
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


@pytest.mark.parametrize("name", PASSES)
def test_augmentation_reaches_the_inputs_of_methods_that_augment(name, x, make_net, make_context, shaky):
    inputs = []
    for augmentation in (None, shaky):
        net, method = make_net(), METHODS.create(name)
        method.setup(net)
        method.views(net, x, make_context(augmentation=augmentation))
        inputs.append([call.inputs for call in net.calls])
    changed = [not torch.equal(plain, view) for plain, view in zip(*inputs, strict=True)]
    assert changed == [name in AUGMENTED] * len(changed)

"""MixMatch against NumPy: guesses, mixtures, the published loss and its gradient, and the weights of mixed rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch
from torch import nn

from wrssl.api import OptionError, Pass
from wrssl.hypergrad import LOSSES, HeadProblem, HeadRows, automatic, check_head
from wrssl.methods import METHODS
from wrssl.methods.mixed_rows import Mixed, beta, blend
from wrssl.models import split
from wrssl.norm import convert_batchnorm
from wrssl.training import PolicyNet

AUGMENT = 101  # the seed of the context's generator
W = np.linspace(0.05, 0.95, 9)


class ByHand:
    """One step in NumPy, with the random numbers of the context's generator."""

    def __init__(self, ref, twin, x, labeled, noise, K=2, T=0.5, alpha=0.75, within="all"):
        generator = torch.Generator().manual_seed(AUGMENT)

        def normal(like):
            return torch.randn(like.shape, generator=generator, dtype=torch.float64).numpy()

        known, y = labeled[0].numpy(), labeled[1].numpy()
        if noise:
            known = known + noise * normal(known)
        augmented = []
        for _ in range(K):
            view = x + 0.2 * normal(x)
            augmented.append(view + noise * normal(x) if noise else view)
        mean = sum(twin.probabilities(view) for view in augmented) / K
        self.augmented, self.q = augmented, mean ** (1 / T) / (mean ** (1 / T)).sum(1, keepdims=True)
        self.B_l, self.B_u, self.R = len(known), len(x), len(known) + K * len(x)

        uniform = torch.rand(self.R, generator=generator, dtype=torch.float64).numpy()
        drawn = scipy.stats.beta(alpha, alpha).ppf(uniform)
        self.share = np.where(drawn > 0.5, drawn, 1 - drawn)
        if within == "all":
            self.partner = torch.randperm(self.R, generator=generator).numpy()
        else:
            ours, theirs = (torch.randperm(n, generator=generator).numpy() for n in (self.B_l, K * self.B_u))
            self.partner = np.concatenate([ours, self.B_l + theirs])
        rows, labels = np.concatenate([known, *augmented]), np.concatenate([np.eye(3)[y], *[self.q] * K])
        self.source = [-1] * self.B_l + [*range(self.B_u)] * K
        self.inputs, self.labels = np.zeros_like(rows), np.zeros_like(labels)
        for i, (s, j) in enumerate(zip(self.share, self.partner, strict=True)):
            self.inputs[i] = s * rows[i] + (1 - s) * rows[j]
            self.labels[i] = s * labels[i] + (1 - s) * labels[j]

    def weights(self, w):
        """Row by row, with 1 for labeled sources; two views of the same member weigh what it weighs."""
        rows = []
        for place, partner in enumerate(self.partner):
            sources = {self.source[place], self.source[partner]} - {-1}
            rows.append(math.prod(float(w[member]) for member in sources))
        return np.array(rows)

    def published(self, twin, w, strength):
        """(1/B_l) Σ w CE + λ_U (1/(K B_u)) Σ w (1/C) ‖q' − p‖²; inputs and labels are constants."""
        p, n = twin.probabilities(self.inputs), self.B_l
        entropy, square = -(self.labels * np.log(p)).sum(1), ((self.labels - p) ** 2).sum(1) / 3
        rows = self.weights(w)
        return (rows * entropy)[:n].sum() / n + strength * (rows * square)[n:].sum() / (self.R - n)


CASES = {
    "default": ({}, 0.0, 20),
    "noise": ({}, 0.15, 40),
    "three-views": ({"K": 3, "T": 0.3, "ramp": 0.0}, 0.0, 0),
    "one-view": ({"K": 1, "ramp": 1.0}, 0.15, 30),
    "within-the-pool": ({"mix_within": "pool", "alpha": 0.4, "coef": 3.0}, 0.0, 90),
}
STRENGTH = {"default": 37.5, "noise": 75.0, "three-views": 75.0, "one-view": 22.5, "within-the-pool": 3.0}


@pytest.fixture(params=CASES)
def case(request, ref, make_net, x, labeled, make_context, shaky):
    """(net, method, views, the same by hand, λ_U · ramp)."""
    options, noise, step = CASES[request.param]
    net, method = make_net(), METHODS.create("mixmatch", options)
    views = method.views(net, x, make_context(step, noise=noise, augmentation=shaky, labeled=labeled))
    same = {name: options[name] for name in ("K", "T", "alpha") if name in options}
    hand = ByHand(ref, ref.Net(net.module), x.numpy(), labeled, noise, within=options.get("mix_within", "all"), **same)
    return net, method, views, hand, STRENGTH[request.param]


def test_mixed_inputs_and_targets(case, ref):
    net, _, views, hand, _ = case
    ref.close(views.mixed.share, hand.share)
    ref.close(views.inputs, hand.inputs)
    ref.close(views.targets[:, :3], hand.labels)
    ref.close(views.features, ref.Net(net.module).features(hand.inputs))
    assert views.targets.shape == (hand.R, 5)
    assert views.mixed.first.tolist() == hand.source
    assert views.mixed.second.tolist() == [hand.source[j] for j in hand.partner]


def test_coefficient_times_weighted_mean_is_the_published_loss(case, ref):
    """With the weights of the rows, as the training step combines them: the value, and the slope of every parameter."""
    net, method, views, hand, strength = case
    r = method.loss(net.head(views.features), views.targets)
    w = views.mixed.weights(torch.as_tensor(W))
    loss = method.coef * (w * r).mean()
    twin = ref.Net(net.module)
    assert loss.item() == pytest.approx(hand.published(twin, W, strength), rel=1e-12)
    plain = method.coef * r.mean()
    assert plain.item() == pytest.approx(hand.published(twin, np.ones(9), strength), rel=1e-12)
    gradients = torch.autograd.grad(loss, list(net.module.parameters()))
    for got, near in zip(gradients, ref.slopes(lambda n: hand.published(n, W, strength), twin), strict=True):
        ref.close(got, near, tolerance=2e-8)


def test_passes(case, ref):
    net, method, views, hand, _ = case
    guesses = [("student", Pass.UNLABELED, False), *[("student", Pass.PERTURBED, False)] * (method.K - 1)]
    assert net.order() == [*guesses, ("student", Pass.PERTURBED, True)]
    for call, view in zip(net.calls, hand.augmented, strict=False):
        ref.close(call.inputs, view)
        assert call.mixed is None
    assert net.calls[-1].mixed is views.mixed
    assert views.kind is Pass.PERTURBED


def test_labeled_rows_are_augmented_already(make_net, x, labeled, make_context, shaky):
    """The loop augments the labeled batch, for every method alike; only noise is added here."""
    method = METHODS.create("mixmatch", {"alpha": 1e-9, "mix_within": "pool"})  # λ' = 1: nothing is mixed
    views = method.views(make_net(), x, make_context(augmentation=shaky, labeled=labeled))
    assert torch.allclose(views.inputs[:5], labeled[0], rtol=0, atol=1e-6)  # λ' is 1 up to rounding
    assert not torch.isclose(views.inputs[5:14], x).any()


def test_sharpening_by_hand(ref, make_net, x):
    net, p = make_net(), None
    for T, power in ((0.5, 2), (1.0, 1), (0.25, 4)):
        q = METHODS.create("mixmatch", {"T": T}).guess(net, [x, x + 1])
        p = (net.logits(x, Pass.UNLABELED).softmax(1) + net.logits(x + 1, Pass.UNLABELED).softmax(1)) / 2
        assert not q.requires_grad
        ref.close(q, (p**power / (p**power).sum(1, keepdim=True)).detach().numpy())


def test_a_cold_guess_does_not_underflow(make_net, x):
    net = make_net()
    q = METHODS.create("mixmatch", {"T": 1e-4, "K": 1}).guess(net, [x])
    torch.testing.assert_close(q.sum(1), torch.ones(9, dtype=q.dtype))
    assert (q.max(1).values > 0.999).all()


@pytest.mark.parametrize("step", [0, 10, 40, 41, 100])
def test_the_ramp(step, make_context):
    context = make_context(step)  # of 100 steps
    want = {0.4: min(1.0, step / 40), 1.0: step / 100, 0.0: 1.0}
    for ramp, strength in want.items():
        assert METHODS.create("mixmatch", {"ramp": ramp}).strength(context) == pytest.approx(strength, abs=1e-15)


def test_in_the_first_step_the_labels_alone_count(make_net, x, labeled, make_context):
    net, method = make_net(), METHODS.create("mixmatch")
    views = method.views(net, x, make_context(labeled=labeled))
    r = method.loss(net.head(views.features), views.targets)
    assert (r[:5] > 0).all()
    assert (r[5:] == 0).all()


def test_rows_of_a_kind_stay_among_themselves(generator):
    pool, whole = (METHODS.create("mixmatch", {"mix_within": within}) for within in ("pool", "all"))
    partner = pool.partners(5, 23, generator)
    assert sorted(partner[:5].tolist()) == [*range(5)]
    assert sorted(partner[5:].tolist()) == [*range(5, 23)]
    partner = whole.partners(5, 23, generator)
    assert sorted(partner.tolist()) == [*range(23)]
    assert (partner[:5] >= 5).any()


@pytest.mark.parametrize("alpha", [0.1, 0.75, 1.0, 8.0])
def test_shares_have_the_beta_distribution(alpha, generator):
    draws = beta(alpha, 4000, generator)
    assert draws.dtype == torch.float64
    assert scipy.stats.kstest(draws.numpy(), scipy.stats.beta(alpha, alpha).cdf).pvalue > 0.01


@pytest.mark.parametrize("alpha", [1e-9, 1e-3, 1e6])
def test_extreme_parameters_give_shares(alpha, generator):
    draws = beta(alpha, 500, generator)
    assert ((draws >= 0) & (draws <= 1)).all()


def test_blend_takes_rows_of_any_shape(ref):
    images, partner = ref.normal(4, 2, 3, 3, seed=1), torch.tensor([2, 0, 3, 1])
    share = torch.tensor([1.0, 0.5, 0.0, 0.9])
    got = blend(images, partner, share)
    for i in range(4):
        s = share[i].double()
        torch.testing.assert_close(got[i], s * images[i] + (1 - s) * images[partner[i]])


# Weights of mixed rows.


FIRST, SECOND = torch.tensor([-1, -1, 0, 1, 2, 1, 0]), torch.tensor([-1, 1, -1, 2, 1, 1, 3])
SHARE = torch.tensor([0.8, 0.9, 0.7, 0.6, 0.75, 0.5, 1.0], dtype=torch.float64)


@pytest.fixture
def mixed():
    """Rows of a batch of 4: labeled, labeled with 1, 0 with labeled, 1 with 2, 2 with 1, 1 with itself, 0 with 3."""
    return Mixed(FIRST, SECOND, SHARE)


@pytest.fixture
def linear():
    return Mixed(FIRST, SECOND, SHARE, "linear")


def test_weights_of_rows_by_hand(mixed, linear):
    w = torch.tensor([0.2, 0.4, 1.0, 0.6], dtype=torch.float64)
    assert mixed.weights(w).tolist() == pytest.approx([1.0, 0.4, 0.2, 0.4, 0.4, 0.4, 0.2 * 0.6], abs=1e-15)
    want = [1.0, 0.9 + 0.1 * 0.4, 0.7 * 0.2 + 0.3, 0.6 * 0.4 + 0.4, 0.75 + 0.25 * 0.4, 0.4, 0.2]
    assert linear.weights(w).tolist() == pytest.approx(want, abs=1e-15)
    for rule in (mixed, linear):
        assert rule.weights(torch.ones(4)).tolist() == pytest.approx([1.0] * 7), "without weights nothing changes"


def test_a_member_without_weight_is_gone_from_every_row(mixed, linear):
    w = torch.tensor([0.2, 0.0, 1.0, 0.6], dtype=torch.float64)
    rows, others = mixed.weights(w), linear.weights(w)
    involved = (FIRST == 1) | (SECOND == 1)
    assert torch.equal(rows == 0, involved)
    assert others[3] == pytest.approx(0.4), "linear: first 1, partner 2: (1 − λ') w_2"
    assert others[4] == pytest.approx(0.75), "linear: first 2, partner 1: λ' w_2"
    assert others[5] == 0.0, "mixed with itself"
    assert others[1] == pytest.approx(0.9), "labeled, with an outlier as partner"


@pytest.mark.parametrize("rule", ["product", "linear"])
def test_the_gradient_is_the_derivative_of_the_weights(rule):
    mixed, generator = Mixed(FIRST, SECOND, SHARE, rule), torch.Generator().manual_seed(3)
    w, g = (torch.randn(n, generator=generator, dtype=torch.float64) for n in (4, 7))
    leaf = w.clone().requires_grad_()
    (want,) = torch.autograd.grad(mixed.weights(leaf) @ g, leaf)
    torch.testing.assert_close(mixed.gradient(g, w), want, atol=1e-14, rtol=1e-13)


def test_the_weights_of_rows_against_the_second_computation(case):
    *_, views, hand, _ = case
    np.testing.assert_allclose(views.mixed.weights(torch.as_tensor(W)).numpy(), hand.weights(W), rtol=1e-12)


def test_the_gradient_of_the_loss_by_the_weights_of_members(case):
    net, method, views, *_ = case
    r = method.loss(net.head(views.features), views.targets).detach()
    w = torch.as_tensor(W).requires_grad_()
    (want,) = torch.autograd.grad(method.coef * (views.mixed.weights(w) * r).mean(), w)
    torch.testing.assert_close(views.mixed.gradient(method.coef * r / len(r), w.detach()), want)


def test_what_rows_say_about_members(mixed, ref):
    rows = ref.normal(7, 2, seed=4)
    got = mixed.of_members(rows, 4)
    for member, places in enumerate(([2, 6], [3, 5], [4], [])):
        want = rows[places].mean(0) if places else torch.zeros(2, dtype=rows.dtype)
        torch.testing.assert_close(got[member], want)
    torch.testing.assert_close(mixed.of_members(rows[:, 0], 4), got[:, 0])


def test_of_members_averages_over_the_views(case):
    *_, method, views, hand, _ = case
    p = views.features.detach()
    augmented = p[hand.B_l :].view(method.K, 9, -1)
    torch.testing.assert_close(views.mixed.of_members(p, 9), augmented.mean(0))


# The hypergradient's view of it.


def test_automatic_derivatives_of_the_loss(case, ref):
    """The targets have two columns more than there are classes; the loss is a sum of two with closed forms."""
    net, method, views, *_ = case
    z, form = net.head(views.features).detach(), automatic(method.loss)
    q, a, b = views.targets[:, :3], views.targets[:, 3:4], views.targets[:, 4:]
    u = ref.normal(*z.shape, seed=8)
    ce, mse = LOSSES["ce"], LOSSES["mse"]
    torch.testing.assert_close(form.gradient(z, views.targets), a * ce.gradient(z, q) + b * mse.gradient(z, q))
    closed = a * ce.hessian(z, q)(u) + b * mse.hessian(z, q)(u)
    torch.testing.assert_close(form.hessian(z, views.targets)(u), closed)
    assert ((u * form.gauss_newton(z, views.targets)(u)).sum(1) >= -1e-12).all()


def test_the_head_hypergradient_of_mixed_rows(case, ref, labeled):
    net, method, views, *_ = case
    h_v = net.features(labeled[0] + 0.3, Pass.VALIDATION)
    empty = HeadRows(labeled[0].new_zeros(0, 6), labeled[1][:0])  # there is no other labeled term
    problem = HeadProblem(
        net.head.weight,
        net.head.bias,
        empty,
        HeadRows(views.features, views.targets),
        HeadRows(h_v, labeled[1]),
        views.mixed.weights(torch.as_tensor(W)),
        zloss=automatic(method.loss),
        coef=method.coef,
        ridge=0.1,
    )
    torch.testing.assert_close(
        problem.train_loss(problem.start()),
        method.coef * (problem.w * method.loss(net.head(views.features), views.targets)).mean().detach()
        + 0.05 * problem.start().square().sum(),
    )
    assert check_head(problem, indices=[0, 3, 5, 9, 13]).relative_error < 1e-5


# Batch statistics.


@pytest.mark.parametrize("K", [1, 2, 3])
def test_the_running_statistics_move_by_the_first_view_alone(K, ref, x, labeled, make_context, shaky):
    layers = []
    for module, seed in ((nn.BatchNorm1d(4).double(), 0), (nn.utils.skip_init(nn.Linear, 4, 3).double(), 1)):
        with torch.no_grad():
            for p in module.parameters():
                p.copy_(ref.normal(*p.shape, seed=seed))
        layers.append(module)
    net = PolicyNet(split(convert_batchnorm(nn.Sequential(*layers)).train(), x), "batch")
    METHODS.create("mixmatch", {"K": K}).views(net, x, make_context(augmentation=shaky, labeled=labeled))
    state = net.module.state_dict()
    first = ref.augmented(x.numpy(), AUGMENT, 0.0, "w")[0]
    assert state["0.num_batches_tracked"].item() == 1
    ref.close(state["0.running_mean"], 0.1 * first.mean(0))
    assert net.images == {Pass.UNLABELED: 9, Pass.PERTURBED: 9 * (K - 1) + 5 + 9 * K}


# Options.


def test_the_defaults():
    method = METHODS.create("mixmatch")
    assert (method.K, method.T, method.alpha, method.mix_within, method.ramp) == (2, 0.5, 0.75, "all", 0.4)
    assert (method.coef, method.lr, method.curvature, method.mixes_labeled) == (75.0, 3e-3, None, True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"K": 0}, "K of at least 1 and a ramp between 0 and 1, not K=0"),
        ({"ramp": 1.5}, "ramp=1.5"),
        ({"ramp": -0.1}, "ramp=-0.1"),
        ({"T": 0.0}, "option T of mixmatch must be a number above 0, but it is 0.0"),
        ({"alpha": -1.0}, "option alpha of mixmatch must be a number above 0, but it is -1.0"),
        ({"alpha": math.inf}, "option alpha"),
        ({"T": math.nan}, "option T"),
        ({"coef": 0.0}, "option coef"),
        ({"mix_within": "labeled"}, "mix_within=all and pool, not 'labeled'"),
    ],
)
def test_options_that_make_no_sense_are_sentences(options, sentence):
    with pytest.raises(OptionError, match=sentence):
        METHODS.create("mixmatch", options)


def test_it_needs_the_labeled_batch(make_net, x, make_context):
    with pytest.raises(AssertionError, match="the step gives the labeled batch"):
        METHODS.create("mixmatch").views(make_net(), x, make_context())

"""VAT against NumPy: the power iteration in closed form, both divergences, the length of the step, ξ and rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wrssl.api import OptionError, Pass
from wrssl.methods import METHODS
from wrssl.methods.vat import unit

ATTACK = 202  # the seed of the context's generator


def unit_rows(d):
    """d/(10⁻¹² + max|d|), then by 1/√(10⁻⁶ + ‖·‖²); one example per row."""
    d = d / (1e-12 + np.abs(d).max(1, keepdims=True))
    return d / np.sqrt(1e-6 + (d**2).sum(1, keepdims=True))


def direction_by_hand(ref, twin, x, xi, iterations):
    """∇_d KL(p‖q(x + ξd)) = ξ J(x + ξd)ᵀ (q − p), where J is the Jacobian of the logits."""
    p = twin.probabilities(x)
    d = unit_rows(ref.noise(x.shape, ATTACK, 1)[0])
    for _ in range(iterations):
        moved = x + xi * d
        d = unit_rows(xi * twin.input_gradient(moved, twin.probabilities(moved) - p))
    return d


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
@pytest.mark.parametrize("xi", [1.0, 0.1])
def test_the_direction_is_the_power_iteration(iterations, xi, ref, make_net, x, make_context):
    net, method = make_net(), METHODS.create("vat", {"xi": xi, "power_iterations": iterations})
    twin = ref.Net(net.module)
    p = torch.as_tensor(twin.probabilities(x.numpy()))
    d = method.direction(net, x, p, make_context().attack)
    ref.close(d, direction_by_hand(ref, twin, x.numpy(), xi, iterations), tolerance=1e-9)
    assert not d.requires_grad
    assert [c.kind for c in net.calls] == [Pass.PERTURBED] * iterations
    torch.testing.assert_close(d.norm(dim=1), torch.ones(9, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kl", ["oliver", "miyato"])
@pytest.mark.parametrize("iterations", [1, 2])
def test_views_loss_and_gradient(kl, iterations, ref, make_net, x, make_context):
    net = make_net()
    method = METHODS.create("vat", {"eps": 0.7, "kl": kl, "power_iterations": iterations})
    views = method.views(net, x, make_context())
    twin, clean = ref.Net(net.module), x.numpy()
    inputs = clean + 0.7 * direction_by_hand(ref, twin, clean, 0.1, iterations)
    p, q = twin.probabilities(clean), twin.probabilities(inputs)
    ref.close(views.inputs, inputs, tolerance=1e-9)
    ref.close(views.targets, p)
    ref.close(views.features, twin.features(inputs), tolerance=1e-9)
    r = method.loss(net.head(views.features), views.targets)
    ref.close(r, ref.kl(q, p) if kl == "oliver" else ref.kl(p, q), tolerance=1e-9)
    # Through the perturbed pass only: p and the direction are constants.
    slope = ref.through_softmax(q, np.log(q / p) + 1) if kl == "oliver" else q - p
    gradients = torch.autograd.grad(r.sum(), list(net.module.parameters()))
    for got, expected in zip(gradients, twin.parameter_gradients(inputs, slope), strict=True):
        ref.close(got, expected, tolerance=1e-8)


@pytest.mark.parametrize("iterations", [0, 1, 3])
def test_order_of_the_passes(iterations, make_net, x, make_context):
    net, method = make_net(), METHODS.create("vat", {"power_iterations": iterations})
    method.views(net, x, make_context())
    power = [("student", Pass.PERTURBED, True)] * iterations
    assert net.order() == [("student", Pass.UNLABELED, False), *power, ("student", Pass.PERTURBED, True)]
    assert torch.equal(net.calls[0].inputs, x)


@pytest.mark.parametrize("kl", ["oliver", "miyato"])
def test_the_power_iteration_is_the_same_for_both_divergences(kl, make_net, x, make_context):
    net = make_net()
    one = METHODS.create("vat", {"kl": kl}).views(net, x, make_context())
    two = METHODS.create("vat").views(net, x, make_context())
    assert torch.equal(one.inputs, two.inputs)


@pytest.mark.parametrize(("option", "scenario", "used"), [(None, 3.0, 3.0), (None, 0.5, 0.5), (6.0, 0.5, 6.0)])
def test_the_step_has_the_length_of_the_option_or_else_of_the_scenario(
    option, scenario, used, make_net, x, make_context
):
    views = METHODS.create("vat", {"eps": option}).views(make_net(), x, make_context(epsilon=scenario))
    torch.testing.assert_close((views.inputs - x).norm(dim=1), torch.full((9,), used, dtype=x.dtype), rtol=1e-6, atol=0)


def test_a_length_of_zero_is_a_length(make_net, x, make_context):
    """0 is not "not given": the scenario's ε must not step in."""
    views = METHODS.create("vat", {"eps": 0.0}).views(make_net(), x, make_context(epsilon=3.0))
    assert torch.equal(views.inputs, x)


def test_the_noise_of_the_scenario_is_for_others(make_net, x, make_context):
    net, method = make_net(), METHODS.create("vat")
    quiet, loud = (method.views(net, x, make_context(noise=noise)).inputs for noise in (0.0, 1.0))
    assert torch.equal(quiet, loud)


@pytest.mark.parametrize("shape", [(6, 5), (6, 2, 3, 4), (6, 1, 1, 2, 3)])
def test_unit_scales_each_example_whatever_its_shape(shape, ref):
    d = ref.normal(*shape, seed=3) * torch.logspace(-6, 6, 6, dtype=torch.float64).view(-1, *[1] * (len(shape) - 1))
    want = unit_rows(d.flatten(1).numpy()).reshape(shape)
    ref.close(unit(d), want)
    torch.testing.assert_close(unit(d).flatten(1).norm(dim=1), torch.ones(6, dtype=d.dtype), rtol=0, atol=1e-6)


def test_unit_neither_overflows_nor_divides_by_zero():
    d = torch.tensor([[3e30, -4e30], [3e-10, 4e-10], [0.0, 0.0]])
    want = torch.tensor([[0.6, -0.8], [0.6, 0.8], [0.0, 0.0]])
    torch.testing.assert_close(unit(d), want, rtol=0, atol=5e-3)


def test_where_nothing_changes_the_prediction_nothing_is_perturbed(make_net, x, make_context):
    net, method = make_net(), METHODS.create("vat")
    with torch.no_grad():
        net.module[0].weight.zero_()
    views = method.views(net, x, make_context())
    assert torch.equal(views.inputs, x)
    assert (method.loss(net.head(views.features), views.targets).abs() < 1e-12).all()


def test_the_adversarial_direction_is_worse_than_a_random_one(make_net, x, make_context):
    net = make_net()
    losses = {}
    for iterations in (0, 1, 5):
        method = METHODS.create("vat", {"eps": 0.3, "power_iterations": iterations})
        views = method.views(net, x, make_context())
        losses[iterations] = method.loss(net.head(views.features), views.targets).mean().item()
    assert losses[1] > 1.5 * losses[0]
    assert losses[5] > losses[1]


def agreement(ref, xi):
    """Cosine of the float32 direction with the float64 one, of each example, on a linear softmax model."""
    d, C, B = 300, 10, 50
    weight, x = ref.normal(C, d, seed=1) / d**0.5, ref.normal(B, d, seed=2)
    method = METHODS.create("vat", {"xi": xi})
    directions = []
    for dtype in (torch.float32, torch.float64):
        head = nn.utils.skip_init(nn.Linear, d, C, bias=False, dtype=dtype)
        with torch.no_grad():
            head.weight.copy_(weight)

        class Net:
            weights, module = None, head

            def logits(self, inputs, kind, head=head):
                return head(inputs)

        rows = x.to(dtype)
        p = head(rows).detach().softmax(1)
        # The same start in both types: a draw in float64 has other bits than one in float32.
        start = ref.normal(B, d, seed=3).to(dtype)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("wrssl.methods.vat.gaussian_like", lambda x, generator, start=start: start)
            directions.append(method.direction(Net(), rows, p, torch.Generator()).double())
    # The closed form for a linear model: ξ Wᵀ(q − p).
    start = unit_rows(ref.normal(B, d, seed=3).numpy())
    p = ref.softmax(x.numpy() @ weight.numpy().T)
    q = ref.softmax((x.numpy() + xi * start) @ weight.numpy().T)
    ref.close(directions[1], unit_rows(xi * (q - p) @ weight.numpy()), tolerance=1e-6)
    return (directions[0] * directions[1]).sum(1)


def test_the_default_xi_survives_float32_and_that_of_the_references_does_not(ref):
    assert METHODS.create("vat").xi == 0.1
    assert agreement(ref, 0.1).min() > 0.999
    assert agreement(ref, 1e-6).median() < 0.9


def test_identical_predictions_have_no_loss(ref):
    z = ref.normal(5, 3, seed=1)
    for kl in ("oliver", "miyato"):
        r = METHODS.create("vat", {"kl": kl}).loss(z, z.softmax(1))
        torch.testing.assert_close(r, torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-12)


def test_the_two_divergences_by_hand():
    z, t = torch.tensor([[0.0, 0.0]], dtype=torch.float64), torch.tensor([[0.75, 0.25]], dtype=torch.float64)
    oliver, miyato = (METHODS.create("vat", {"kl": kl}).loss(z, t).item() for kl in ("oliver", "miyato"))
    assert oliver == pytest.approx(0.5 * np.log(0.5 / 0.75) + 0.5 * np.log(0.5 / 0.25), abs=1e-14)
    assert miyato == pytest.approx(0.75 * np.log(0.75 / 0.5) + 0.25 * np.log(0.25 / 0.5), abs=1e-14)


@pytest.mark.parametrize("kl", ["oliver", "miyato"])
def test_saturated_predictions_stay_finite(kl):
    z = torch.tensor([[200.0, 0.0, 0.0], [0.0, 200.0, 0.0]], requires_grad=True)
    t = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    r = METHODS.create("vat", {"kl": kl}).loss(z, t)
    r.sum().backward()
    assert torch.isfinite(r).all()
    assert torch.isfinite(z.grad).all()


def test_an_unknown_divergence_lists_the_known_ones():
    with pytest.raises(OptionError, match="oliver and miyato, not 'reverse'"):
        METHODS.create("vat", {"kl": "reverse"})


def test_a_parameter_that_is_frozen_during_a_run_stays_frozen(make_net, x, make_context):
    net, method = make_net(), METHODS.create("vat")
    method.setup(net)
    first, *others = net.module.parameters()
    first.requires_grad_(False)
    method.views(net, x, make_context())
    assert not first.requires_grad
    assert all(p.requires_grad for p in others)

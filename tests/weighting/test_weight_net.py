"""The small network behind Meta-Weight-Net and DS3L."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.weighting.weight_net import WeightNet


def make(inputs=3, hidden=100, lr=0.01, decay=0.0, seed=0):
    return WeightNet(inputs, hidden, lr, decay, seed)


def rows(n=6, inputs=3, seed=0):
    return torch.randn(n, inputs, generator=torch.Generator().manual_seed(seed))


def test_its_value_is_the_formula():
    """σ(W₂ relu(W₁ a + b₁) + b₂), in NumPy."""
    net, a = make(), rows()
    W1, b1, W2, b2 = (p.detach().double().numpy() for p in net.parameters)
    hidden = np.maximum(a.double().numpy() @ W1.T + b1, 0)
    want = 1 / (1 + np.exp(-(hidden @ W2.T + b2)[:, 0]))
    got = net(a).detach().numpy()
    assert got.shape == (6,)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
    assert np.ptp(want) > 0.01


@pytest.mark.parametrize(("inputs", "hidden"), [(1, 100), (10, 100), (4, 400)])
def test_it_starts_uniform_within_one_over_the_root_of_the_inputs_of_each_layer(inputs, hidden):
    W1, b1, W2, b2 = make(inputs, hidden).parameters
    assert [tuple(p.shape) for p in (W1, b1, W2, b2)] == [(hidden, inputs), (hidden,), (1, hidden), (1,)]
    for p, fan in ((W1, inputs), (b1, inputs), (W2, hidden), (b2, hidden)):
        scaled = p.detach() * np.sqrt(fan)
        assert scaled.abs().max() <= 1
        if p.numel() >= 100:
            assert scaled.max() > 0.9
            assert scaled.min() < -0.9
            assert abs(scaled.mean()) < 0.2


def test_the_same_seed_gives_the_same_network():
    one, same, other = make(seed=5), make(seed=5), make(seed=6)
    for p, q, r in zip(one.parameters, same.parameters, other.parameters, strict=True):
        assert torch.equal(p, q)
        assert not torch.equal(p, r)


def test_it_descends_along_the_gradient_that_it_is_given():
    """d/dΦ Σ_j g_j V(a_j), then Adam with the L2 penalty in the gradient; a second time with torch's own."""
    net, a, g = make(decay=0.1), rows(), torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, -1.0])
    mine = [p.detach().clone().requires_grad_() for p in net.parameters]
    adam = torch.optim.Adam(mine, lr=0.01, weight_decay=0.1)
    for _ in range(3):
        W1, b1, W2, b2 = mine
        value = torch.sigmoid(torch.relu(a @ W1.T + b1) @ W2[0] + b2)
        for p, slope in zip(mine, torch.autograd.grad(g @ value, mine), strict=True):
            p.grad = slope
        adam.step()
        net.descend(a, g)
        for p, q in zip(net.parameters, mine, strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-7)
            torch.testing.assert_close(p, q, rtol=0, atol=1e-4)


def test_descending_works_where_gradients_are_switched_off():
    net, a = make(), rows()
    with torch.no_grad():
        before = net(a)
        net.descend(a, torch.ones(6))
        after = net(a)
    assert (after < before).all()
    assert not after.requires_grad


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), float("-inf")])
def test_a_broken_entry_counts_as_zero(broken):
    nets, a = [make(), make()], rows()
    for net, entry in zip(nets, (broken, 0.0), strict=True):
        net.descend(a, torch.tensor([1.0, entry, 2.0, entry, -1.0, 0.5]))
    for p, q in zip(nets[0].parameters, nets[1].parameters, strict=True):
        assert p.isfinite().all()
        assert torch.equal(p, q)


def test_a_broken_estimate_moves_nothing():
    """Neither in the first step, nor later, when Adam remembers steps that were not broken."""
    net, a = make(decay=1e-4), rows()
    for _ in range(2):
        before = [p.detach().clone() for p in net.parameters]
        net.descend(a, torch.full((6,), float("nan")))
        for p, q in zip(net.parameters, before, strict=True):
            assert torch.equal(p, q)
        net.descend(a, torch.ones(6))


def test_the_state_goes_into_a_new_object_and_on_from_there():
    """The same seed or not: every number comes from the state, the moments of Adam included."""
    one, other, a = make(decay=1e-3), make(decay=1e-3, seed=1), rows()
    for scale in (1.0, -3.0, 0.2):
        one.descend(a, scale * torch.arange(6.0))
    state = {name: value.clone() for name, value in one.state_dict().items()}
    kept = {name: value.clone() for name, value in state.items()}
    other.load_state_dict(state)
    assert torch.equal(one(a), other(a))
    for _ in range(3):
        before = one(a)
        for net in (one, other):
            net.descend(a, torch.linspace(-1, 1, 6))
        assert torch.equal(one(a), other(a))
        assert not torch.equal(one(a), before)
    assert all(torch.equal(state[name], kept[name]) for name in kept), "the loaded tensors belong to the file"


def test_a_state_of_before_the_first_step_makes_adam_forget():
    """As ``steps="auto"`` needs it after its trial steps."""
    net, fresh, a = make(), make(), rows()
    state = {name: value.clone() for name, value in net.state_dict().items()}
    for _ in range(4):
        net.descend(a, torch.ones(6))
    net.load_state_dict(state)
    for each in (net, fresh):
        each.descend(a, torch.linspace(-1, 1, 6))
    assert torch.equal(net(a), fresh(a))

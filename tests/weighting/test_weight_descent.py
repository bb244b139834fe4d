"""The weight step of Algorithm 2 by hand: normalization, bias correction, proximal step, projection."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from wrssl.weighting.bilevel import WeightDescent


def tensor(*values):
    return torch.tensor(values, dtype=torch.float64)


def test_the_formula_over_several_updates():
    descent, beta, l1 = WeightDescent(0.1, 0.05, plain=False), 0.1, 0.05
    rng = np.random.default_rng(0)
    w, average = np.full(6, 0.5), 0.0
    for t in range(1, 8):
        g = rng.normal(size=6) * 10.0 ** (t - 4)
        average = 0.9 * average + 0.1 * np.mean(g**2)
        rms = np.sqrt(average / (1 - 0.9**t))
        want = np.clip(w - beta * g / rms - beta * l1, 0, 1)
        got = descent.step(torch.as_tensor(w), torch.as_tensor(g))
        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=1e-12)
        w = want


def test_the_first_update_is_not_biased():
    """A first gradient of equal sizes moves each weight by exactly β."""
    w = WeightDescent(0.1, 0.0, plain=False).step(tensor(0.5, 0.5, 0.5), tensor(3.0, -3.0, 3.0))
    torch.testing.assert_close(w, tensor(0.4, 0.6, 0.4), rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1.0, 1e8])
def test_the_step_does_not_depend_on_the_scale_of_the_loss(scale):
    one, other = WeightDescent(0.1, 0.02, plain=False), WeightDescent(0.1, 0.02, plain=False)
    w = v = tensor(0.5, 0.6, 0.7)
    for t in range(4):
        g = tensor(1.0, -2.0, 0.5) * (t + 1)
        w, v = one.step(w, g), other.step(v, scale * g)
    torch.testing.assert_close(v, w, rtol=0, atol=1e-12)


def test_the_memory_is_about_ten_updates():
    descent = WeightDescent(0.1, 0.0, plain=False)
    for _ in range(200):
        descent.step(tensor(0.5), tensor(1.0))
    moved = 0.5 - descent.step(tensor(0.5), tensor(2.0)).item()
    assert moved == pytest.approx(0.1 * 2 / np.sqrt(0.9 * 1 + 0.1 * 4), abs=1e-9)


def test_plain_steps_are_the_papers():
    descent = WeightDescent(0.5, 0.1, plain=True)
    for _ in range(3):
        w = descent.step(tensor(0.8, 0.8, 0.1, 0.9), tensor(0.2, -0.1, 5.0, -5.0))
        torch.testing.assert_close(w, tensor(0.65, 0.8, 0.0, 1.0), rtol=0, atol=1e-12)
    assert descent.updates.item() == 0
    assert descent.mean_square.item() == 0


@pytest.mark.parametrize("plain", [True, False])
def test_the_l1_term_is_the_proximal_map(plain):
    """argmin over 0 ≤ u ≤ 1 of ½(u − v)² + βλu, where v is the gradient step without the term; by brute force."""
    beta, l1, w, g = 0.5, 0.3, tensor(0.02, 0.2, 0.55, 0.9, 1.0), tensor(0.1, -0.3, 0.7, -2.0, 0.2)
    v = w - beta * (g if plain else g / g.square().mean().sqrt())
    grid = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    objective = 0.5 * (grid - v.unsqueeze(1)) ** 2 + beta * l1 * grid
    got = WeightDescent(beta, l1, plain).step(w, g)
    torch.testing.assert_close(got, grid[objective.argmin(1)], rtol=0, atol=1e-5)


def test_the_l1_term_alone_drives_weights_to_exactly_zero():
    descent, w = WeightDescent(0.5, 0.5, plain=False), tensor(0.6, 0.1)
    for want in ([0.35, 0.0], [0.1, 0.0], [0.0, 0.0]):
        w = descent.step(w, tensor(0.0, 0.0))
        torch.testing.assert_close(w, tensor(*want), rtol=0, atol=1e-12)
    assert w.tolist() == [0.0, 0.0]


def test_weights_stay_between_zero_and_one():
    w = WeightDescent(10.0, 0.0, plain=False).step(tensor(0.5, 0.5, 1.0, 0.0), tensor(1.0, -1.0, -1.0, 1.0))
    assert w.tolist() == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("plain", [True, False])
def test_a_gradient_of_zero_moves_nothing(plain, dtype):
    descent, w = WeightDescent(0.1, 0.0, plain), torch.tensor([0.0, 0.3, 1.0], dtype=dtype)
    for _ in range(3):
        assert torch.equal(descent.step(w, torch.zeros(3, dtype=dtype)), w)
    descent.step(w, torch.ones(3, dtype=dtype))
    assert torch.equal(descent.step(w, torch.zeros(3, dtype=dtype)), w)


def test_a_weight_can_leave_zero_again():
    descent, w = WeightDescent(0.3, 1e-3, plain=False), tensor(0.2)
    w = descent.step(w, tensor(1.0))
    assert w.item() == 0
    w = descent.step(w, tensor(-1.0))
    assert w.item() == pytest.approx(0.3 - 3e-4, abs=1e-12)


def test_neither_input_is_changed():
    w, g = tensor(0.5, 0.5), tensor(1.0, -1.0)
    WeightDescent(0.1, 0.1, plain=False).step(w, g)
    assert w.tolist() == [0.5, 0.5]
    assert g.tolist() == [1.0, -1.0]


def test_the_state_goes_into_a_new_object_and_on_from_there():
    one, other = WeightDescent(0.1, 0.0, plain=False), WeightDescent(0.1, 0.0, plain=False)
    for scale in (1.0, 5.0, 0.2):
        one.step(tensor(0.5), tensor(scale))
    state = {name: value.clone() for name, value in one.state_dict().items()}
    other.load_state_dict(state)
    for scale in (3.0, 0.1):
        assert one.step(tensor(0.5), tensor(scale)).item() == other.step(tensor(0.5), tensor(scale)).item()
    assert other.updates.item() == 5
    assert state["updates"].item() == 3, "the loaded tensors belong to the file, not to the run"

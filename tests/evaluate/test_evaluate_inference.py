"""Logits of many examples: evaluation mode, nothing left behind; accuracy and loss; the truth about the pool."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wrssl import Scenario, convert_batchnorm
from wrssl.evaluate import accuracy_and_loss, is_ood, logits_of
from wrssl.evaluate.inference import CHUNK


@pytest.fixture(autouse=True)
def global_generator_untouched(global_rng_untouched):
    """Dropout would, if the mode were wrong."""


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=["plain", "weighted"])
def model(request):
    """Layers that behave differently in training: batch norm with statistics of its own, dropout; one layer in eval."""
    head = nn.utils.skip_init(nn.Linear, 4, 3)
    with torch.no_grad():
        head.weight.copy_(randn(3, 4, seed=1))
        head.bias.copy_(randn(3, seed=2))
    first, second = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    for number, layer in enumerate((first, second)):
        layer.running_mean.copy_(randn(4, seed=10 + number))
        layer.running_var.copy_(1 + randn(4, seed=20 + number).square())
    model = nn.Sequential(first, nn.Dropout(0.5), nn.Sequential(second, nn.Dropout(0.5)), head).train()
    model[0].eval()
    model[2][1].eval()
    return convert_batchnorm(model) if request.param == "weighted" else model


def by_hand(model, x):
    x = x.double().numpy()
    for layer in (model[0], model[2][0]):
        mean, var = layer.running_mean.double().numpy(), layer.running_var.double().numpy()
        x = (x - mean) / np.sqrt(var + layer.eps)
    return x @ model[3].weight.detach().double().numpy().T + model[3].bias.detach().double().numpy()


@pytest.mark.parametrize("rows", [1, CHUNK, 2 * CHUNK + 3])
def test_running_statistics_no_dropout_in_order(model, rows):
    x = randn(rows, 4, seed=3)
    logits = logits_of(model, x)
    assert not logits.requires_grad
    assert logits.shape == (rows, 3)
    np.testing.assert_allclose(logits.numpy(), by_hand(model, x), rtol=1e-4, atol=1e-5)


def test_every_mode_and_every_buffer_is_as_before(model):
    mode = [m.training for m in model.modules()]
    assert len(set(mode)) == 2
    state = {name: value.clone() for name, value in model.state_dict().items()}
    logits_of(model, randn(700, 4, seed=3))
    assert [m.training for m in model.modules()] == mode
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert all(p.requires_grad and p.grad is None for p in model.parameters())


def test_the_mode_comes_back_after_an_error(model):
    mode = [m.training for m in model.modules()]
    with pytest.raises(RuntimeError):
        logits_of(model, randn(5, 7, seed=3))
    assert [m.training for m in model.modules()] == mode


def test_memory_is_bounded_by_chunks(model):
    sizes = []
    model.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])))
    logits_of(model, randn(2 * CHUNK + 3, 4, seed=3))
    assert sizes == [CHUNK, CHUNK, 3]


def test_bytes_become_network_inputs(model):
    x = torch.randint(256, (6, 4), generator=torch.Generator().manual_seed(4), dtype=torch.uint8)
    np.testing.assert_allclose(logits_of(model, x).numpy(), by_hand(model, x / 127.5 - 1), rtol=1e-4, atol=1e-5)


def test_the_result_is_float32_whatever_the_model_computes_in(model):
    x = randn(6, 4, seed=3)
    logits = logits_of(model.double(), x.double())
    assert logits.dtype == torch.float32
    np.testing.assert_allclose(logits.numpy(), by_hand(model, x), rtol=1e-5, atol=1e-6)


def test_a_model_without_parameters_has_logits_too():
    x = randn(6, 4, seed=3)
    assert torch.equal(logits_of(nn.Identity(), x), x)


def test_accuracy_and_loss_equal_numpy():
    z, y = randn(31, 4, seed=5), torch.arange(31) % 4
    accuracy, loss = accuracy_and_loss(z, y)
    p = np.exp(z.double().numpy())
    p /= p.sum(1, keepdims=True)
    assert accuracy == (z.numpy().argmax(1) == y.numpy()).mean()
    assert 0 < accuracy < 1
    assert loss == pytest.approx(-np.log(p[np.arange(31), y.numpy()]).mean(), rel=1e-5)
    assert isinstance(accuracy, float)
    assert isinstance(loss, float)


def test_accuracy_by_hand():
    z = torch.tensor([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0], [2.0, 0.0]])
    assert accuracy_and_loss(z, torch.tensor([0, 1, 0, 0]))[0] == 0.75


@pytest.mark.parametrize("known", [True, False])
def test_the_truth_about_the_pool(known):
    rng = np.random.default_rng(0)
    x, y, pool = rng.normal(size=(8, 2)), np.arange(8) % 2, rng.normal(size=(5, 2))
    mask = np.array([True, False, False, True, False])
    truth = is_ood(Scenario(labeled=(x, y), unlabeled=pool, is_ood=mask if known else None))
    assert truth is None if not known else truth.tolist() == mask.tolist()

"""Where weighted batch norm could go wrong: no weight, huge means, low precision, wrong shapes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from wrssl.api import DataError, ModelError
from wrssl.norm import Source, WeightedBatchNorm1d, WeightedBatchNorm2d, count_weights, sample_weights, statistics

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("scale", [0.0, 1e-45, 1e-20, 1e-10, 1e-5])
@pytest.mark.parametrize(
    "options", [{}, {"track_running_stats": False}, {"affine": False}, {"momentum": None}], ids=str
)
def test_vanishing_weights_stay_finite_and_leave_the_buffers_alone(scale, options, generator):
    layer = WeightedBatchNorm2d(3, **options)
    before = {k: v.clone() for k, v in layer.named_buffers()}
    x = torch.randn(8, 3, 2, 2, generator=generator, requires_grad=True)
    with sample_weights(layer, torch.full((8,), scale)):
        y = layer(x)
    y.square().sum().backward()
    assert torch.isfinite(y).all()
    assert torch.isfinite(x.grad).all()
    for name, value in layer.named_buffers():
        assert torch.equal(value, before[name]), name


def test_vanishing_weights_normalise_with_the_running_statistics(generator):
    layer = WeightedBatchNorm1d(3).double()
    layer.running_mean.copy_(torch.tensor([1.0, 2.0, 3.0]))
    layer.running_var.copy_(torch.tensor([4.0, 9.0, 16.0]))
    x = torch.randn(8, 3, generator=generator, dtype=torch.float64)
    with sample_weights(layer, torch.zeros(8)):
        y = layer(x)
    torch.testing.assert_close(y, layer.eval()(x), atol=1e-12, rtol=0)


def test_one_heavy_example_is_no_statistic_in_one_dimension_but_is_in_two(generator):
    w = torch.tensor([1.0, 0.0, 0.0, 0.0])
    one, two = WeightedBatchNorm1d(3), WeightedBatchNorm2d(3)
    with sample_weights(one, w), sample_weights(two, w):
        one(torch.randn(4, 3, generator=generator))
        x = torch.randn(4, 3, 5, 5, generator=generator)
        y = two(x)
    assert torch.equal(one.running_mean, torch.zeros(3))
    torch.testing.assert_close(y[:1], nn.BatchNorm2d(3)(x[:1]), atol=1e-5, rtol=1e-5)


def test_running_variance_never_negative(generator):
    """Σw − 1 as a denominator would turn it negative for Σw < 1."""
    layer = WeightedBatchNorm1d(4, momentum=1.0)
    for total in (0.4, 0.9, 1.0, 1.0001, 3.0):
        w = torch.rand(6, generator=generator)
        with sample_weights(layer, w * total / w.sum()):
            layer(torch.randn(6, 4, generator=generator))
        assert (layer.running_var >= 0).all()
        assert torch.isfinite(layer.running_var).all()
    constant = torch.full((6, 4), 3.7e5)
    with sample_weights(layer, torch.rand(6, generator=generator)):
        layer(constant)
    assert (layer.running_var >= 0).all()


@pytest.mark.parametrize("ratio", [1e3, 1e4])
def test_float32_follows_float64_when_the_mean_is_far_from_zero(ratio, generator):
    x = torch.randn(64, 3, 4, 4, generator=generator) + ratio
    w = torch.rand(64, generator=generator)
    low, high = WeightedBatchNorm2d(3), WeightedBatchNorm2d(3).double()
    with sample_weights(low, w), sample_weights(high, w):
        y, z = low(x), high(x.double())
    torch.testing.assert_close(y.double(), z, atol=2e-6 * ratio, rtol=0)
    torch.testing.assert_close(low.running_var.double(), high.running_var, atol=1e-4, rtol=0)


def test_autocast_bf16_keeps_the_type_of_the_input_and_float32_statistics(generator):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), WeightedBatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 2))
    reference = WeightedBatchNorm2d(4)
    x, w = torch.randn(16, 1, 8, 8, generator=generator), torch.rand(16, generator=generator)
    with torch.autocast("cpu", dtype=torch.bfloat16), sample_weights(model, w):
        hidden = model[1](model[0](x))
        loss = model[3](model[2](hidden)).float().square().sum()
    assert hidden.dtype == torch.bfloat16
    loss.backward()
    assert torch.isfinite(model[0].weight.grad).all()
    with sample_weights(reference, w):
        expected = reference(model[0](x))
    torch.testing.assert_close(hidden.float(), expected, atol=0.05, rtol=0.02)
    assert model[1].running_mean.dtype == torch.float32


@pytest.mark.parametrize(
    ("w", "words"),
    [
        (torch.ones(8, 1), "shape"),
        (torch.tensor(1.0), "shape"),
        (torch.ones(7), "one weight per example"),
        (torch.ones(9), "one weight per example"),
        (torch.tensor([1.0] * 7 + [float("nan")]), "finite"),
        (torch.tensor([1.0] * 7 + [-0.1]), "negative"),
    ],
    ids=["column", "scalar", "too few", "too many", "nan", "negative"],
)
@pytest.mark.parametrize("differentiable", [False, True])
def test_wrong_weights_are_refused_with_a_sentence(w, words, differentiable):
    layer, w = WeightedBatchNorm1d(3), w.clone().requires_grad_(differentiable)
    with pytest.raises(DataError, match=words), sample_weights(layer, w, differentiable=differentiable):
        layer(torch.zeros(8, 3))


def test_arguments_have_names_and_the_option_is_keyword_only(generator):
    layer, x, w = WeightedBatchNorm1d(3), torch.randn(4, 3, generator=generator), torch.rand(4, generator=generator)
    with sample_weights(module=layer, w=w):
        y = layer(x)
    with sample_weights(layer, w):
        assert torch.equal(layer(x), y)
    with pytest.raises(TypeError, match="positional"):
        sample_weights(layer, w, True)


def test_weights_of_zero_are_allowed_where_gradients_flow_into_them(generator):
    layer, x = WeightedBatchNorm1d(3).double(), torch.randn(5, 3, generator=generator, dtype=torch.float64)
    w = torch.tensor([1.0, 0.5, 0.0, 2.0, 0.0], dtype=torch.float64)
    results = []
    for values in (w, w.clone().requires_grad_()):
        with sample_weights(layer, values, differentiable=True):
            results.append(layer(x))
    torch.testing.assert_close(*results, atol=1e-12, rtol=0)
    assert torch.autograd.grad(results[1][0].square().sum(), values)[0].abs().min() > 1e-6


def test_weighted_statistics_without_weights_count_every_example_alike(generator):
    layer, plain = WeightedBatchNorm1d(3).double(), nn.BatchNorm1d(3).double()
    x = 2 + 3 * torch.randn(6, 3, generator=generator, dtype=torch.float64)
    with statistics([layer], Source.WEIGHTED, True, None):
        y = layer(x)
    torch.testing.assert_close(y, plain(x), atol=1e-12, rtol=0)
    for mine, theirs in zip(layer.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)


def test_counts_that_are_given_hold_whatever_becomes_of_the_weights(generator):
    """They were made of a copy: the weights may be changed in place before the context begins, and within it."""
    layer = WeightedBatchNorm1d(3).double()
    x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
    w = torch.tensor([1.0, 0.5, 0.0, 2.0, 1.5], dtype=torch.float64)
    share = (w / w.sum()).unsqueeze(1)
    mean = (share * x).sum(0)
    expected = (x - mean) / ((share * (x - mean).square()).sum(0) + layer.eps).sqrt()
    counts = count_weights(w)
    w[:3] = 7
    with statistics([layer], Source.WEIGHTED, True, w, counts):
        torch.testing.assert_close(layer(x), expected, atol=1e-12, rtol=0)
        w[3:] = 0
        torch.testing.assert_close(layer(x), expected, atol=1e-12, rtol=0)


def test_unconverted_layers_are_not_ignored_silently():
    with pytest.raises(ModelError, match="convert_batchnorm"), sample_weights(nn.BatchNorm1d(3), torch.ones(2)):
        pass
    with sample_weights(nn.Linear(2, 2), torch.ones(2)):  # no batch norm: nothing to do
        pass


def test_labelled_pass_and_weighted_pass_share_one_backward(generator):
    """torch's kernel saves its buffers for backward; our update between the two must not invalidate them."""
    layer = WeightedBatchNorm1d(3)
    x, u = torch.randn(8, 3, generator=generator), torch.randn(8, 3, generator=generator)
    labelled = layer(x)
    with sample_weights(layer, torch.rand(8, generator=generator)):
        unlabelled = layer(u)
    (labelled.square().sum() + unlabelled.square().sum()).backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_contexts_nest_and_end_with_an_exception(generator):
    layer = WeightedBatchNorm1d(3).double()
    x = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    w = torch.tensor([1.0, 1, 1, 0, 0, 0])
    with sample_weights(layer, w):
        outer = layer(x)
        with pytest.raises(DataError), sample_weights(layer, torch.ones(5)):
            layer(x)
        torch.testing.assert_close(layer(x), outer)
    assert "_pass_state" not in layer.__dict__


@pytest.mark.parametrize("updates", [True, False])
def test_a_batch_of_one_value_is_normalised_with_the_running_statistics(updates, generator):
    layer = WeightedBatchNorm1d(3).double()
    layer.running_mean.copy_(torch.tensor([0.5, -0.5, 1.0]))
    layer.running_var.copy_(torch.tensor([2.0, 3.0, 4.0]))
    before = [buffer.clone() for buffer in layer.buffers()]
    x = torch.randn(1, 3, generator=generator, dtype=torch.float64)
    with statistics([layer], Source.BATCH, updates, None):
        y = layer(x)
    torch.testing.assert_close(y, (x - before[0]) / (before[1] + layer.eps).sqrt(), atol=1e-12, rtol=0)
    assert all(torch.equal(a, b) for a, b in zip(before, layer.buffers(), strict=True))


@pytest.mark.parametrize("scale", [0.0, 1e-10, 1e-5])
def test_without_running_statistics_vanishing_weights_count_alike(scale, generator):
    layer = WeightedBatchNorm2d(3, track_running_stats=False).double()
    x = 5 + 2 * torch.randn(8, 3, 2, 2, generator=generator, dtype=torch.float64)
    with sample_weights(layer, torch.full((8,), scale, dtype=torch.float64)):
        y = layer(x)
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    torch.testing.assert_close(y, (x - mean) / (variance + layer.eps).sqrt(), atol=1e-12, rtol=0)


def test_an_empty_batch_is_torch_s_business():
    layer, plain = WeightedBatchNorm1d(3), nn.BatchNorm1d(3)
    with statistics([layer], Source.BATCH, True, None):
        assert layer(torch.zeros(0, 3)).shape == plain(torch.zeros(0, 3)).shape
    for mine, theirs in zip(layer.buffers(), plain.buffers(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("updates", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("source", Source)
def test_what_a_layer_is_asked_for(source, tracked, training, updates):
    """In evaluation nothing is updated, and a layer that tracks statistics takes those."""
    layer, w = WeightedBatchNorm1d(3, track_running_stats=tracked).train(training), torch.ones(4)
    assert layer.asked()[:3] == (Source.RUNNING if tracked and not training else Source.BATCH, training, None)
    with statistics([layer], source, updates, w if source is Source.WEIGHTED else None):
        asked = layer.asked()
    if tracked and (not training or source is Source.RUNNING):
        assert asked[:2] == (Source.RUNNING, False)
    elif source is Source.WEIGHTED:
        assert asked[:2] == (Source.WEIGHTED, updates and training)
        assert torch.equal(asked.weights, w)
    else:
        assert asked[:2] == (Source.BATCH, updates)

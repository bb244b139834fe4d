"""The built-in networks: shapes, sizes, initialization."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from wrssl.errors import ModelError, OptionError
from wrssl.models import MLP, LeNet, SmallCNN, WideResNet, build_model, list_models, outline_model

SHAPES = [(1, 8, 8), (3, 8, 8), (1, 28, 28), (1, 32, 32), (3, 32, 32), (2, 40, 40), (1, 28, 32)]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def count(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def batch_norms(model: nn.Module) -> int:
    return sum(isinstance(m, _BatchNorm) for m in model.modules())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", list_models())
def test_logits_and_gradients_for_every_size(name: str, shape: tuple[int, ...]) -> None:
    g = seeded()
    model = build_model(name, shape, 7, g)
    x = torch.randn(3, *shape, generator=g)
    out = model(x)
    assert out.shape == (3, 7)
    assert torch.isfinite(out).all()
    assert out.abs().max() < 30  # no explosion at the start, batch norm or not
    out.square().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("name", ["auto", "mlp", "auto-nobn", "mlp-nobn"])
def test_tables(name: str) -> None:
    assert build_model(name, (2,), 3, seeded())(torch.zeros(4, 2)).shape == (4, 3)


@pytest.mark.parametrize("name", list_models())
def test_the_suffix_decides_about_batch_norm_and_the_last_layer_is_linear(name: str) -> None:
    model = build_model(name, (1, 28, 28), 10, seeded())
    assert (batch_norms(model) == 0) == (name.endswith("-nobn") or name == "linear")
    assert isinstance(list(model.modules())[-1], nn.Linear)
    assert all(p.device.type == "cpu" for p in model.parameters())


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((2,), MLP),
        ((1, 28, 28), LeNet),
        ((1, 32, 32), LeNet),
        ((3, 32, 32), SmallCNN),
        ((1, 8, 8), SmallCNN),
        ((1, 28, 32), SmallCNN),
    ],
)
def test_auto_chooses_by_shape(shape: tuple[int, ...], kind: type) -> None:
    assert isinstance(build_model("auto", shape, 10, seeded()), kind)
    assert isinstance(build_model("auto-nobn", shape, 10, seeded()), kind)


def test_parameter_counts_by_hand() -> None:
    lenet = (25 * 1 + 1) * 6 + (25 * 6 + 1) * 16 + (25 * 16 + 1) * 120 + (120 + 1) * 84 + (84 + 1) * 10
    assert lenet == 61_706
    assert count(build_model("lenet-nobn", (1, 28, 28), 10, seeded())) == lenet
    assert count(build_model("lenet-nobn", (1, 32, 32), 10, seeded())) == lenet
    assert count(build_model("lenet", (1, 28, 28), 10, seeded())) == lenet + 2 * (6 + 16 + 120 + 84)
    assert count(build_model("mlp-nobn", (2,), 2, seeded())) == 3 * 100 + 101 * 100 + 101 * 2


def test_wide_resnet_has_the_published_size() -> None:
    def group(i: int, o: int) -> int:  # four blocks, the first one with a 1x1 shortcut
        first = 9 * i * o + 9 * o * o + i * o + 2 * (i + o)
        return first + 3 * (2 * 9 * o * o + 4 * o)

    by_hand = 27 * 16 + group(16, 32) + group(32, 64) + group(64, 128) + 2 * 128 + 129 * 10
    model = build_model("wrn-28-2", (3, 32, 32), 10, seeded())
    assert count(model) == by_hand == 1_467_610
    on_main_path = [m for m in model.modules() if isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3)]
    assert len(on_main_path) == 1 + 2 * 12
    assert isinstance(model, WideResNet)


def test_lenet_reads_28_with_padding_and_32_without() -> None:
    small, large = (build_model("lenet", (1, side, side), 10, seeded()) for side in (28, 32))
    small.eval(), large.eval()
    x = torch.randn(4, 1, 28, 28, generator=seeded())
    padded = nn.functional.pad(x, (2, 2, 2, 2))
    torch.testing.assert_close(small(x), large(padded))


@pytest.mark.parametrize("name", list_models())
def test_initialization_uses_the_given_generator_only(name: str) -> None:
    before = torch.get_rng_state()
    first = build_model(name, (1, 28, 28), 10, seeded(3)).state_dict()
    again = build_model(name, (1, 28, 28), 10, seeded(3)).state_dict()
    other = build_model(name, (1, 28, 28), 10, seeded(4)).state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[k], again[k]) for k in first)
    weights = [k for k, v in first.items() if k.endswith("weight") and v.ndim > 1]
    assert weights
    assert not any(torch.equal(first[k], other[k]) for k in weights)


@pytest.mark.parametrize("name", list_models())
def test_an_outline_has_the_same_shapes_and_no_memory(name: str) -> None:
    outline, model = outline_model(name, (1, 28, 28), 10), build_model(name, (1, 28, 28), 10, seeded())
    assert all(tensor.is_meta for tensor in outline.state_dict().values())
    shapes = [[(name, tensor.shape) for name, tensor in m.state_dict().items()] for m in (outline, model)]
    assert shapes[0] == shapes[1]


def test_default_distributions_are_those_of_torch() -> None:
    state = build_model("lenet", (1, 28, 28), 10, seeded()).state_dict()
    for layer, fan_in in (("conv1", 25), ("conv2", 150), ("conv3", 400), ("fc", 120), ("head", 84)):
        bound = 1 / math.sqrt(fan_in)
        for kind in ("weight", "bias"):
            values = state[f"{layer}.{kind}"]
            assert values.abs().max() <= bound
            assert values.abs().max() > 0.6 * bound
        w = state[f"{layer}.weight"]
        assert abs(float(w.std()) / (bound / math.sqrt(3)) - 1) < 6 / math.sqrt(w.numel())
    for bn in ("bn1", "bn2", "bn3", "bn4"):
        assert (state[f"{bn}.weight"] == 1).all()
        assert (state[f"{bn}.running_var"] == 1).all()
        assert not state[f"{bn}.bias"].any()
        assert not state[f"{bn}.running_mean"].any()
        assert state[f"{bn}.num_batches_tracked"] == 0


def test_an_unknown_name_is_answered_with_the_names() -> None:
    with pytest.raises(OptionError, match=r"'resnet'.*auto, mlp, lenet, small_cnn, linear, .*wrn-28-2.*lenet-nobn"):
        build_model("resnet", (2,), 2, seeded())


@pytest.mark.parametrize(
    ("name", "shape", "classes", "message"),
    [
        ("lenet", (5,), 3, r"'lenet' needs images.*\(5,\).*'mlp'"),
        ("auto", (28, 28), 3, r"\(28, 28\) fit no built-in model.*\(N, C, H, W\)"),
        ("auto", (), 3, "fit no built-in model"),
        ("auto", (5,), 1, "at least two classes"),
    ],
)
def test_data_that_fits_no_model(name: str, shape: tuple[int, ...], classes: int, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build_model(name, shape, classes, seeded())

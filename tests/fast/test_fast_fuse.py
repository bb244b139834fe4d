"""Which networks are accelerated, and that the second view is the same network."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wrssl.fast import accelerate
from wrssl.fast.block import BareBlock, FusedBlock
from wrssl.fast.window import WindowConv
from wrssl.models import build_model, split
from wrssl.norm import convert_batchnorm


def kinds(view: nn.Module | None) -> list[type]:
    return (
        [] if view is None else [type(m) for m in view.children() if isinstance(m, BareBlock | FusedBlock | WindowConv)]
    )


def network(*extra: nn.Module) -> nn.Sequential:
    layers = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), *extra]
    return convert_batchnorm(nn.Sequential(*layers, nn.Flatten()))


def test_lenet():
    model = convert_batchnorm(build_model("lenet", (1, 28, 28), 10, torch.Generator().manual_seed(0)))
    x = torch.rand(6, 1, 28, 28)
    parts = split(model, x)
    view = accelerate(parts.backbone)
    assert kinds(view) == [FusedBlock, FusedBlock, WindowConv]
    assert {id(p) for p in view.parameters()} == {id(p) for p in parts.backbone.parameters()}
    assert list(dict(view.named_parameters())) == list(dict(parts.backbone.named_parameters()))
    parts.train()
    other = copy.deepcopy(model)
    torch.testing.assert_close(parts.head(view(x)), other(x), atol=1e-5, rtol=1e-4)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name], atol=1e-5, rtol=1e-4)
    parts.eval()
    torch.testing.assert_close(parts.head(view(x)), model(x), atol=1e-5, rtol=1e-4)


def test_lenet_without_batch_norm():
    model = build_model("lenet-nobn", (1, 28, 28), 10, torch.Generator().manual_seed(0))
    x = torch.rand(6, 1, 28, 28)
    parts = split(model, x)
    view = accelerate(parts.backbone)
    assert kinds(view) == [BareBlock, BareBlock, WindowConv]
    assert list(dict(view.named_parameters())) == list(dict(parts.backbone.named_parameters()))
    torch.testing.assert_close(parts.head(view(x)), model(x), atol=1e-5, rtol=1e-4)


def test_without_a_layer_between_convolution_and_relu():
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    x = torch.rand(3, 1, 8, 8)
    assert kinds(accelerate(net)) == [BareBlock]
    torch.testing.assert_close(accelerate(net)(x), net(x), atol=1e-6, rtol=1e-5)


def test_images_of_another_size_are_resized_first():
    model = convert_batchnorm(build_model("lenet", (1, 40, 40), 10, torch.Generator().manual_seed(0)))
    x = torch.rand(4, 1, 40, 40)
    parts = split(model, x)
    parts.eval()
    torch.testing.assert_close(parts.head(accelerate(parts.backbone)(x)), model(x), atol=1e-5, rtol=1e-4)


def test_a_users_own_network():
    x = torch.rand(3, 1, 8, 8)
    net = network()
    view = accelerate(net)
    assert kinds(view) == [FusedBlock]
    net.eval()
    torch.testing.assert_close(view(x), net(x), atol=1e-5, rtol=1e-4)


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, x):
        return self.body(x if x.sum() > 0 else -x)


class Reused(nn.Module):
    """The normalised image is needed twice, so it must exist."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x):
        h = F.relu(self.norm(self.conv(x)))
        return F.max_pool2d(h, 2).flatten(1) + h.mean((2, 3)).repeat(1, 16)


class Dropping(nn.Module):
    """A trace would keep the mode in which it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, x):
        return F.dropout(self.body(x), 0.5, self.training)


def hooked() -> nn.Module:
    net = network()
    net[0].register_forward_hook(lambda *_: None)
    return net


def without(number: int, replacement: nn.Module) -> nn.Module:
    net = network()
    net[number] = replacement
    return convert_batchnorm(net)


@pytest.mark.parametrize(
    "net",
    [
        Branching(),
        Dropping(),
        convert_batchnorm(Reused()),
        hooked(),
        torch.nn.utils.parametrizations.weight_norm(network()[0]),
        without(3, nn.MaxPool2d(3)),
        without(3, nn.MaxPool2d(2, stride=1)),
        without(3, nn.AvgPool2d(2)),
        without(0, nn.Conv2d(32, 4, 3, padding=1)),
        without(2, nn.Tanh()),
        without(1, nn.BatchNorm2d(4, affine=False)),
        without(1, nn.BatchNorm2d(4, track_running_stats=False)),
        without(0, nn.Conv2d(1, 4, 3, padding=1, stride=2)),
        without(0, nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect")),
        without(0, nn.Conv2d(1, 4, 3, padding="same")),
        network(nn.Dropout(0.5, inplace=True)),
        network(nn.ReLU(inplace=True)),
        nn.Linear(3, 2),
    ],
    ids=lambda n: type(n).__name__,
)
def test_what_does_not_fit_is_left_alone(net):
    assert not {FusedBlock, BareBlock} & set(kinds(accelerate(net)))


def test_other_devices_run_as_they_are():
    assert accelerate(network(), "meta") is None


def test_modes_stay_as_they_were():
    net = network()
    net[1].eval()
    accelerate(net)
    assert [m.training for m in net] == [i != 1 for i in range(len(net))]


def test_a_dropout_module_follows_the_mode():
    net = network(nn.Dropout(0.5))
    view, x = accelerate(net), torch.rand(3, 1, 8, 8)
    view.eval()
    assert torch.equal(view(x), view(x))

"""Which networks are accelerated, and that the accelerated module is the same network in every respect."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from wrssl.fast import accelerate
from wrssl.fast.block import BareBlock, FusedBlock, WindowConv
from wrssl.models import build_model, split
from wrssl.norm import Part, Source, convert_batchnorm, statistics, weighted_layers


def kinds(module: nn.Module) -> list[type]:
    """The blocks in an accelerated module, which has them in its view."""
    view = getattr(module, "_forms", (None, module))[1]
    return [type(m) for m in view.children() if isinstance(m, BareBlock | FusedBlock | WindowConv)]


def functions(output: torch.Tensor) -> set[str]:
    """The names of the functions in a graph."""
    nodes, seen = [output.grad_fn], {}
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen[node] = node.name()
            nodes += [below for below, _ in node.next_functions]
    return set(seen.values())


def is_fused(output: torch.Tensor) -> bool:
    return "ConvNormPoolBackward" in functions(output)


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


class Computed(nn.Module):
    """A trace would keep the result of what is computed from buffers alone."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.scale.exp() * self.body(x)


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
        Computed(),
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


@pytest.mark.parametrize(
    "net", [Branching(), hooked(), without(2, nn.Tanh()), nn.Linear(3, 2)], ids=lambda n: type(n).__name__
)
def test_where_nothing_can_be_fused_the_module_itself_comes_back(net):
    assert accelerate(net) is net


def test_on_other_devices_the_module_itself_comes_back():
    net = network()
    assert accelerate(net, torch.device("meta")) is net


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


class Scaled(nn.Module):
    """Tensors of a container itself: a parameter, a buffer and a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.scale = network(), nn.Parameter(torch.tensor(2.0))
        self.register_buffer("shift", torch.tensor(0.5))
        self.plain = torch.tensor(3.0)

    def forward(self, x):
        return self.scale * self.body(x) * self.plain + self.shift


def test_names_and_tensors_are_those_of_the_backbone():
    net = Scaled()
    fast = accelerate(net)
    for kind in ("named_parameters", "named_buffers", "named_modules"):
        ours, theirs = (dict(getattr(m, kind)()) for m in (fast, net))
        assert list(ours) == list(theirs)
        assert all(ours[name] is theirs[name] for name in ours if name)
    assert list(fast.state_dict()) == list(net.state_dict())


@pytest.mark.parametrize("how", ["replaced", "functional", "type", "loaded"])
def test_changed_tensors_of_a_container_are_seen(how):
    net, x = Scaled().eval(), torch.rand(3, 1, 8, 8)
    fast, other = accelerate(net), copy.deepcopy(net)
    with torch.no_grad():
        other.scale.fill_(5)
        other.shift.fill_(-1)
    state = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    if how == "replaced":
        net.scale, net.shift = nn.Parameter(other.scale.detach().clone()), other.shift.clone()
    elif how == "type":
        net.double()
        x, other = x.double(), copy.deepcopy(net)
    elif how == "loaded":
        fast.load_state_dict(other.state_dict())
    got = functional_call(fast, state, (x,)) if how == "functional" else fast(x)
    assert is_fused(got)
    torch.testing.assert_close(got, other(x), atol=1e-5, rtol=1e-4)


def test_modes_reach_every_layer():
    net = nn.Sequential(*network(nn.Dropout(0.5)))
    fast = accelerate(net)
    for mode in (False, True):
        fast.train(mode)
        assert {m.training for m in (fast, *net.modules())} == {mode}


@pytest.mark.parametrize("kind", ["hook", "pre-hook", "of a container"])
def test_under_hooks_the_backbone_runs(kind):
    net, x, seen = nn.Sequential(network()), torch.rand(3, 1, 8, 8), []
    fast = accelerate(net)
    layer = net[0][2] if kind != "of a container" else net[0]  # a ReLU that no block calls
    register = layer.register_forward_pre_hook if kind == "pre-hook" else layer.register_forward_hook
    handle = register(lambda *_: seen.append(1))
    assert not is_fused(fast(x))
    assert seen == [1]
    handle.remove()
    assert is_fused(fast(x))
    assert seen == [1]


def test_a_batch_that_is_spread_over_processes_runs_through_the_layers():
    net, x = network(), torch.rand(4, 1, 8, 8)
    fast, layers = accelerate(net), weighted_layers(net)
    sizes = []
    part = Part(slice(0, 4), 4, lambda sums: sizes.append(sums.shape) or sums)
    with statistics(layers, Source.BATCH, False, None, part=part):
        output = fast(x)
    assert not is_fused(output)
    assert sizes  # the sums have been exchanged
    with statistics(layers, Source.BATCH, False, None):
        torch.testing.assert_close(fast(x), output, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("what", ["autocast", "vmap", "weights with gradient"])
def test_elsewhere_the_layers_run(what):
    net, x = network(), torch.rand(4, 1, 8, 8)
    fast, layers = accelerate(net), weighted_layers(net)
    w = torch.rand(4, requires_grad=True) if what == "weights with gradient" else None
    source = Source.BATCH if w is None else Source.WEIGHTED
    with statistics(layers, source, False, w), torch.autocast("cpu", enabled=what == "autocast"):
        got, expected = (torch.func.vmap(m)(x[None])[0] if what == "vmap" else m(x) for m in (fast, net))
    assert not is_fused(got)
    torch.testing.assert_close(got, expected, atol=0, rtol=0)


def test_a_network_in_training_follows_a_fused_optimizer():
    """Bit by bit the parameters of a training in which nothing can be kept from one step to the next."""
    x, y = torch.rand(20, 1, 28, 28, generator=torch.Generator().manual_seed(1)), torch.arange(20) % 10
    results = []
    for kept in (True, False):
        model = convert_batchnorm(build_model("lenet", (1, 28, 28), 10, torch.Generator().manual_seed(0)))
        parts = split(model, x)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
        fast = accelerate(parts.backbone)
        for _ in range(5):
            fast = fast if kept else accelerate(parts.backbone)
            for rows in (slice(0, 12), slice(12, 20)):
                F.cross_entropy(parts.head(fast(x[rows])), y[rows]).backward()
            optimizer.step()
            optimizer.zero_grad()
        assert is_fused(fast(x))
        results.append(model.state_dict())
    start = build_model("lenet", (1, 28, 28), 10, torch.Generator().manual_seed(0)).state_dict()
    for name, value in results[0].items():
        assert torch.equal(value, results[1][name]), name
        assert not torch.equal(value, start[name]) or name.endswith(("conv1.bias", "conv2.bias", "conv3.bias")), name

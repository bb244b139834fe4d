"""The split into backbone and head: identities, sharing, no traces left."""

from __future__ import annotations

import copy

import pytest
import torch
from model_zoo import Nested, ResNet, Shared, Wrapper, reset
from torch import Tensor, nn

from wrssl.models import Split, build_model, list_models, split


def batch(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def sequential() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))


def noisy() -> nn.Module:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.fc = nn.Linear(6, 8), nn.Linear(8, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.fc(nn.functional.dropout(self.body(x), 0.5, True))

    return Noisy()


MODELS = {
    "linear": (lambda: nn.Linear(6, 5), (4, 6), ""),
    "sequential": (sequential, (4, 6), "4"),
    "resnet": (ResNet, (4, 3, 16, 16), "fc"),
    "nested": (Nested, (4, 6), "top.classifier.2"),
    "wrapped": (lambda: Wrapper(Wrapper(sequential())), (4, 6), "module.module.4"),
    "data-parallel": (lambda: nn.DataParallel(ResNet()), (4, 3, 16, 16), "module.fc"),
    "shared": (Shared, (4, 6), "out"),
    "identity-last": (lambda: nn.Sequential(nn.Linear(6, 5), nn.Identity()), (4, 6), "0"),
    "noise-in-eval": (noisy, (4, 6), "fc"),
}


@pytest.fixture(params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[nn.Module, Tensor, str]:
    make, shape, name = MODELS[request.param]
    return reset(make()), batch(*shape), name


def test_head_of_backbone_is_the_model(case: tuple[nn.Module, Tensor, str]) -> None:
    model, x, name = case
    parts = split(model, x[:2])
    assert (parts.model, parts.head_name) == (model, name)
    assert parts.head is dict(model.named_modules())[name]
    for mode in (False, True):
        if "BatchNorm" in repr(model) and mode:
            before = copy.deepcopy(model.state_dict())
        parts.train(mode)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            expected = model(x)
        if "BatchNorm" in repr(model) and mode:
            model.load_state_dict(before)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            features = parts.backbone(x)
        assert features.shape == (len(x), parts.head.in_features)
        torch.testing.assert_close(parts.head(features), expected, rtol=0, atol=0)


def test_everything_is_shared_and_nothing_duplicated(case: tuple[nn.Module, Tensor, str]) -> None:
    model, x, name = case
    parts = split(model, x)
    mine = {n: p for n, p in model.named_parameters() if not n.startswith(f"{name}." if name else "")}
    if name:
        assert dict(parts.backbone.named_parameters()) == mine  # the same objects under the same names
    ids = {id(p) for p in parts.backbone.parameters()} | {id(p) for p in parts.head.parameters()}
    assert ids == {id(p) for p in model.parameters()}
    assert [id(b) for b in parts.backbone.buffers()] == [id(b) for b in model.buffers()]
    inside = {id(m) for m in model.modules()}
    copied = [m for m in parts.backbone.modules() if id(m) not in inside]
    depth = len(name.split(".")) if name else 0
    assert len(copied) == depth + 1  # the containers on the way, and the identity
    assert not any(m is parts.head for m in parts.backbone.modules())


def test_no_trace_is_left(case: tuple[nn.Module, Tensor, str]) -> None:
    model, x, _ = case
    model.train()
    for m in list(model.modules())[1::2]:
        m.training = False  # a mixture of modes must come back as a mixture
    flags = [m.training for m in model.modules()]
    tree = [(n, id(m)) for n, m in model.named_modules(remove_duplicate=False)]
    state = copy.deepcopy(model.state_dict())
    versions = [t._version for t in (*model.parameters(), *model.buffers())]
    rng = torch.get_rng_state()
    parts = split(model, x)
    assert [m.training for m in model.modules()] == flags
    assert [(n, id(m)) for n, m in model.named_modules(remove_duplicate=False)] == tree
    assert [t._version for t in (*model.parameters(), *model.buffers())] == versions
    assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())
    assert not any(m._forward_hooks for m in (*model.modules(), *parts.backbone.modules()))
    assert torch.equal(torch.get_rng_state(), rng)


@pytest.mark.parametrize("name", list_models())
def test_built_in_models_are_split_the_same_way(name: str) -> None:
    g = torch.Generator().manual_seed(0)
    model = build_model(name, (1, 8, 8), 10, g)
    x = batch(3, 1, 8, 8)
    parts = split(model, x).eval()
    assert parts.head is model.get_submodule("head")
    torch.testing.assert_close(parts.head(parts.backbone(x)), model(x), rtol=0, atol=0)


def test_gradients_flow_through_both_views_alike() -> None:
    model, x = reset(ResNet()), batch(4, 3, 16, 16)
    parts = split(model, x).eval()
    model(x).square().sum().backward()
    expected = {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    parts.head(parts.backbone(x)).square().sum().backward()
    for n, p in model.named_parameters():
        torch.testing.assert_close(p.grad, expected[n], rtol=0, atol=0)


def test_modes_reach_the_copied_containers() -> None:
    model = reset(Nested())
    parts = split(model, batch(4, 6))
    parts.backbone.eval()
    assert not any(m.training for m in parts.backbone.modules())
    x = batch(4, 6)
    assert torch.equal(parts.backbone(x), parts.backbone(x))  # dropout by the container's own flag is off
    assert parts.train() is parts
    assert all(m.training for m in (*parts.backbone.modules(), *model.modules()))
    assert not any(m.training for m in (*parts.eval().backbone.modules(), *model.modules()))


def test_the_backbone_shares_steps_moves_and_loading() -> None:
    model, x = reset(ResNet()), batch(4, 3, 16, 16)
    parts = split(model, x).eval()
    parts.head(parts.backbone(x)).square().sum().backward()
    torch.optim.SGD(model.parameters(), lr=1e-4).step()
    torch.testing.assert_close(parts.head(parts.backbone(x)), model(x), rtol=0, atol=0)
    model.load_state_dict(reset(ResNet(), seed=5).state_dict())
    torch.testing.assert_close(parts.head(parts.backbone(x)), model(x), rtol=0, atol=0)
    model.double()
    assert {b.dtype for b in parts.backbone.buffers()} == {b.dtype for b in model.buffers()}
    torch.testing.assert_close(parts.head(parts.backbone(x.double())), model(x.double()), rtol=0, atol=0)


def test_functional_call_takes_the_names_of_the_model() -> None:
    model, x = reset(Nested()), batch(4, 6)
    parts = split(model, x).eval()
    other = dict(reset(Nested(), seed=7).named_parameters())
    mine = {n: other[n] for n, _ in parts.backbone.named_parameters()}
    h = torch.func.functional_call(parts.backbone, mine, (x,))
    whole = torch.func.functional_call(model, other, (x,))
    name = parts.head_name
    again = nn.functional.linear(h, other[f"{name}.weight"], other[f"{name}.bias"])
    torch.testing.assert_close(again, whole)


def test_a_twin_is_the_same_split_of_a_copy() -> None:
    model, x = reset(Nested()), batch(4, 6)
    parts = split(model, x).eval()
    teacher = copy.deepcopy(model)
    twin = parts.twin(teacher).eval()
    assert isinstance(twin, Split)
    assert twin.head is teacher.top.classifier[2]
    assert not {id(p) for p in twin.backbone.parameters()} & {id(p) for p in model.parameters()}
    torch.testing.assert_close(twin.head(twin.backbone(x)), model(x), rtol=0, atol=0)
    both = copy.deepcopy(parts)
    assert {id(p) for p in both.backbone.parameters()} <= {id(p) for p in both.model.parameters()}


def test_a_frozen_layer_with_its_own_train_method_is_respected() -> None:
    class Frozen(nn.BatchNorm1d):
        def train(self, mode: bool = True) -> Frozen:
            raise AssertionError("the split must not call train()")

    model = reset(nn.Sequential(nn.Linear(6, 8), Frozen(8), nn.Linear(8, 5)))
    assert split(model, batch(4, 6)).head_name == "2"


def test_buffers_that_move_in_evaluation_mode_come_back() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("total", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls = self.calls + 1
            self.total += 1
            return x

    model = reset(nn.Sequential(Counter(), nn.Linear(6, 5)))
    before = [(id(b), b.clone()) for b in model.buffers()]
    split(model, batch(4, 6))
    assert all(id(b) == i and torch.equal(b, v) for b, (i, v) in zip(model.buffers(), before, strict=True))


def test_parametrized_head_works() -> None:
    model = reset(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5)))
    nn.utils.parametrizations.weight_norm(model[2])
    parts = split(model, batch(4, 6))
    assert parts.head is model[2]

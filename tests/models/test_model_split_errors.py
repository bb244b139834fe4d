"""Models that cannot be split are refused in one sentence that says what to change."""

from __future__ import annotations

import warnings

import pytest
import torch
import torch.nn.functional as F
from model_zoo import Lambda, ResNet, reset
from torch import Tensor, nn

from wrssl.errors import ModelError
from wrssl.models import split


def batch(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


class Cosine(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.normalize(x), F.normalize(self.weight))


class Peeks(nn.Module):
    """Asks its head for more than a call."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.fc = nn.Linear(6, 8), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.body(x)[:, : self.fc.in_features])


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.fc(x))


CASES = {
    "dict": (Lambda(lambda m, x: {"logits": m.fc(x)}), r"returns a dict.*returns the logits only"),
    "tuple": (Lambda(lambda m, x: (m.fc(x), x)), r"returns a tuple.*returns the logits only"),
    "softmax layer": (nn.Sequential(nn.Linear(6, 5), nn.Softmax(1)), r"ends with Softmax \('1'\).*take logits"),
    "softmax function": (Lambda(lambda m, x: m.fc(x).softmax(1)), r"computed after it.*head=, one of: 'fc'"),
    "relu in place": (nn.Sequential(nn.Linear(6, 5), nn.ReLU(inplace=True)), r"ends with ReLU \('1'\)"),
    "function in place": (Lambda(lambda m, x: F.relu_(m.fc(x))), r"'fc' is changed in place"),
    "dropout last": (nn.Sequential(nn.Linear(6, 5), nn.Dropout()), r"ends with Dropout \('1'\)"),
    "convolution last": (nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 5, 6)), r"ends with Conv1d"),
    "no layer": (nn.Flatten(), r"has no Linear layer; end it with one"),
    "weight used directly": (
        Lambda(lambda m, x: F.linear(x, m.fc.weight, m.fc.bias)),
        r"'fc' is never called.*use self.fc\(h\), not its weight",
    ),
    "used twice": (Twice(), r"'fc' runs 2 times; give the model a last layer of its own"),
    "sequence": (
        Lambda(lambda m, x: m.fc(x[:, None, :].expand(-1, 3, -1))),
        r"features of shape \(4, 3, 6\); pool or flatten",
    ),
    "not linear": (nn.Sequential(nn.Linear(6, 8), Cosine(8, 5)), r"not '1' applied.*plain Linear layer"),
    "peeks at its head": (Peeks(), r"does not run without its last layer 'fc'; use self.fc only by calling it"),
    "fails": (nn.Sequential(nn.Linear(7, 5)), r"cannot process a batch of shape \(4, 6\).*made for this data"),
    "lazy": (nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 5)), r"lazy layers.*run one batch"),
}


@pytest.mark.parametrize("case", CASES)
def test_refusals_say_what_to_do(case: str) -> None:
    model, message = CASES[case]
    if case != "lazy":
        reset(model)
    flags = [m.training for m in model.modules()]
    with pytest.raises(ModelError, match=message) as caught:
        split(model, batch(4, 6))
    assert str(caught.value).count("\n") == 0
    assert [m.training for m in model.modules()] == flags
    assert not any(m._forward_hooks for m in model.modules())


def test_a_named_head_is_taken_where_tracing_cannot_see_it() -> None:
    model = reset(Lambda(lambda m, x: m.fc(x).clone()))
    with pytest.raises(ModelError, match="name it with head="):
        split(model, batch(4, 6))
    parts = split(model, batch(4, 6), head="fc")
    assert parts.head is model.fc
    torch.testing.assert_close(parts.head(parts.backbone(batch(4, 6))), model(batch(4, 6)))


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("classifier", r"has no layer 'classifier'; head= must name one of its Linear layers: 'fc'"),
        ("layer1", r"has Sequential as 'layer1'"),
        ("fc", None),
    ],
)
def test_names_are_checked(head: str, message: str | None) -> None:
    model, x = reset(ResNet()), batch(2, 3, 16, 16)
    if message is None:
        assert split(model, x, head=head).head is model.fc
        return
    with pytest.raises(ModelError, match=message):
        split(model, x, head=head)


def test_a_wrong_name_is_refused() -> None:
    model = reset(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5)))
    with pytest.raises(ModelError, match=r"'0' applied to the features|does not run without"):
        split(model, batch(4, 6), head="0")
    direct = reset(Lambda(lambda m, x: F.linear(x, m.fc.weight, m.fc.bias)))
    with pytest.raises(ModelError, match=r"'fc' is never called in the forward pass; call it as self.fc\(h\)"):
        split(direct, batch(4, 6), head="fc")


def test_scripted_models_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch announces the end of scripting
        model = torch.jit.script(nn.Sequential(nn.Linear(6, 5)))
    with pytest.raises(ModelError, match=r"give the original nn\.Module"):
        split(model, batch(4, 6))

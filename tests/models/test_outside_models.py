"""A model that is registered from outside the package: built, trained, stored and loaded like the built-in ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

import wrssl
from wrssl.errors import ModelError, OptionError
from wrssl.models import build_model, init_default, list_models, outline_model
from wrssl.registry import MODELS, register_model


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    with MODELS.isolated():
        yield


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network(input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True) -> nn.Module:
    body = [nn.Flatten(), nn.Linear(torch.Size(input_shape).numel(), 8), nn.BatchNorm1d(8), nn.ReLU()]
    return nn.Sequential(
        *(m for m in body if batch_norm or not isinstance(m, nn.BatchNorm1d)), nn.Linear(8, num_classes)
    )


def register(factory: Callable[..., object], **facts: object) -> None:
    register_model("mine", **facts)(factory)


def test_it_is_trained_stored_and_loaded(tmp_path) -> None:
    register(network)
    scenario = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    before = torch.get_rng_state()
    result = wrssl.fit(
        scenario, model="mine", method="pi", weights="none", steps=5, out=tmp_path / "run", progress=False
    )
    assert torch.equal(torch.get_rng_state(), before)
    assert result.config["model"] == "mine"
    assert [type(m).__name__ for m in result.model.children()].count("Linear") == 2
    again = wrssl.load(tmp_path / "run")
    x = torch.rand(6, *scenario.input_shape, generator=seeded())
    with torch.no_grad():
        assert torch.equal(again.model(x), result.model(x))
    assert not torch.equal(result.model[1].weight, build_model("mine", scenario.input_shape, 10, seeded())[1].weight)


def test_a_stored_run_asks_for_its_model(tmp_path) -> None:
    scenario = wrssl.load_scenario("moons", ood="faraway", ratio=0.25, seed=0)
    with MODELS.isolated():
        register(network)
        wrssl.fit(scenario, model="mine", weights="none", steps=2, out=tmp_path / "run", progress=False)
    with pytest.raises(OptionError, match=r"no model 'mine'.*register one of your own"):
        wrssl.load(tmp_path / "run")


@pytest.mark.parametrize("name", ["mine", "mine-nobn"])
def test_parameters_follow_from_the_given_generator_only(name: str) -> None:
    register(network)
    before = torch.get_rng_state()
    first, again, other = (build_model(name, (3,), 4, seeded(seed)).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], again[key]) for key in first)
    weights = [key for key, value in first.items() if value.ndim == 2]
    assert len(weights) == 2
    assert not any(torch.equal(first[key], other[key]) for key in weights)


def test_the_suffix_leaves_out_batch_norms_where_the_factory_can() -> None:
    register(network)
    assert {"mine", "mine-nobn"} <= set(list_models())
    kinds = {name: {type(m) for m in build_model(name, (3,), 4, seeded()).modules()} for name in ("mine", "mine-nobn")}
    assert nn.BatchNorm1d in kinds["mine"]
    assert nn.BatchNorm1d not in kinds["mine-nobn"]


def test_a_factory_without_that_parameter_has_no_such_variant() -> None:
    register(lambda input_shape, num_classes: nn.Linear(*input_shape, num_classes))
    assert "mine" in list_models()
    assert "mine-nobn" not in list_models()
    assert build_model("mine", (3,), 4, seeded()).weight.shape == (4, 3)
    for make in (lambda: build_model("mine-nobn", (3,), 4, seeded()), lambda: outline_model("mine-nobn", (3,), 4)):
        with pytest.raises(OptionError, match=r"^The model 'mine' has no variant without batch norm; choose 'mine'\.$"):
            make()


def test_a_registered_name_may_end_like_the_suffix() -> None:
    register_model("plain-nobn")(network)
    assert any(isinstance(m, nn.BatchNorm1d) for m in build_model("plain-nobn", (3,), 4, seeded()).modules())


def test_images_can_be_required_and_other_shapes_are_left_to_the_factory() -> None:
    register(network)
    register_model("pictures", images=True)(lambda input_shape, num_classes: network(input_shape, num_classes))
    assert build_model("mine", (2, 5), 3, seeded())(torch.zeros(4, 2, 5)).shape == (4, 3)
    assert build_model("pictures", (1, 4, 4), 3, seeded())(torch.zeros(4, 1, 4, 4)).shape == (4, 3)
    with pytest.raises(ModelError, match=r"'pictures' needs images"):
        build_model("pictures", (5,), 3, seeded())


def test_an_initialization_of_its_own_makes_it_a_model_built_without_memory() -> None:
    devices = []

    def watched(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        devices.append(torch.empty(0).device.type)
        return nn.Linear(*input_shape, num_classes)

    register(watched, init=init_default)
    built = build_model("mine", (3,), 4, seeded())
    assert devices == ["meta"]
    expected = nn.Linear(3, 4)
    init_default(expected, seeded())
    assert torch.equal(built.weight, expected.weight)


def test_an_outline_costs_no_memory() -> None:
    register(network)
    before = torch.get_rng_state()
    outline = outline_model("mine", (10**7,), 10**6)
    assert all(parameter.is_meta for parameter in outline.parameters())
    assert outline[1].weight.shape == (8, 10**7)
    assert torch.equal(torch.get_rng_state(), before)


class Table(nn.Module):
    """Holds numbers that no state dict has."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, where: str) -> None:
        super().__init__()
        numbers = torch.arange(float(input_shape[0]))
        self.register_buffer("kept", numbers + 1)
        if where == "buffer":
            self.register_buffer("numbers", numbers, persistent=False)
        else:
            self.numbers = {"attribute": numbers, "list": [numbers], "dictionary": {"of": (numbers,)}}[where]
        self.fc = nn.Linear(input_shape[0], num_classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)


def read_value(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
    if torch.rand(1).item() > 2:
        raise AssertionError
    return nn.Linear(*input_shape, num_classes)


@pytest.mark.parametrize("where", ["buffer", "attribute", "list", "dictionary", "value"])
def test_what_a_state_dict_would_not_restore_is_really_built(where: str) -> None:
    register(read_value if where == "value" else lambda shape, classes: Table(shape, classes, where))
    before = torch.get_rng_state()
    model = outline_model("mine", (5,), 4)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))
    if where == "attribute":
        assert model.numbers.tolist() == [0, 1, 2, 3, 4]


def test_pretrained_parts_are_copied_and_outlined_in_silence() -> None:
    pretrained = nn.Linear(3, 8)

    def loads(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        own = nn.Linear(3, 8)
        own.load_state_dict(pretrained.state_dict())
        return nn.Sequential(own, pretrained, nn.Linear(8, num_classes))

    register(loads)
    built = build_model("mine", (3,), 4, seeded())
    assert torch.equal(built[0].weight, pretrained.weight)
    assert torch.equal(built[1].weight, pretrained.weight)
    assert built[1].weight is not pretrained.weight
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        outline = outline_model("mine", (3,), 4)
    assert not heard
    assert outline[0].weight.is_meta


def test_a_factory_that_fails_or_gives_something_else_is_named() -> None:
    def fails(input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        raise ValueError("nothing here\nat all")

    register(fails)
    register_model("none")(lambda input_shape, num_classes: None)
    with pytest.raises(
        ModelError, match=r"'mine' cannot be built for .*\(3,\) and 4 classes \(nothing here\); correct"
    ):
        build_model("mine", (3,), 4, seeded())
    with pytest.raises(ModelError, match="factory of the model 'none' returns a NoneType; let it return"):
        build_model("none", (3,), 4, seeded())

"""Names for methods and weightings: errors that list what exists, options of parents, classes of users."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import BatchWeights, Method, OptionError, Pass, Views, Weighting, WRSSLError
from wrssl.registry import METHODS, WEIGHTINGS, Registry, option_hints


@pytest.fixture(autouse=True)
def own_names():
    """What a test registers is gone after it."""
    with METHODS.isolated(), WEIGHTINGS.isolated():
        yield


def test_the_facade_lists_both():
    assert wrssl.list_methods() == METHODS.names()
    assert wrssl.list_weightings() == WEIGHTINGS.names()
    assert set(wrssl.list_weightings()) >= {"none", "oracle", "wr-instance", "wr-cluster"}


@pytest.mark.parametrize("registry", [METHODS, WEIGHTINGS], ids=["method", "weighting"])
def test_every_class_has_a_line_for_the_list(registry):
    for name in registry.names():
        assert registry.get(name).summary.strip()
        assert registry.create(name) is not registry.create(name)


@pytest.mark.parametrize(
    ("registry", "sentence"),
    [
        (METHODS, "There is no method 'vatt'; choose one of .*supervised.*vat"),
        (WEIGHTINGS, "There is no weighting 'vatt'; choose one of .*none.*wr-cluster"),
    ],
    ids=["method", "weighting"],
)
def test_an_unknown_name_lists_the_known_ones(registry, sentence):
    with pytest.raises(WRSSLError, match=sentence):
        registry.create("vatt")


def test_an_unknown_option_lists_the_known_ones():
    with pytest.raises(OptionError, match=r"The weighting 'oracle' has no option 'K'; its options are: none\."):
        WEIGHTINGS.create("oracle", {"K": 3})
    with pytest.raises(
        OptionError, match="The weighting 'wr-cluster' has no option 'k'; its options are: K, embedding"
    ):
        WEIGHTINGS.create("wr-cluster", {"k": 3})


BILEVEL = [
    "J", "P", "L", "beta", "l1", "alpha", "solver", "scope", "curvature", "damping", "mixed_at", "outer_loss", "compat",
]  # fmt: skip


@pytest.mark.parametrize(
    ("registry", "name", "options"),
    [
        (WEIGHTINGS, "none", []),
        (WEIGHTINGS, "wr-instance", BILEVEL),
        (WEIGHTINGS, "wr-cluster", ["K", "embedding", "warmup", *BILEVEL]),
        (METHODS, "supervised", []),
        (METHODS, "pl", ["threshold", "coef", "lr"]),
        (METHODS, "vat", ["eps", "xi", "power_iterations", "kl", "coef", "lr"]),
    ],
)
def test_list_of_options(registry, name, options):
    assert list(option_hints(registry.get(name))) == options


def test_options_are_inherited_as_far_as_they_are_handed_on():
    class Grandparent:
        def __init__(self, hidden=0): ...

    class Parent(Grandparent):
        def __init__(self, a, *, b=1): ...

    class Open(Parent):
        def __init__(self, c=2, **rest):
            super().__init__(**rest)

    class Silent(Open):
        pass

    class Closed(Parent):
        def __init__(self, c=2, *extra): ...

    assert list(option_hints(Parent)) == ["a", "b"]
    assert list(option_hints(Open)) == ["c", "a", "b"]
    assert list(option_hints(Silent)) == ["c", "a", "b"]
    assert list(option_hints(Closed)) == ["c"]


def test_names_in_the_order_of_registration():
    registry: Registry[object] = Registry("thing", "wrssl")
    for name in ("b", "a", "c"):
        registry.register(name)(type(name, (), {}))
    assert registry.names() == ["b", "a", "c"]


def test_a_name_can_be_taken_once():
    registry: Registry[object] = Registry("thing", "wrssl")

    @registry.register("one")
    class One: ...

    with pytest.raises(OptionError, match="The thing 'one' exists already; register yours under another name"):

        @registry.register("one")
        class Other: ...

    assert registry.get("one") is One


def test_the_same_class_again_replaces_itself():
    """A reloaded module, a notebook cell that is run twice."""
    registry: Registry[object] = Registry("thing", "wrssl")

    def cell():
        @registry.register("one")
        class One: ...

        return One

    first, second = cell(), cell()
    assert first is not second
    assert registry.get("one") is second


def test_a_class_of_another_module_is_another_class_even_under_the_same_name():
    """A user's own ``class VAT`` registered as "vat" must not silently replace the built-in one."""
    built_in = METHODS.get("vat")
    own = type("VAT", (built_in,), {"__module__": "users_project", "__qualname__": "VAT"})
    with pytest.raises(OptionError, match="exists already"):
        wrssl.register_method("vat")(own)
    assert METHODS.get("vat") is built_in


def test_what_is_registered_in_isolation_is_gone_afterwards():
    registry: Registry[object] = Registry("thing", "wrssl")
    registry.register("one", number=1)(object)
    with suppress(KeyError), registry.isolated():  # an error inside changes nothing about it
        registry.register("two", number=2)(type("Two", (), {}))
        assert registry.names() == ["one", "two"]
        assert registry.facts("two") == {"number": 2}
        raise KeyError
    assert registry.names() == ["one"]
    assert registry.facts("one") == {"number": 1}
    with pytest.raises(OptionError, match="There is no thing 'two'; choose one of one, or register one of your own"):
        registry.facts("two")


def own_method_and_weighting():
    @wrssl.register_method("own-flat")
    class Flat(Method):
        """r_j = Σ_c (p_jc − 1/C)²."""

        summary: ClassVar[str] = "predictions on the pool are flat"

        def __init__(self, coef: float = 2.0) -> None:
            self.coef = coef

        def views(self, net, x, context):
            features = net.features(x, Pass.UNLABELED)
            return Views(x, Pass.UNLABELED, features, features.new_zeros(len(x), 0))

        def loss(self, logits, targets):
            p = logits.softmax(1)
            return (p - 1 / p.shape[1]).square().sum(1)

    @wrssl.register_weighting("own-first-half")
    class FirstHalf(Weighting):
        """w_j = 1 for the first half of the pool, 0 for the second."""

        summary: ClassVar[str] = "the first half"

        def __init__(self, low: float = 0.0) -> None:
            self.low, self.seen = low, list[int]()

        def setup(self, pool):
            self.table = torch.where(torch.arange(pool.size) < pool.size // 2, 1.0, self.low)

        def batch(self, index):
            return BatchWeights(self.table[index])

        def update(self, index, signal):
            assert signal.hypergradient is None
            assert signal.losses.shape == index.shape
            self.seen.append(signal.step)

    return Flat, FirstHalf


def test_own_classes_are_created_by_name():
    flat, half = own_method_and_weighting()
    assert "own-flat" in wrssl.list_methods()
    assert "own-first-half" in wrssl.list_weightings()
    assert METHODS.create("own-flat", {"coef": 3.0}).coef == 3.0
    assert isinstance(METHODS.create("own-flat"), flat)
    assert isinstance(WEIGHTINGS.create("own-first-half", {"low": 0.5}), half)
    with pytest.raises(OptionError, match="its options are: low"):
        WEIGHTINGS.create("own-first-half", {"high": 1.0})


def test_own_classes_train():
    own_method_and_weighting()
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 3)).astype(np.float32), np.arange(20) % 2
    pool = rng.normal(size=(12, 3)).astype(np.float32)
    result = wrssl.fit(
        wrssl.Scenario(labeled=(x, y), unlabeled=pool),
        model="mlp",
        method="own-flat",
        weights="own-first-half",
        weight_options={"low": 0.25},
        steps=3,
        batch_size=6,
        progress=False,
    )
    assert result.weights.tolist() == [1.0] * 6 + [0.25] * 6
    assert result.metrics["optimizer_steps"] == 3


def test_the_automatic_derivatives_let_an_own_method_drive_learned_weights():
    own_method_and_weighting()
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 3)).astype(np.float32), np.arange(30) % 2
    pool = rng.normal(size=(12, 3)).astype(np.float32)
    result = wrssl.fit(
        wrssl.Scenario(labeled=(x[:20], y[:20]), unlabeled=pool, validation=(x[20:], y[20:])),
        model="mlp",
        method="own-flat",
        weights="wr-instance",
        weight_options={"L": 1},
        steps=4,
        batch_size=6,
        progress=False,
    )
    assert ((result.weights >= 0) & (result.weights <= 1)).all()
    assert (result.weights < 1).any()

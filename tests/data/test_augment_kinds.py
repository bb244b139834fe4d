from __future__ import annotations

import pytest
import torch

from wrssl.data.augment import AUGMENTATIONS, augmentation_for, default_kind, value_range
from wrssl.errors import OptionError

CASES = [
    ("table", (5,)),
    ("shapes", (1, 28, 28)),
    ("shapes", (1, 8, 8)),
    ("shapes", (2, 9, 20)),
    ("signs", (3, 32, 32)),
    ("signs", (1, 28, 28)),
    ("photos", (3, 32, 32)),
    ("photos", (4, 12, 7)),
    ("photos", (3, 1, 2)),
]
IMAGES = [case for case in CASES if case[0] != "table"]
LIMITS = (-1.0, 1.0)


def examples(number: int, shape: tuple[int, ...], limits=LIMITS, dtype=torch.float32) -> torch.Tensor:
    x = torch.rand((number, *shape), generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    return (limits[0] + (limits[1] - limits[0]) * x).to(dtype)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("kind", "shape"), CASES)
@pytest.mark.usefixtures("global_rng_untouched")
def test_contract(kind, shape, dtype):
    augmentation, x = augmentation_for(kind, shape, LIMITS), examples(50, shape, dtype=dtype)
    kept = x.clone()
    for view in (augmentation.weak, augmentation.strong):
        got = view(x, seeded())
        assert (got.shape, got.dtype) == (x.shape, dtype)
        assert torch.equal(x, kept)
        assert torch.equal(got, view(x, seeded()))
        assert view(x[:0], seeded()).shape == (0, *shape)
    assert not torch.equal(augmentation.strong(x, seeded()), augmentation.strong(x, seeded(1)))


@pytest.mark.parametrize(("kind", "shape"), [case for case in CASES if case[1] != (3, 1, 2)])
def test_each_example_gets_its_own_change(kind, shape):
    augmentation, x = augmentation_for(kind, shape, LIMITS), examples(1, shape)
    views = augmentation.strong(x.expand(64, *shape), seeded())
    assert len(views.unique(dim=0)) > 58
    assert len(augmentation.weak(x.expand(64, *shape), seeded()).unique(dim=0)) > 1 or kind in ("table", "shapes")


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.3, 7.1), (-0.42421296, 2.8214867)])
@pytest.mark.parametrize(("kind", "shape"), IMAGES)
def test_values_stay_within_the_limits(kind, shape, limits):
    x = examples(300, shape, limits)
    x[:100] = x[:100].gt(sum(limits) / 2).to(x) * (limits[1] - limits[0]) + limits[0]  # extremes as well
    x = x.clamp(*limits)
    got = augmentation_for(kind, shape, value_range(x)).strong(x, seeded())
    assert x.min() <= got.min() <= got.max() <= x.max()


@pytest.mark.parametrize(("kind", "shape"), IMAGES)
def test_one_value_everywhere(kind, shape):
    x = torch.full((40, *shape), 2.5)
    assert torch.equal(augmentation_for(kind, shape, value_range(x)).strong(x, seeded()), x)


def test_the_number_type_does_not_decide_what_happens():
    x = examples(100, (1, 28, 28), dtype=torch.float64)
    strong = augmentation_for("shapes", (1, 28, 28), LIMITS).strong
    assert (strong(x, seeded()) - strong(x.float(), seeded())).abs().max() < 1e-4


def test_memory_layout_does_not_matter():
    x = examples(30, (3, 16, 12))
    augmentation, turned = augmentation_for("photos", (3, 16, 12), LIMITS), x.to(memory_format=torch.channels_last)
    for view in (augmentation.weak, augmentation.strong):
        assert (view(turned, seeded()) - view(x, seeded())).abs().max() < 1e-5


def test_errors():
    assert augmentation_for("none", (3,), LIMITS) is None
    assert augmentation_for("none", (1, 8, 8), LIMITS) is None
    with pytest.raises(OptionError, match="augment must be one of none, table, shapes, signs, photos, not 'faces'"):
        augmentation_for("faces", (1, 8, 8), LIMITS)
    with pytest.raises(OptionError, match=r"'table' does not go with .*\(1, 8, 8\), which are images; use \"shapes\""):
        augmentation_for("table", (1, 8, 8), LIMITS)
    for kind in ("shapes", "signs", "photos"):
        with pytest.raises(OptionError, match=rf"'{kind}' does not go with .*which are a table; use \"table\""):
            augmentation_for(kind, (7,), LIMITS)


def test_defaults_exist():
    kinds = [default_kind(shape) for shape in ((4,), (1, 8, 8), (3, 8, 8), (5, 8, 8))]
    assert kinds == ["table", "shapes", "signs", "signs"]
    assert set(kinds) <= set(AUGMENTATIONS)
    assert value_range(torch.zeros(2, dtype=torch.uint8)) == (-1.0, 1.0)
    assert value_range(torch.tensor([2.0, -3.0])) == (-3.0, 2.0)

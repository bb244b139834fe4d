"""What each kind of augmentation does to its examples."""

from __future__ import annotations

import pytest
import torch

from wrssl.data.augment import augmentation_for
from wrssl.data.augment.color import OPERATIONS
from wrssl.data.augment.kinds import GEOMETRY, IDENTITY

LIMITS = (-1.0, 1.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_table_noise():
    augmentation, x = augmentation_for("table", (4,), LIMITS), torch.ones(5000, 4, dtype=torch.float64)
    assert torch.equal(augmentation.weak(x, seeded()), x)
    noise = augmentation.strong(x, seeded()) - x
    assert noise.std(0).tolist() == pytest.approx([0.3] * 4, rel=0.05)
    assert noise.mean(0).tolist() == pytest.approx([0.0] * 4, abs=0.02)
    assert torch.corrcoef(noise.T).triu(1).abs().max() < 0.06


@pytest.mark.parametrize(("kind", "value"), [("shapes", -1.0), ("signs", 0.5), ("photos", 0.5)])
def test_the_square_has_the_value_of_the_kind(kind, value):
    x = torch.full((100, 1, 16, 16), 1.75)
    got = augmentation_for(kind, (1, 16, 16), (-1.0, 2.0)).strong(x, seeded())
    assert (got == value).flatten(1).any(1).all()


def mirrored_share(kind: str, view: str) -> float:
    """Share of views that are more like the mirror image; the left half of the image is bright."""
    x = torch.full((1000, 1, 28, 28), -1.0)
    x[..., 4:24, 4:14] = 1.0
    got = getattr(augmentation_for(kind, (1, 28, 28), LIMITS), view)(x, seeded())
    return ((got * x.flip(3)).sum((1, 2, 3)) > (got * x).sum((1, 2, 3))).double().mean().item()


def test_shapes_and_signs_are_never_mirrored_and_photos_half_the_time():
    assert mirrored_share("shapes", "strong") < 0.02
    assert mirrored_share("signs", "weak") == 0
    assert abs(mirrored_share("photos", "weak") - 0.5) < 0.08
    assert abs(mirrored_share("photos", "strong") - 0.5) < 0.08


@pytest.mark.parametrize("kind", ["signs", "photos"])
def test_the_strong_view_starts_from_the_weak_one(kind, monkeypatch):
    augmentation = augmentation_for(kind, (3, 16, 16), LIMITS)
    monkeypatch.setattr(augmentation, "change", lambda x, generator: x)
    x = 0.1 + torch.rand((50, 3, 16, 16), generator=seeded(1))
    weak, strong = augmentation.weak(x, seeded()), augmentation.strong(x, seeded())
    assert torch.equal(strong[strong != 0], weak[strong != 0])  # 0 is the square
    assert (strong != 0).double().mean() > 0.5
    assert not torch.equal(weak, x)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pools_and_moves(channels):
    still = (IDENTITY, *GEOMETRY)
    shapes = augmentation_for("shapes", (channels, 8, 8), LIMITS).change
    assert (shapes.pool, shapes.move) == (still, 0.15)
    for kind in ("signs", "photos"):
        change = augmentation_for(kind, (channels, 8, 8), LIMITS).change
        assert set(change.pool) == {*still, *OPERATIONS} - ({"color"} if channels != 3 else set())
        assert change.move == 0.3

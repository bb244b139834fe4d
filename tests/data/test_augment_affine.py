from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from wrssl.data.augment.geometry import affine_matrix, resample

NAMES = ("turn", "shear_x", "shear_y", "move_x", "move_y")


def images(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def matrix(**given: float) -> torch.Tensor:
    return affine_matrix(*(torch.tensor([given.get(name, 0.0)], dtype=torch.float64) for name in NAMES))


def by_scipy(image: np.ndarray, a: np.ndarray) -> np.ndarray:
    """SciPy counts rows first, and from the first pixel: q ↦ M q + (m − M m + t) with the middle m."""
    swapped, middle = a[:2, :2][::-1, ::-1], (np.array(image.shape) - 1) / 2
    offset = middle - swapped @ middle + a[:2, 2][::-1]
    return ndimage.affine_transform(image, swapped, offset, order=1, mode="nearest")


@pytest.mark.parametrize("shape", [(2, 3, 28, 28), (2, 1, 8, 8), (1, 2, 7, 12)])
def test_no_operation_changes_nothing(shape):
    x = images(*shape)
    assert (resample(x, matrix().expand(shape[0], 3, 3)) - x).abs().max() < 1e-12


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_quarter_turns(quarters):
    x = images(2, 3, 9, 9)
    got = resample(x, matrix(turn=quarters * math.pi / 2).expand(2, 3, 3))
    assert (got - torch.rot90(x, quarters, (2, 3))).abs().max() < 1e-12


def test_whole_moves_go_right_and_down_and_repeat_the_border():
    x = images(1, 2, 6, 10)
    padded = np.pad(x[0].numpy(), ((0, 0), (3, 3), (3, 3)), mode="edge")
    assert np.abs(resample(x, matrix(move_x=3.0))[0].numpy() - padded[:, 3:9, 0:10]).max() < 1e-12
    assert np.abs(resample(x, matrix(move_y=-2.0))[0].numpy() - padded[:, 5:11, 3:13]).max() < 1e-12


@pytest.mark.parametrize("shape", [(28, 28), (8, 8), (9, 20), (20, 9)])
@pytest.mark.parametrize(
    "given",
    [{"turn": 0.4}, {"turn": -0.5}, {"shear_x": 0.3}, {"shear_y": -0.2}, {"move_x": 2.3}, {"move_y": -1.7}],
    ids=str,
)
def test_each_operation_against_scipy_border_included(shape, given):
    x, a = images(1, 1, *shape), matrix(**given)
    wanted = by_scipy(x[0, 0].numpy(), a[0].numpy())
    assert np.abs(wanted - x[0, 0].numpy()).max() > 0.1  # the operation does something
    assert np.abs(resample(x, a)[0, 0].numpy() - wanted).max() < 1e-10


def test_formulas_of_the_matrices():
    x, y = 3.0, -2.0
    point = torch.tensor([x, y, 1.0], dtype=torch.float64)
    phi = 0.3
    wanted = {
        "turn": (math.cos(phi) * x - math.sin(phi) * y, math.sin(phi) * x + math.cos(phi) * y),
        "shear_x": (x + phi * y, y),
        "shear_y": (x, y + phi * x),
        "move_x": (x - phi, y),
        "move_y": (x, y - phi),
    }
    for name, place in wanted.items():
        assert (matrix(**{name: phi})[0] @ point)[:2].tolist() == pytest.approx(place, abs=1e-12)


def test_the_product_is_one_operation_after_the_other():
    first, second = matrix(turn=math.pi / 2), matrix(move_x=2.0)
    x = images(1, 1, 9, 9)
    x[..., :3, :] = x[..., -3:, :] = x[..., :3] = x[..., -3:] = 0.5  # a plain frame, so that nothing is pushed out
    after = resample(resample(x, first), second)
    assert (resample(x, first @ second) - after).abs().max() < 1e-12
    assert (resample(x, second @ first) - after).abs().max() > 0.1  # the order matters here


def test_each_image_has_its_own_matrix_and_the_type_stays():
    x = images(1, 2, 8, 11).expand(2, 2, 8, 11)
    both = torch.cat([matrix(turn=0.2), matrix(move_y=1.5)])
    got = resample(x, both)
    assert (got[1] - resample(x[:1], both[1:])[0]).abs().max() == 0
    assert not torch.equal(got[0], got[1])
    small = resample(x.float(), both)
    assert small.dtype == torch.float32
    assert (small - got).abs().max() < 1e-5


def test_rounding_never_leaves_the_range_of_the_image():
    x = torch.full((200, 1, 28, 28), 0.1)
    turn = torch.linspace(-0.5, 0.5, 200, dtype=torch.float64)
    zero = torch.zeros_like(turn)
    assert torch.equal(resample(x, affine_matrix(turn, zero, zero, zero, zero)), x)

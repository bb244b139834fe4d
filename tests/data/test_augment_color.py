from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from scipy import ndimage

from wrssl.data.augment.color import OPERATIONS, gray

AMOUNTS = np.array([0.05, 0.4, 0.95])


def images(channels: int = 3) -> torch.Tensor:
    x = torch.rand((3, channels, 9, 12), generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    return 0.1 + 0.7 * x


def change(name: str, x: torch.Tensor, amounts) -> np.ndarray:
    kept = x.clone()
    out = OPERATIONS[name][0](x, torch.as_tensor(np.asarray(amounts), dtype=torch.float64))
    assert torch.equal(x, kept)
    assert (out.dtype, out.shape) == (x.dtype, x.shape)
    return out.numpy()


def luma(x: np.ndarray) -> np.ndarray:
    return np.einsum("c,bchw->bhw", [0.299, 0.587, 0.114], x)[:, None]


def blended(x: np.ndarray, degenerate: np.ndarray) -> np.ndarray:
    share = AMOUNTS.reshape(-1, 1, 1, 1)
    return share * x + (1 - share) * degenerate


def blurred(x: np.ndarray) -> np.ndarray:
    kernel = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]]) / 13
    out = x.copy()
    smooth = np.stack([[ndimage.convolve(plane, kernel) for plane in image] for image in x])
    out[..., 1:-1, 1:-1] = smooth[..., 1:-1, 1:-1]
    return out


def test_blends_against_numpy():
    x = images()
    n = x.numpy()
    wanted = {
        "brightness": blended(n, np.zeros_like(n)),
        "contrast": blended(n, luma(n).mean((2, 3), keepdims=True)),
        "color": blended(n, luma(n)),
        "sharpness": blended(n, blurred(n)),
    }
    for name, result in wanted.items():
        assert np.abs(change(name, x, AMOUNTS) - result).max() < 1e-12, name
        assert np.abs(change(name, x, np.ones(3)) - n).max() < 1e-12, name


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_without_three_channels_each_one_stands_for_itself(channels):
    x = images(channels)
    n = x.numpy()
    assert torch.equal(gray(x), x)
    assert np.abs(change("contrast", x, AMOUNTS) - blended(n, n.mean((2, 3), keepdims=True))).max() < 1e-12
    assert np.abs(change("sharpness", x, AMOUNTS) - blended(n, blurred(n))).max() < 1e-12


def test_autocontrast_per_channel_and_plain_channels():
    x = images()
    x[1, 2] = 0.3
    n = x.numpy()
    low, high = n.min((2, 3), keepdims=True), n.max((2, 3), keepdims=True)
    with np.errstate(invalid="ignore"):
        wanted = np.where(high > low, (n - low) / (high - low), n)
    assert np.abs(change("autocontrast", x, AMOUNTS) - wanted).max() < 1e-12
    assert (wanted[1, 2] == 0.3).all()


def test_posterize_keeps_the_first_bits():
    levels = torch.arange(256, dtype=torch.float64) / 255
    x = levels.view(1, 1, 16, 16).repeat(5, 1, 1, 1)
    got = change("posterize", x, [4.0, 5.3, 6.999, 7.0, 8.5]) * 255
    for image, bits in zip(got, (4, 5, 6, 7, 8), strict=True):
        wanted = np.arange(256) & ~((1 << (8 - bits)) - 1)
        assert np.abs(image.ravel() - wanted).max() < 1e-9


def test_solarize_inverts_what_is_above():
    x = images()
    n, threshold = x.numpy(), np.array([0.0, 0.5, 1.0])
    got = change("solarize", x, threshold)
    assert np.array_equal(got, np.where(n > threshold.reshape(-1, 1, 1, 1), 1 - n, n))
    assert np.array_equal(got[0], 1 - n[0])
    assert np.array_equal(got[2], n[2])


@pytest.mark.parametrize("share", [0.1, 0.6, 0.9])
def test_against_pillow(share):
    pixels = np.random.default_rng(0).integers(20, 230, (3, 15, 11), dtype=np.uint8)
    picture = Image.fromarray(pixels.transpose(1, 2, 0))
    threshold = round(256 * share)
    wanted = {
        "brightness": (ImageEnhance.Brightness(picture).enhance(share), share),
        "contrast": (ImageEnhance.Contrast(picture).enhance(share), share),
        "color": (ImageEnhance.Color(picture).enhance(share), share),
        "sharpness": (ImageEnhance.Sharpness(picture).enhance(share), share),
        "autocontrast": (ImageOps.autocontrast(picture), share),
        "posterize": (ImageOps.posterize(picture, 5), 5.0),
        "solarize": (ImageOps.solarize(picture, threshold), (threshold - 0.5) / 255),
    }
    assert set(wanted) == set(OPERATIONS)
    x = torch.tensor(pixels, dtype=torch.float64)[None] / 255
    for name, (image, amount) in wanted.items():
        got = 255 * change(name, x, [amount])[0].transpose(1, 2, 0)
        assert np.abs(got - np.asarray(image, dtype=float)).max() < 1.6, name  # Pillow rounds to whole levels


def test_tiny_images_and_the_type():
    x = images()[..., :2, :2]
    assert np.array_equal(change("sharpness", x, AMOUNTS), x.numpy())  # no pixel has eight neighbours
    for name in OPERATIONS:
        assert change(name, images().float(), AMOUNTS).dtype == np.float32


def test_ranges_of_the_amounts():
    ranges = {name: (low, high) for name, (_, low, high) in OPERATIONS.items()}
    blends = dict.fromkeys(("brightness", "contrast", "color", "sharpness"), (0.05, 0.95))
    assert ranges == {**blends, "autocontrast": (0, 1), "solarize": (0, 1), "posterize": (4, 9)}

"""Changes of color and sharpness: functions f(x, amount) of images with values in [0, 1], an amount per image.

Four of them blend the image with a degenerate one D, which lacks what the operation is named after:

    f(x, λ) = λ · x + (1 − λ) · D(x)

D is black (brightness), the image's mean gray (contrast), the gray image (color) or a blurred one (sharpness).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

_LUMA = (0.299, 0.587, 0.114)  # perceived brightness of red, green and blue (ITU-R BT.601)
_LEVELS = 255


def gray(x: Tensor) -> Tensor:
    """0.299 R + 0.587 G + 0.114 B as one channel, ``(B, 1, H, W)``; without three channels, each one by itself."""
    if x.shape[1] != len(_LUMA):
        return x
    return (x * x.new_tensor(_LUMA)[:, None, None]).sum(1, keepdim=True)


def brightness(x: Tensor, amount: Tensor) -> Tensor:
    """λ · x."""
    return x * _each(amount, x)


def contrast(x: Tensor, amount: Tensor) -> Tensor:
    """Blended with the mean of the gray image."""
    return _blend(x, gray(x).mean((2, 3), keepdim=True), amount)


def color(x: Tensor, amount: Tensor) -> Tensor:
    """Blended with the gray image."""
    return _blend(x, gray(x), amount)


def sharpness(x: Tensor, amount: Tensor) -> Tensor:
    """Blended with the mean over 3×3 pixels, the middle one counted five times; border pixels are not changed."""
    if min(x.shape[-2:]) < 3:
        return x
    blurred = x.clone()
    inner = blurred[..., 1:-1, 1:-1]
    inner.copy_((9 * F.avg_pool2d(x, 3, stride=1) + 4 * x[..., 1:-1, 1:-1]) / 13)
    return _blend(x, blurred, amount)


def autocontrast(x: Tensor, amount: Tensor) -> Tensor:
    """(x − min) / (max − min) per channel; a channel with one value is not changed, and there is no amount."""
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    flat = high == low
    return torch.where(flat, x, (x - low) / torch.where(flat, 1.0, high - low))


def posterize(x: Tensor, amount: Tensor) -> Tensor:
    """Only the first ⌊amount⌋ of the 8 bits of round(255 · x) are kept."""
    step = _each(torch.exp2(8 - amount.floor()), x)
    return ((_LEVELS * x).round() / step).floor() * step / _LEVELS


def solarize(x: Tensor, amount: Tensor) -> Tensor:
    """Values above the amount become 1 − x."""
    return torch.where(x > _each(amount, x), 1 - x, x)


# Each with the range of its amount, FixMatch's. 4 to 8 whole bits are equally likely where [4, 9) is rounded down.
OPERATIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float, float]] = {
    "autocontrast": (autocontrast, 0.0, 1.0),
    "brightness": (brightness, 0.05, 0.95),
    "contrast": (contrast, 0.05, 0.95),
    "color": (color, 0.05, 0.95),
    "posterize": (posterize, 4.0, 9.0),
    "solarize": (solarize, 0.0, 1.0),
    "sharpness": (sharpness, 0.05, 0.95),
}


def _each(amount: Tensor, x: Tensor) -> Tensor:
    return amount.to(x)[:, None, None, None]


def _blend(x: Tensor, degenerate: Tensor, amount: Tensor) -> Tensor:
    return degenerate + _each(amount, x) * (x - degenerate)

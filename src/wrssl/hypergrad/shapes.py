"""Guards at the door: a wrong shape is refused with a sentence, because broadcasting would hide it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import DataError


def check_weights(w: Tensor, size: int) -> Tensor:
    """Refuse every shape but ``(size,)``: ``(B, 1)`` times ``(B,)`` would silently become a ``(B, B)`` product."""
    if w.shape != (size,):
        raise DataError(
            f"The weights have shape {tuple(w.shape)}, but {size} unlabelled examples need shape ({size},): "
            "pass one weight per example, for example w.reshape(-1)."
        )
    return w.detach()


def feature_rows(h: Tensor, W: Tensor, bias: bool) -> Tensor:
    """``[h; 1]`` (``h`` without a bias), detached, in the type and on the device of W."""
    if h.ndim != 2 or h.shape[1] != W.shape[1]:
        raise DataError(
            f"Features of shape {tuple(h.shape)} do not go with a last layer of {W.shape[1]} inputs: "
            f"pass them as (examples, {W.shape[1]})."
        )
    h = h.detach().to(W)
    return F.pad(h, (0, 1), value=1.0) if bias else h


def one_hot(y: Tensor, classes: int) -> Tensor:
    """Class numbers as rows of 0 and 1, shape ``(B, C)``."""
    if y.ndim != 1 or y.is_floating_point():
        raise DataError(f"Labels must be class numbers of shape (examples,), not {y.dtype} of shape {tuple(y.shape)}.")
    return torch.zeros(len(y), classes, device=y.device).scatter_(1, y.long().unsqueeze(1), 1.0)

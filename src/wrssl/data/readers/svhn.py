"""SVHN's cropped digits: MATLAB v5 files with X ``(32, 32, 3, N)`` and y ``(N, 1)``; 10 stands for the digit 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wrssl.api import DataError
from wrssl.data.parts import LabeledArrays
from wrssl.data.readers.matlab import read_matlab


def read_svhn(path: Path) -> LabeledArrays:
    """The images as uint8 ``(N, 3, 32, 32)`` and the digits 0–9 as int64.

    Args:
        path: ``train_32x32.mat``, ``test_32x32.mat`` or ``extra_32x32.mat``; only X and y are read.

    Returns:
        Images and labels.
    """
    content = read_matlab(path, ("X", "y"))
    images, digits = content.get("X"), content.get("y")
    if images is None or images.dtype != np.uint8 or images.shape[:3] != (32, 32, 3):
        raise DataError(f"{path} holds no 32x32 colour images X; fetch it again.")
    labels = np.empty(0) if digits is None else digits.reshape(-1)
    if images.ndim != 4 or labels.dtype.kind not in "iuf" or len(labels) != images.shape[3] or not len(labels):
        raise DataError(f"{path} holds images {images.shape} and {labels.size} labels; fetch it again.")
    with np.errstate(invalid="ignore"):  # NaN has no whole number, and is found by the comparison
        codes = labels.astype(np.int64)
    if codes.min() < 0 or codes.max() > 10 or (codes != labels).any():
        raise DataError(f"{path} holds labels other than 0 to 10; fetch it again.")
    codes[codes == 10] = 0
    return np.ascontiguousarray(images.transpose(3, 2, 0, 1)), codes

"""Grey values that are deeper than eight bits become bytes.

A file says how wide its numbers are, not which of them its camera uses: 12-bit data is usually stored in 16 bits, and
its upper byte is nearly black. The range of each file would be no better: it makes noise out of an empty picture and
hides how bright a picture is. Here the values v decide, in steps that all pictures of one camera share:

    whole numbers, 0 ≤ v < 65,536       v / 2^(d − 8), d the least of 8, 10, 12, 14, 16 bits that holds max v
    floating point, 0 ≤ v ≤ 1           255 · v
    floating point, 0 ≤ v < 65,536      rounded, then as whole numbers
    everything else                     255 · (v − min v) / (max v − min v)

The last line serves signed and 32-bit data, such as Hounsfield units or elevations. NaN and infinities count as the
least finite value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_DEPTHS = (8, 10, 12, 14, 16)


def to_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """``values`` (H, W) as uint8, by the table above; ``ValueError`` where no value is finite."""
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        if not finite.all():
            if not finite.any():
                raise ValueError("no pixel has a finite value")
            values = np.where(finite, values, values[finite].min())
    low, high = values.min(), values.max()
    if low >= 0 and high < 65536:
        if values.dtype.kind == "f":
            if high <= 1:
                return _rounded(values * 255.0)
            values = np.minimum(np.rint(values), 65535).astype(np.uint16)
        bits = next(depth for depth in _DEPTHS if int(values.max()) < 1 << depth)
        shifted: npt.NDArray[np.uint8] = (values >> (bits - 8)).astype(np.uint8)
        return shifted
    width = float(high) - float(low)
    scaled = (values.astype(np.float64) - float(low)) * (255 / width) if width > 0 else np.zeros(values.shape)
    return _rounded(scaled)


def _rounded(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    result: npt.NDArray[np.uint8] = np.rint(values).astype(np.uint8)
    return result

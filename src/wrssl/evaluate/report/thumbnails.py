"""Pictures of chosen pool members, all on one sheet: one image is smaller than a thousand, and is decoded once.

They are made of the rows of the pool where these are images, and of what was embedded where that was images.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wrssl.evaluate.report.photographs import squares
from wrssl.evaluate.report.text import thinned

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

COLUMNS = 32
SIDE = 48  # pixels of the longer side, at most
BUDGET = 1_200_000  # bytes of the sheet
TRIES = ((85, 1.0), (70, 1.0), (50, 1.0), (50, 0.7), (40, 0.5), (30, 0.35))  # quality of JPEG, scale
ITEMS_BUDGET = 1_500_000  # the same for photographs, where labeled ones are on the sheet too
ITEMS_TRIES = ((80, 64), (65, 64), (75, 48), (55, 48), (60, 32), (40, 32), (40, 16))  # quality, side
SMOOTH = 32  # pixels, from which a picture is a photograph and not a drawing of pixels
COLORFUL = 100_000  # pixels from which PNG is not even tried for colors
SAMPLE = 64  # images that the range of unusual floats is read from


def sheet(pool: Tensor, chosen: Sequence[int]) -> dict[str, Any] | None:
    """The chosen images in their order, at most ``COLUMNS`` in a line, of at most ``BUDGET`` bytes; None for tables.

    Args:
        pool: (M, C, H, W) or (M, F).
        chosen: which members.
    """
    if pool.dim() != 4 or len(chosen) == 0:
        return None
    height, width = pool.shape[2:]
    limits, fit = value_range(pool, chosen), min(1.0, SIDE / max(height, width))
    for quality, scale in TRIES:
        size = max(1, round(width * fit * scale)), max(1, round(height * fit * scale))
        kind, data = _encoded(_pasted(pool, chosen, limits, size), quality)
        if len(data) <= BUDGET:
            break
    return {**_described(kind, data, len(chosen), size), "channels": int(pool.shape[1])}


def sheet_of_items(items: Sequence[Any]) -> dict[str, Any] | None:
    """The same of pictures that were embedded, as squares, of at most ``ITEMS_BUDGET`` bytes.

    Args:
        items: paths or pictures, see ``photographs.squares``.
    """
    if len(items) == 0:
        return None
    found = squares(items)
    own = found.pixels.shape[1]
    for quality, most in ITEMS_TRIES:
        side = min(own, most)
        kind, data = _encoded(_tiled(found.pixels, len(items), (side, side), "RGB"), quality, subsampling=2)
        if len(data) <= ITEMS_BUDGET:
            break
    return {
        **_described(kind, data, len(items), (side, side)),
        "channels": 3,
        "smooth": own > SMOOTH,
        "missing": found.missing,
    }


def value_range(pool: Tensor, chosen: Sequence[int]) -> tuple[float, float]:
    """Black and white, the same for all: the ends of [0, 255], [0, 1] or [−1, 1], else the 1st and 99th percentile."""
    if pool.dtype == torch.uint8:
        return 0.0, 255.0
    ends = [(float(pool[i].min()), float(pool[i].max())) for i in chosen]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    if low >= -1 and high <= 1:
        return (0.0, 1.0) if low >= 0 else (-1.0, 1.0)
    sample = torch.stack([pool[i] for i in thinned(list(chosen), SAMPLE)])
    low, high = (float(v) for v in np.percentile(sample.numpy(), (1, 99)))
    return low, max(high, low + 1e-6)


def picture(row: Tensor, limits: tuple[float, float]) -> NDArray[np.uint8]:
    """One image (C, H, W) as (H, W) or (H, W, 3): of two channels the first, of more than three the first three."""
    shown = row[:3] if row.shape[0] >= 3 else row[:1]
    if shown.dtype != torch.uint8:
        low, high = limits
        shown = ((shown.float() - low) / (high - low) * 255).round().clamp(0, 255).to(torch.uint8)
    pixels: NDArray[np.uint8] = shown.permute(1, 2, 0).contiguous().numpy()
    return pixels[:, :, 0] if pixels.shape[2] == 1 else pixels


def _pasted(pool: Tensor, chosen: Sequence[int], limits: tuple[float, float], size: tuple[int, int]) -> Picture:
    pictures = (picture(pool[member], limits) for member in chosen)  # one at a time: they may be large
    return _tiled(pictures, len(chosen), size, "RGB" if pool.shape[1] >= 3 else "L")


def _tiled(pictures: Iterable[NDArray[np.uint8]], number: int, size: tuple[int, int], mode: str) -> Picture:
    """So many of them, at most ``COLUMNS`` in a line, each of this size (width, height)."""
    from PIL import Image

    columns, lines = min(COLUMNS, number), -(-number // COLUMNS)
    whole = Image.new(mode, (columns * size[0], lines * size[1]))
    for place, pixels in enumerate(pictures):
        one = Image.fromarray(pixels)
        if one.size != size:
            one = one.resize(size, Image.Resampling.BOX)
        whole.paste(one, (place % columns * size[0], place // columns * size[1]))
    return whole


def _described(kind: str, data: bytes, number: int, size: tuple[int, int]) -> dict[str, Any]:
    """A sheet with so many pictures as the page holds it."""
    return {
        "uri": f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}",
        "columns": min(COLUMNS, number),
        "lines": -(-number // COLUMNS),
        "width": size[0],
        "height": size[1],
    }


def _encoded(image: Picture, quality: int, subsampling: int = 0) -> tuple[str, bytes]:
    """PNG, which loses nothing, unless JPEG is clearly smaller; for many color pictures it always is."""
    jpeg = _written(image, "jpeg", quality=quality, subsampling=subsampling)
    if image.mode == "RGB" and image.width * image.height > COLORFUL:
        return "jpeg", jpeg
    png = _written(image, "png", optimize=True)
    return ("png", png) if len(png) <= 1.3 * len(jpeg) else ("jpeg", jpeg)


def _written(image: Picture, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()

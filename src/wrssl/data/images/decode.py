"""One image file becomes a row of bytes, or a reason why not.

The whole picture is stretched to the requested size. Cutting out the middle would keep the proportions and silently
lose the border, and maybe what the label is about; bars at the sides would reveal the proportions of the picture.
Pictures of one camera are all stretched alike, which does not harm a network; otherwise ask for a size in the camera's
proportions.

The picture is shown as a viewer would show it: the first frame, turned as EXIF says, on white where it is transparent.

**Depth.** A file gives the width of its numbers, not the range that its camera uses: 12-bit data is usually stored in
16 bits, and its upper byte is nearly black. The range of each file would be no better: it turns an empty picture into
noise and hides how bright a picture is. Here the values v decide, in steps that all pictures of one camera share:

    whole numbers, 0 ≤ v < 65,536       v / 2^(d − 8), d the least of 8, 10, 12, 14, 16 bits that holds max v
    floating point, 0 ≤ v ≤ 1           255 · v
    floating point, 0 ≤ v < 65,536      rounded, then as whole numbers
    everything else                     255 · (v − min v) / (max v − min v)

The last line serves signed and 32-bit data, such as Hounsfield units or elevations. NaN and infinities count as the
least finite value.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from wrssl.errors import OptionError

Bytes: TypeAlias = npt.NDArray[np.uint8]

_DEPTHS = (8, 10, 12, 14, 16)
_TOLERANCE = 4  # of 255; what lossy formats make of gray
_STEP = 256
# By content; the ending of the file's name does not matter. A short list: some other formats start external programs.
_FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "TIFF", "BMP", "DIB", "GIF")
_GAP = 3  # cheap reduction may go to this multiple of the final size; by Pillow, 3 is as good as no reduction
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION = 0x0112
_LYING = {_TURNS[number] for number in (5, 6, 7, 8)}  # turned by a quarter: height and width change places
_LARGE = 1 << 24  # pixels
_one_large_at_a_time = threading.Lock()  # so that memory does not grow with the number of threads


class Unreadable(NamedTuple):
    """Why there is no row.

    Attributes:
        reason: for the list of skipped files.
        lasting: True where the same bytes will fail again; False for a problem of permissions, memory or network.
    """

    reason: str
    lasting: bool = True


@cache
def formats() -> tuple[str, ...]:
    """The formats that this Pillow was built with; loads its plugins, which threads should not do at once."""
    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


def decode(path: str, size: tuple[int, int], channels: int, max_pixels: int) -> Bytes | Unreadable:
    """The picture as uint8 ``(channels, height, width)``; never an exception because of the file.

    Args:
        path: of the file.
        size: height and width.
        channels: 1 for gray, 3 for RGB.
        max_pixels: a file whose header promises more is not decoded.
    """

    def read() -> Bytes | Unreadable:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return Unreadable("empty file")
            return _decode(file, size, channels, max_pixels)

    return _guarded(read, max_pixels)


def open_picture(file: IO[bytes], side: int | None, max_pixels: int) -> Bytes | Unreadable:
    """The picture as uint8 ``(height, width, 3)`` in its own proportions; never an exception because of the file.

    Args:
        file: its bytes.
        side: what the shorter side may be reduced to, where it is longer; None for the full size.
        max_pixels: a file whose header promises more is not decoded.
    """
    return _guarded(lambda: _open_picture(file, side, max_pixels), max_pixels)


def _guarded(read: Callable[[], Bytes | Unreadable], max_pixels: int) -> Bytes | Unreadable:
    """What ``read`` gives, or in words why it failed."""
    try:
        return read()
    except UnidentifiedImageError:
        return Unreadable("not an image, whatever its name says")
    except Image.DecompressionBombError:  # Pillow has a limit too, at twice its MAX_IMAGE_PIXELS
        if max_pixels <= 2 * (Image.MAX_IMAGE_PIXELS or 0):
            return Unreadable(f"too many pixels (max_pixels is {max_pixels})")
        return Unreadable("too many pixels (raise PIL.Image.MAX_IMAGE_PIXELS as well)", lasting=False)
    except MemoryError:
        return Unreadable("not enough memory to decode it", lasting=False)
    except OSError as error:
        if error.errno is not None:  # from the operating system; Pillow's own errors have no number
            return Unreadable(f"cannot be read ({error.strerror})", lasting=False)
        return Unreadable("truncated file" if "truncated" in str(error).lower() else _undecodable(error))
    except Exception as error:  # decoders raise errors of every kind for damaged files
        return Unreadable(_undecodable(error))


def _undecodable(error: Exception) -> str:
    return f"cannot be decoded ({' '.join(str(error).split())[:120] or type(error).__name__})"


def _decode(file: IO[bytes], size: tuple[int, int], channels: int, max_pixels: int) -> Bytes | Unreadable:
    with Image.open(file, formats=formats()) as image:
        if (refused := _too_large(image, max_pixels)) is not None:
            return refused
        draft = image.draft(None, (_GAP * max(size), _GAP * max(size)))  # a JPEG decoder can skip fine detail
        with _memory(image):
            image.load()
            turn = _TURNS.get(_orientation(image))
            target = size if turn in _LYING else size[::-1]  # Pillow counts (width, height)
            small = _plain(image).resize(
                target, Image.Resampling.BICUBIC, box=draft[1] if draft else None, reducing_gap=float(_GAP)
            )
    small = small if turn is None else small.transpose(turn)
    pixels = np.asarray(small.convert("L" if channels == 1 else "RGB"))
    return pixels[None] if channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _open_picture(file: IO[bytes], side: int | None, max_pixels: int) -> Bytes | Unreadable:
    with Image.open(file, formats=formats()) as image:
        if (refused := _too_large(image, max_pixels)) is not None:
            return refused
        width, height = image.size
        factor = 1.0 if side is None else min(1.0, side / min(width, height))
        target = max(1, round(width * factor)), max(1, round(height * factor))
        draft = image.draft(None, (2 * target[0], 2 * target[1])) if factor < 1 else None
        with _memory(image):
            image.load()
            turn = _TURNS.get(_orientation(image))
            whole = _plain(image).convert("RGB")
            if factor < 1:
                box = draft[1] if draft else None
                whole = whole.resize(target, Image.Resampling.BICUBIC, box=box, reducing_gap=float(_GAP))
    return np.asarray(whole if turn is None else whole.transpose(turn))


def _too_large(image: Image.Image, max_pixels: int) -> Unreadable | None:
    width, height = image.size
    if width * height <= max_pixels:
        return None
    return Unreadable(f"too many pixels ({width} x {height}, max_pixels is {max_pixels})")


def _memory(image: Image.Image) -> AbstractContextManager[object]:
    """Large pictures are decoded one at a time, so that memory does not grow with the number of threads."""
    return _one_large_at_a_time if image.width * image.height > _LARGE else nullcontext()


def _orientation(image: Image.Image) -> int:
    """EXIF's number; 1, upright, where there is none or it cannot be read."""
    if image.format == "TIFF":  # turned by Pillow when it was loaded; some versions leave the number
        return 1
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # broken metadata of a good picture
        return 1


def _plain(image: Image.Image) -> Image.Image:
    """The picture in mode L or RGB."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(to_bytes(np.asarray(image)))
    clear_colors = image.palette is not None and image.palette.mode == "RGBA"
    if clear_colors or "transparency" in image.info or image.mode in ("LA", "PA", "RGBA", "RGBa"):
        seen = image.convert("RGBA")
        paper = Image.new("RGBA", seen.size, "white")
        paper.alpha_composite(seen)
        return paper.convert("RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")


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


def check_channels(channels: object) -> int | None:
    """1, 3 or None (to be decided), or an ``OptionError``."""
    if channels is None:
        return None
    if isinstance(channels, (int, np.integer)) and not isinstance(channels, bool) and channels in (1, 3):
        return int(channels)
    raise OptionError(f"channels must be 1 (gray), 3 (RGB) or None (decided by the labeled images), not {channels!r}.")


def all_gray(rows: Bytes) -> bool:
    """Whether red, green and blue agree in every pixel of these rows, for files of any mode."""
    for start in range(0, len(rows), _STEP):
        piece = rows[start : start + _STEP]
        if int((piece.max(axis=1) - piece.min(axis=1)).max()) > _TOLERANCE:
            return False
    return True


def to_gray(rows: Bytes) -> Bytes:
    """RGB rows as the reader with one channel would have read them."""
    gray = [np.asarray(Image.fromarray(row.transpose(1, 2, 0)).convert("L")) for row in rows]
    return np.stack(gray)[:, None]

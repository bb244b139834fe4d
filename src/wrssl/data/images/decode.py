"""One image file becomes a row of bytes, or a reason why not.

The whole picture is stretched to the size asked for. Cutting out the middle would keep the proportions and lose the
border, and with it whatever the label is about, without a word; bars at the sides would tell pictures of different
proportions apart. Pictures of one camera are all stretched alike, which a network does not mind; who minds asks for a
size in the camera's proportions.

The picture is shown as a viewer would show it: the first frame, turned as EXIF says, on white where it is transparent.
"""

from __future__ import annotations

import os
import threading
from contextlib import nullcontext
from functools import cache
from typing import IO, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from PIL import Image, UnidentifiedImageError

from wrssl.data.images.depth import to_bytes

Bytes: TypeAlias = npt.NDArray[np.uint8]

# By content, whatever the ending says. A short list: some other formats start external programs.
_FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "TIFF", "BMP", "DIB", "GIF")
_GAP = 3  # cheap reduction may go to this multiple of the final size; Pillow calls 3 as good as none
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
_LARGE = 1 << 24  # pixels
_one_large_at_a_time = threading.Lock()  # so that memory does not grow with the number of threads


class Unreadable(NamedTuple):
    """Why there is no row.

    Attributes:
        reason: for the list of skipped files.
        lasting: True where the same bytes will fail again; False for a matter of permissions, memory or network.
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
        channels: 1 for grey, 3 for RGB.
        max_pixels: a file whose header promises more is not decoded.
    """
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return Unreadable("empty file")
            return _decode(file, size, channels, max_pixels)
    except UnidentifiedImageError:
        return Unreadable("not an image, whatever its name says")
    except Image.DecompressionBombError:  # Pillow has a limit too, at twice its MAX_IMAGE_PIXELS
        if max_pixels <= 2 * (Image.MAX_IMAGE_PIXELS or 0):
            return Unreadable(f"too many pixels (max_pixels is {max_pixels})")
        return Unreadable("too many pixels (raise PIL.Image.MAX_IMAGE_PIXELS as well)", lasting=False)
    except MemoryError:
        return Unreadable("not enough memory to decode it", lasting=False)
    except OSError as error:
        if error.errno is not None:  # from the system; Pillow's own have no number
            return Unreadable(f"cannot be read ({error.strerror})", lasting=False)
        return Unreadable("truncated file" if "truncated" in str(error).lower() else _undecodable(error))
    except Exception as error:  # decoders meet damaged files with errors of every kind
        return Unreadable(_undecodable(error))


def _undecodable(error: Exception) -> str:
    return f"cannot be decoded ({' '.join(str(error).split())[:120] or type(error).__name__})"


def _decode(file: IO[bytes], size: tuple[int, int], channels: int, max_pixels: int) -> Bytes | Unreadable:
    with Image.open(file, formats=formats()) as image:
        width, height = image.size
        if width * height > max_pixels:
            return Unreadable(f"too many pixels ({width} x {height}, max_pixels is {max_pixels})")
        draft = image.draft(None, (_GAP * max(size), _GAP * max(size)))  # a JPEG decoder can skip fine detail
        with _one_large_at_a_time if image.width * image.height > _LARGE else nullcontext():
            image.load()
            turn = _TURNS.get(_orientation(image))
            lying = turn in (_TURNS[5], _TURNS[6], _TURNS[7], _TURNS[8])
            target = size if lying else size[::-1]  # Pillow counts (width, height)
            small = _plain(image).resize(
                target, Image.Resampling.BICUBIC, box=draft[1] if draft else None, reducing_gap=float(_GAP)
            )
    small = small if turn is None else small.transpose(turn)
    pixels = np.asarray(small.convert("L" if channels == 1 else "RGB"))
    return pixels[None] if channels == 1 else np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _orientation(image: Image.Image) -> int:
    """EXIF's number; 1, upright, where there is none or it cannot be read."""
    if image.format == "TIFF":  # turned by Pillow when it was loaded; some versions leave the number
        return 1
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # a broken remark about a good picture
        return 1


def _plain(image: Image.Image) -> Image.Image:
    """The picture in mode L or RGB."""
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        return Image.fromarray(to_bytes(np.asarray(image)))
    clear_colours = image.palette is not None and image.palette.mode == "RGBA"
    if clear_colours or "transparency" in image.info or image.mode in ("LA", "PA", "RGBA", "RGBa"):
        seen = image.convert("RGBA")
        paper = Image.new("RGBA", seen.size, "white")
        paper.alpha_composite(seen)
        return paper.convert("RGB")
    return image.convert("L" if image.mode in ("1", "L") else "RGB")

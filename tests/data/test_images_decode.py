"""One file becomes one row, whatever its mode, and a bad file becomes a reason."""

from __future__ import annotations

import builtins
import io
import os
import struct
import warnings
import zlib

import numpy as np
import PIL
import pytest
from PIL import Image, ImageFile

from wrssl.data.images.decode import Unreadable, decode

SIZE = (16, 16)
LIMIT = 10**8


def picture(width: int = 16, height: int = 16) -> Image.Image:
    """Red grows to the right, green downwards, blue is constant: smooth, and no symmetry maps it to itself."""
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(
        np.stack([x * 255 // width, y * 255 // height, np.full_like(x, 60)], axis=2).astype(np.uint8)
    )


def row_of(image: Image.Image) -> np.ndarray:
    return np.asarray(image).transpose(2, 0, 1)


def read(path, size=SIZE, channels=3, max_pixels=LIMIT) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = decode(str(path), size, channels, max_pixels)
    assert isinstance(row, np.ndarray), row
    assert row.dtype == np.uint8
    assert row.shape == (channels, *size)
    return row


def reason(path, max_pixels=LIMIT) -> Unreadable:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = decode(str(path), SIZE, 3, max_pixels)
    assert isinstance(outcome, Unreadable)
    return outcome


@pytest.mark.parametrize("ending", ["png", "bmp", "tif", "webp"])
def test_lossless_files_of_the_right_size_keep_their_pixels(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    picture().save(path, **({"lossless": True} if ending == "webp" else {}))
    assert np.array_equal(read(path), row_of(picture()))


# Older versions write such a file and call it truncated when they read it; it is listed in skipped.csv then.
YCBCR = pytest.mark.skipif(int(PIL.__version__.split(".")[0]) < 13, reason="Pillow 13 reads TIFF files in YCbCr")


@pytest.mark.parametrize(
    ("mode", "ending", "tolerance"),
    [
        pytest.param("YCbCr", "tif", 3, marks=YCBCR),
        ("YCbCr", "jpg", 12),
        ("CMYK", "tif", 1),
        ("CMYK", "jpg", 12),
        ("P", "png", 60),
    ],
)
def test_color_modes_look_like_the_picture(tmp_path, mode, ending, tolerance):
    path = tmp_path / f"a.{ending}"
    image = picture().convert(mode)
    image.save(path, **({"quality": 95, "subsampling": 0} if ending == "jpg" else {}))
    assert np.abs(read(path).astype(int) - row_of(picture())).max() <= tolerance


@pytest.mark.parametrize(("mode", "ending"), [("L", "png"), ("LA", "png"), ("L", "bmp"), ("L", "tif")])
def test_gray_modes_have_equal_channels(tmp_path, mode, ending):
    gray = picture().convert("L")
    gray.convert(mode).save(tmp_path / f"a.{ending}")
    expected = np.asarray(gray)
    assert np.array_equal(read(tmp_path / f"a.{ending}"), np.stack([expected] * 3))
    assert np.array_equal(read(tmp_path / f"a.{ending}", channels=1), expected[None])


def test_bilevel_images_are_black_and_white(tmp_path):
    Image.fromarray(np.eye(16, dtype=bool)).save(tmp_path / "a.png")
    assert np.array_equal(read(tmp_path / "a.png", channels=1)[0], 255 * np.eye(16, dtype=np.uint8))


def test_one_channel_is_the_luminance_of_colors(tmp_path):
    picture(40, 30).save(tmp_path / "a.png")
    colors = read(tmp_path / "a.png")
    expected = np.asarray(Image.fromarray(colors.transpose(1, 2, 0)).convert("L"))
    assert np.array_equal(read(tmp_path / "a.png", channels=1)[0], expected)


@pytest.mark.parametrize("factor", [1, 4, 16, 64, 256])  # 8, 10, 12, 14 and 16 bits
@pytest.mark.parametrize(("kind", "ending"), [("u2", "png"), ("i4", "tif"), ("f4", "tif")])
def test_deep_gray_uses_the_bits_that_are_used(tmp_path, factor, kind, ending):
    gray = np.arange(256, dtype=np.int64).reshape(16, 16)
    Image.fromarray((gray * factor).astype(kind)).save(tmp_path / f"a.{ending}")
    assert np.array_equal(read(tmp_path / f"a.{ending}", channels=1)[0], gray)


def test_big_endian_deep_gray(tmp_path):
    gray = np.arange(256, dtype=np.uint16).reshape(16, 16)
    Image.frombytes("I;16B", (16, 16), (gray * 256).astype(">u2").tobytes()).save(tmp_path / "a.tif")
    assert np.array_equal(read(tmp_path / "a.tif", channels=1)[0], gray)


@pytest.mark.parametrize(
    "values",
    [
        np.linspace(0, 1, 256),
        np.linspace(-1000, 3000, 256),
        np.linspace(0, 1e9, 256),
        [np.nan, np.inf, *np.linspace(-5, -3, 256)[2:]],
    ],
    ids=["unit", "signed", "wide", "holes"],
)
def test_floating_point_gray_spans_its_range(tmp_path, values):
    Image.fromarray(np.array(values, dtype=np.float32).reshape(16, 16)).save(tmp_path / "a.tif")
    flat = read(tmp_path / "a.tif", channels=1).reshape(-1).astype(int)
    assert np.abs(flat[2:] - np.arange(2, 256)).max() <= 3
    assert flat[0] <= 3
    assert flat[-1] == 255


def test_constant_negative_and_never_finite_gray(tmp_path):
    Image.fromarray(np.full((4, 4), -7.0, dtype=np.float32)).save(tmp_path / "flat.tif")
    assert not read(tmp_path / "flat.tif").any()
    Image.fromarray(np.full((4, 4), np.nan, dtype=np.float32)).save(tmp_path / "nan.tif")
    assert reason(tmp_path / "nan.tif") == ("cannot be decoded (no pixel has a finite value)", True)


def test_transparent_parts_are_white(tmp_path):
    clear = picture().convert("RGBA")
    alpha = np.full((16, 16), 255, dtype=np.uint8)
    alpha[:8] = 0
    clear.putalpha(Image.fromarray(alpha))
    expected = row_of(picture()).copy()
    expected[:, :8] = 255
    for ending, options in (("png", {}), ("tif", {}), ("webp", {"lossless": True})):
        clear.save(tmp_path / f"a.{ending}", **options)
        assert np.array_equal(read(tmp_path / f"a.{ending}"), expected), ending


def test_a_transparent_color_is_white(tmp_path):
    colors = Image.fromarray(np.repeat(np.arange(16, dtype=np.uint8), 16).reshape(16, 16))
    palette = colors.convert("P")
    palette.putpalette([value for index in range(256) for value in (index, 10, 20)])
    palette.save(tmp_path / "p.png", transparency=3)
    palette.save(tmp_path / "steps.png", transparency=bytes([255, 255, 255, 0] + [255] * 252))
    Image.fromarray(np.asarray(palette.convert("RGB"))).save(tmp_path / "rgb.png", transparency=(3, 10, 20))
    colors.save(tmp_path / "l.png", transparency=3)
    for name in ("p.png", "steps.png", "rgb.png", "l.png"):
        row = read(tmp_path / name)
        assert (row[:, 3] == 255).all(), name
        assert row[0, 4, 0] == 4, name


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "webp", "tif"])
def test_exif_orientation_is_applied(tmp_path, turn, ending):
    upright = picture(40, 24)
    undo = [None, 0, 3, 1, 5, 2, 6, 4][turn - 1]  # the Transpose that stores the picture as a camera held so would
    stored = upright if undo is None else upright.transpose(Image.Transpose(undo))
    exif = Image.Exif()
    exif[0x0112] = turn
    stored.save(tmp_path / f"a.{ending}", exif=exif, quality=95)
    upright.save(tmp_path / f"b.{ending}", quality=95)
    row, straight = read(tmp_path / f"a.{ending}", (12, 20)), read(tmp_path / f"b.{ending}", (12, 20))
    assert np.abs(row.astype(int) - straight).max() <= 6


def test_broken_exif_is_ignored(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    picture().save(tmp_path / "a.jpg", exif=exif)
    data = (tmp_path / "a.jpg").read_bytes()
    start = data.index(b"Exif\0\0") + 6
    for junk in (b"\xff" * 8, b"II*\0\xff\xff\xff\x7f", b"II*\0\x08\0\0\0\xff\xff"):
        (tmp_path / "b.jpg").write_bytes(data[:start] + junk + data[start + len(junk) :])
        assert read(tmp_path / "b.jpg").shape == (3, 16, 16)


@pytest.mark.parametrize("error", [SyntaxError, struct.error, ValueError, KeyError])
def test_exif_that_makes_pillow_fail_is_ignored(tmp_path, monkeypatch, error):
    def fail(self):
        raise error("bad")

    picture().save(tmp_path / "a.png")
    monkeypatch.setattr(Image.Image, "getexif", fail)
    assert np.array_equal(read(tmp_path / "a.png"), row_of(picture()))


def test_the_whole_picture_is_stretched(tmp_path):
    picture(200, 50).save(tmp_path / "a.png")
    row = read(tmp_path / "a.png", (20, 10)).astype(int)
    assert row[0, 0, 0] < 20
    assert row[0, 0, -1] > 235
    assert row[1, 0, 0] < 20
    assert row[1, -1, 0] > 235


@pytest.mark.parametrize("shape", [(1001, 777), (385, 385)])  # a coarse copy of the latter is an eighth plus a rest
def test_a_large_jpeg_decoded_coarsely_is_as_good(tmp_path, shape):
    picture(*shape).save(tmp_path / "a.jpg", quality=95)
    fine = picture(*shape).resize((16, 16), Image.Resampling.BICUBIC)
    assert np.abs(read(tmp_path / "a.jpg").astype(int) - row_of(fine)).max() <= 3


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1), (3, 2)])
def test_tiny_and_thin_images(tmp_path, shape):
    picture(*shape).save(tmp_path / "a.png")
    assert read(tmp_path / "a.png").shape == (3, 16, 16)


@pytest.mark.parametrize("ending", ["tif", "webp"])
def test_the_first_frame_is_taken(tmp_path, ending):
    black = Image.new("RGB", (16, 16))
    options = {"lossless": True} if ending == "webp" else {}
    picture().save(tmp_path / f"a.{ending}", save_all=True, append_images=[black], **options)
    assert np.array_equal(read(tmp_path / f"a.{ending}"), row_of(picture()))


def test_content_counts_and_not_the_ending(tmp_path):
    picture().save(tmp_path / "a.png")
    os.rename(tmp_path / "a.png", tmp_path / "a.jpg")
    assert np.array_equal(read(tmp_path / "a.jpg"), row_of(picture()))


def test_formats_that_start_programs_are_not_opened(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n")
    assert reason(tmp_path / "a.jpg").reason == "not an image, whatever its name says"


def encoded(**options) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(buffer, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "BMP"])
def test_truncated_files_are_skipped_for_good(tmp_path, kind):
    data = encoded(format=kind)
    (tmp_path / "a.jpg").write_bytes(data[: len(data) // 2])
    outcome = reason(tmp_path / "a.jpg")
    assert outcome.lasting
    assert outcome.reason.startswith(("truncated file", "cannot be decoded (", "not an image"))


def test_every_beginning_of_a_file_gives_a_row_or_a_reason(tmp_path):
    for kind in ("JPEG", "PNG", "TIFF", "WEBP", "BMP"):
        data = encoded(format=kind)
        for length in range(1, len(data), len(data) // 40):
            (tmp_path / "a.jpg").write_bytes(data[:length])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert isinstance(decode(str(tmp_path / "a.jpg"), SIZE, 3, LIMIT), (np.ndarray, Unreadable))


def test_damaged_bytes_give_a_row_or_a_reason(tmp_path):
    rng = np.random.default_rng(1)
    for kind in ("JPEG", "PNG", "TIFF", "WEBP", "BMP"):
        data = np.frombuffer(encoded(format=kind), np.uint8)
        for _ in range(40):
            damaged = data.copy()
            damaged[rng.integers(0, min(len(data), 400), 4)] = rng.integers(0, 256, 4)
            (tmp_path / "a.jpg").write_bytes(damaged.tobytes())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert isinstance(decode(str(tmp_path / "a.jpg"), SIZE, 3, 10**6), (np.ndarray, Unreadable))


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"", "empty file"), (b"hello", "not an image, whatever its name says"), (b"\xff\xd8\xff", "not an image")],
)
def test_no_image_at_all(tmp_path, content, expected):
    (tmp_path / "a.jpg").write_bytes(content)
    outcome = reason(tmp_path / "a.jpg")
    assert outcome.reason.startswith(expected)
    assert outcome.lasting


def bomb(side: int) -> bytes:
    """A PNG of some hundred bytes whose header promises side · side pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def test_bombs_are_judged_by_their_header(tmp_path, monkeypatch):
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("decoded"))
    (tmp_path / "a.png").write_bytes(bomb(10_001))
    assert reason(tmp_path / "a.png") == ("too many pixels (10001 x 10001, max_pixels is 100000000)", True)
    (tmp_path / "b.png").write_bytes(bomb(60_000))  # beyond Pillow's own limit
    assert reason(tmp_path / "b.png") == ("too many pixels (max_pixels is 100000000)", True)
    outcome = reason(tmp_path / "b.png", max_pixels=10**10)
    assert "PIL.Image.MAX_IMAGE_PIXELS" in outcome.reason
    assert not outcome.lasting


def test_the_limit_itself_is_allowed(tmp_path):
    picture(20, 20).save(tmp_path / "a.png")
    assert isinstance(reason(tmp_path / "a.png", max_pixels=399), Unreadable)
    assert read(tmp_path / "a.png", max_pixels=400).shape == (3, 16, 16)


def test_a_file_that_the_system_refuses_may_be_read_another_time(tmp_path, monkeypatch):
    assert reason(tmp_path / "gone.jpg") == ("cannot be read (No such file or directory)", False)

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(builtins, "open", refuse)
    assert decode("a.jpg", SIZE, 3, LIMIT) == ("cannot be read (Permission denied)", False)


def test_want_of_memory_is_no_property_of_the_file(tmp_path, monkeypatch):
    def full(self, *_, **__):
        raise MemoryError

    picture().save(tmp_path / "a.png")
    monkeypatch.setattr(Image.Image, "resize", full)
    assert reason(tmp_path / "a.png") == ("not enough memory to decode it", False)


def test_pillow_is_left_as_it_was(tmp_path):
    before = Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES
    picture().save(tmp_path / "a.png")
    read(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(bomb(60_000))
    reason(tmp_path / "b.png", max_pixels=10**10)
    assert before == (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES)

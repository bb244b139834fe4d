"""Own images: folders of files of any kind and size become uint8 rows of one size."""

from __future__ import annotations

from wrssl.data.images.cache import cache_folder
from wrssl.data.images.decode import Unreadable, decode, formats, open_picture
from wrssl.data.images.files import image_files, printable, read_text
from wrssl.data.images.reader import ImageReader, choose_jobs, in_order, quiet
from wrssl.data.images.store import RowWriter, open_rows

__all__ = [
    "ImageReader",
    "RowWriter",
    "Unreadable",
    "cache_folder",
    "choose_jobs",
    "decode",
    "formats",
    "image_files",
    "in_order",
    "open_picture",
    "open_rows",
    "printable",
    "quiet",
    "read_text",
]

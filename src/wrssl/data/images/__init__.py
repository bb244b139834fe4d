"""Own images: folders of files of any kind and size become uint8 rows of one size."""

from __future__ import annotations

from wrssl.data.images.files import image_files, printable
from wrssl.data.images.reader import ImageReader

__all__ = ["ImageReader", "image_files", "printable"]

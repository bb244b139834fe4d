"""Own images: folders of files of any kind and size become uint8 rows of one size."""

from __future__ import annotations

from wrssl.data.images.reader import ImageReader
from wrssl.data.images.scan import image_files

__all__ = ["ImageReader", "image_files"]

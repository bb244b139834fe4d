"""The data sources of the package, one per file: each registers ``load(request)``, see ``data/source.py``."""

from __future__ import annotations

from wrssl.data.sources import moons  # isort: skip
from wrssl.data.sources import digits  # isort: skip
from wrssl.data.sources import mnist  # isort: skip
from wrssl.data.sources import cifar  # isort: skip
from wrssl.data.sources import svhn  # isort: skip

__all__ = ["cifar", "digits", "mnist", "moons", "svhn"]

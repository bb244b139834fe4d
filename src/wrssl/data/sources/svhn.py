"""SVHN's cropped house numbers: the digits 0–4 are in-distribution, 5–9 foreign; 400 labels per class.

Labelled and validation images come from the training file, the pool from ``extra`` where that file is there and
from the training file otherwise. The pool has M0 = min(ID, foreign) images, so that any ratio is possible.
``download=True`` fetches the training and the test file; ``extra`` (1.3 GB, and 3.3 GB of memory) is used only where
it was put beside them on purpose. Looked for in the data folder or its subfolder ``SVHN``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wrssl.data import addresses
from wrssl.data.folder import locate
from wrssl.data.parts import Parts, Request
from wrssl.data.readers.svhn import read_svhn
from wrssl.data.sources.class_split import split_classes


def find(name: str, request: Request) -> tuple[Path, Path]:
    """The training and the test file."""
    return _file("train", request), _file("test", request)


def load(name: str, request: Request) -> Parts:
    """SVHN."""
    train, test = map(read_svhn, find(name, request))
    extra = [path for path in _places("extra", request) if path.exists()]
    more = read_svhn(extra[0]) if extra else None
    return split_classes(train, test, np.arange(5), 400, 1.0, "signs", request, more)


def _places(part: str, request: Request) -> list[Path]:
    file = f"{part}_32x32.mat"
    return [request.data_dir / file, request.data_dir / "SVHN" / file]


def _file(part: str, request: Request) -> Path:
    places = _places(part, request)
    return locate(places, addresses.SVHN[places[1].name], places[1], request.download)

"""SVHN's cropped house numbers: the digits 0–4 are in-distribution, 5–9 foreign; 400 labels per class.

Labeled and validation images come from the training file, the pool from ``extra`` where that file exists and from the
training file otherwise. The pool has M0 = min(ID, foreign) images, so that any ratio is possible.
``download=True`` fetches the training and the test file; ``extra`` (1.3 GB, and 3.3 GB of memory) must be put beside
them by hand. Looked for in the data folder or its subfolder ``SVHN``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wrssl.data.download import SVHN, locate
from wrssl.data.readers.svhn import read_svhn
from wrssl.data.source import Parts, Request
from wrssl.data.splits import split_classes
from wrssl.registry import register_source


def find(request: Request) -> tuple[Path, Path]:
    """The training and the test file."""
    return _file("train", request), _file("test", request)


@register_source("svhn", kinds=("classes",), find=find)
def load(request: Request) -> Parts:
    """SVHN."""
    train, test = map(read_svhn, find(request))
    extra = [path for path in _places("extra", request) if path.exists()]
    more = read_svhn(extra[0]) if extra else None
    return split_classes(train, test, np.arange(5), 400, 1.0, "signs", request, more)


def _places(part: str, request: Request) -> list[Path]:
    file = f"{part}_32x32.mat"
    return [request.data_dir / file, request.data_dir / "SVHN" / file]


def _file(part: str, request: Request) -> Path:
    places = _places(part, request)
    return locate(places, SVHN[places[1].name], places[1], request.download)

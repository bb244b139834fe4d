"""scikit-learn's embedded handwritten digits, 8×8, no download; foreign images of four kinds.

Per seed a stratified split: 400 test, 200 validation, 10 labels per class, the rest (1,097) for the pool. Kinds:

* ``patches``: gray 8×8 pieces of scikit-learn's two embedded photographs (far away);
* ``mean``: the mean of two training digits of different classes that were taken out of the pool (boundary);
* ``classes``: the digits 0–5 are in-distribution, 6–9 foreign (boundary; a pool of 423);
* ``mixed``: half ``patches``, half ``mean``.
"""

from __future__ import annotations

import numpy as np

from wrssl.data.pairs import mean_of_taken
from wrssl.data.source import Array, Foreign, LabeledArrays, Parts, Request, foreign_classes, stored
from wrssl.data.splits import divide, random_order, without_copies
from wrssl.data.streams import numpy_stream
from wrssl.registry import register_source

_LABELS, _VALIDATION, _TEST = 10, 200, 400
_ID_CLASSES = 6
_SHRINK, _STEP, _SIDE = 4, 3, 8
_CONTRAST = 8.0


@register_source("digits", kinds=("patches", "mean", "classes", "mixed"))
def load(request: Request) -> Parts:
    """The digits, and the foreign images that ``request.ood`` names."""
    images, labels = _digits()
    seed = request.seed
    foreign: tuple[Foreign, ...]
    if request.ood == "classes":
        others, other_labels = images[labels >= _ID_CLASSES], labels[labels >= _ID_CLASSES]
        shuffled = numpy_stream(seed, "digits classes").permutation(len(others))
        foreign = (foreign_classes(others[shuffled], other_labels[shuffled]),)
        images, labels = images[labels < _ID_CLASSES], labels[labels < _ID_CLASSES]
    elif request.ood == "mean":
        foreign = (mean_of_taken(seed),)
    else:
        pieces = photo_patches()
        patches = stored("patches", pieces[numpy_stream(seed, "digits patches").permutation(len(pieces))])
        foreign = (patches,) if request.ood == "patches" else (patches, mean_of_taken(seed))

    order = random_order(labels, _TEST + _VALIDATION, seed, "digits split")
    images, labels = images[order], labels[order]
    labeled, validation, pool = divide(images[_TEST:], labels[_TEST:], _VALIDATION, _LABELS, request)
    return Parts(
        labeled=labeled,
        pool=pool[0],
        pool_labels=pool[1],
        validation=validation,
        test=(images[:_TEST], labels[:_TEST]),
        foreign=foreign,
        noise=0.15,
        augment="shapes",
        vat_epsilon=1.0,
    )


def _digits() -> LabeledArrays:
    """The images as uint8 ``(N, 1, 8, 8)``: the stored 0 … 16 times 255/16, rounded; exact copies dropped."""
    from sklearn.datasets import load_digits  # takes its time to import

    values, labels = load_digits(return_X_y=True)
    images = np.rint(values * (255.0 / 16.0)).astype(np.uint8).reshape(-1, 1, 8, 8)
    fresh = without_copies(images)
    return images[fresh], labels[fresh].astype(np.int64)


def photo_patches() -> Array:
    """All pieces of the two photographs: gray (mean of the channels), shrunk by 4, 8×8 every 3 pixels.

    Shrinking (the mean of 4×4 pixels) puts texture into 8×8 pixels; contrast is kept. Pieces with a standard deviation
    below 8 gray levels (plain sky) are left out, as they would all look alike.
    """
    from sklearn.datasets import load_sample_images  # takes its time to import

    pieces = []
    for photo in load_sample_images().images:
        gray = photo.mean(axis=2)
        height, width = (size // _SHRINK for size in gray.shape)
        blocks = gray[: height * _SHRINK, : width * _SHRINK].reshape(height, _SHRINK, width, _SHRINK)
        small = blocks.mean(axis=(1, 3))
        windows = np.lib.stride_tricks.sliding_window_view(small, (_SIDE, _SIDE))[::_STEP, ::_STEP]
        pieces.append(windows.reshape(-1, 1, _SIDE, _SIDE))
    all_pieces = np.concatenate(pieces)
    textured = all_pieces[all_pieces.std(axis=(1, 2, 3)) >= _CONTRAST]
    images: Array = np.rint(textured).astype(np.uint8)
    return images[without_copies(images)]

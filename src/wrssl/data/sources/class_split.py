"""Foreign images from held-out classes of the same data set: shared by CIFAR and SVHN.

A tenth of the ID training images, stratified, is held out for validation. Of the others the first few per class are
labelled, and the rest can be in the pool. Validation and test hold ID classes only. The foreign images are nine
tenths of the other classes' training images, the same share.
"""

from __future__ import annotations

import numpy as np

from wrssl.data.classwise import foreign_classes
from wrssl.data.parts import Array, LabeledArrays, Parts, Request
from wrssl.data.splits import divide, random_order, without_copies
from wrssl.data.streams import stream

_HELD = 10


def split_classes(
    train: LabeledArrays,
    test: LabeledArrays,
    id_classes: Array,
    labels_per_class: int,
    vat_epsilon: float,
    augment: str,
    request: Request,
    extra: LabeledArrays | None = None,
) -> Parts:
    """Parts of a scenario in which some classes are foreign.

    Args:
        train: images and labels.
        test: likewise.
        id_classes: the labels that are in-distribution.
        labels_per_class: the source's number.
        vat_epsilon: the source's radius.
        augment: which random changes leave the class of the source's images alone.
        request: what the user asked for.
        extra: images for the pool in place of the training images that are not labelled.

    Returns:
        The parts. Exact copies of test images, and of earlier training images, are dropped.
    """
    test_id = np.isin(test[1], id_classes)
    test_rows, test_labels = test[0][test_id], test[1][test_id]
    rows, labels = _fresh(train, test_rows)
    own = np.isin(labels, id_classes)
    others, other_labels = rows[~own], labels[~own]
    rows, labels = rows[own], labels[own]
    held = len(rows) // _HELD
    order = random_order(labels, held, request.seed, "class split")
    labeled, validation, pool = divide(rows[order], labels[order], held, labels_per_class, request)
    shuffled = stream(request.seed, "class split others").permutation(len(others))
    shuffled = shuffled[: len(others) - len(others) // _HELD]
    others, other_labels = others[shuffled], other_labels[shuffled]
    if extra is not None:
        more, more_labels = _fresh(extra, np.concatenate([test_rows, rows]))
        shuffled = stream(request.seed, "class split extra").permutation(len(more))
        more, more_labels = more[shuffled], more_labels[shuffled]
        own = np.isin(more_labels, id_classes)
        pool = more[own], more_labels[own]
        others, other_labels = more[~own], more_labels[~own]
    return Parts(
        labeled=labeled,
        pool=pool[0],
        pool_labels=pool[1],
        validation=validation,
        test=(test_rows, test_labels),
        foreign=(foreign_classes(others, other_labels),),
        noise=0.15,
        augment=augment,
        vat_epsilon=vat_epsilon,
    )


def _fresh(part: LabeledArrays, barred: Array) -> LabeledArrays:
    fresh = without_copies(part[0], barred)
    return part[0][fresh], part[1][fresh]

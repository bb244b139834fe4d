"""Divide a training set by seed: held-out validation rows, a few labeled ones, the rest for the pool."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from wrssl.data.checks import first_occurrences
from wrssl.data.source import Array, LabeledArrays, Parts, Request, foreign_classes
from wrssl.data.streams import numpy_stream
from wrssl.errors import DataError, OptionError

Indices = npt.NDArray[np.int64]
_HELD = 10  # split_classes holds out one training row of so many


def random_order(labels: Array, front: int, seed: int, name: str) -> Indices:
    """A random order of all rows whose first ``front`` rows are stratified.

    Row number r (from 0) of a class of n rows, in random order within the class, gets the key (r + u) / n with u
    uniform in [0, 1); sorting by the key spreads every class evenly. Rows after the front are shuffled.
    """
    rng = numpy_stream(seed, name)
    shuffled = rng.permutation(len(labels))
    keys = np.empty(len(labels))
    for label in np.unique(labels):
        members = shuffled[labels[shuffled] == label]
        keys[members] = (np.arange(len(members)) + rng.random(len(members))) / len(members)
    order = np.argsort(keys, kind="stable")
    order[front:] = rng.permutation(order[front:])
    return order.astype(np.int64)


def first_per_class(labels: Array, number: int) -> npt.NDArray[np.bool_]:
    """True for the first ``number`` rows of every class; a class that has fewer is a ``DataError``."""
    if number < 1:
        raise OptionError(f"labels_per_class must be at least 1, not {number}.")
    chosen = np.zeros(len(labels), dtype=np.bool_)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) < number:
            raise DataError(
                f"Class {label!s} has {len(members)} rows for labels; use labels_per_class of at most {len(members)}."
            )
        chosen[members[:number]] = True
    return chosen


def divide(
    rows: Array, labels: Array, held: int, labels_per_class: int, request: Request
) -> tuple[LabeledArrays, LabeledArrays | None, LabeledArrays]:
    """Labeled part, validation part and pool from training rows that are already in random order.

    The first ``held`` rows are reserved for validation whatever ``validation_size`` says, so that a smaller
    validation set changes neither the labeled rows nor the pool. Of the others, the first ``labels_per_class`` of
    every class are labeled and the rest, in order, is the pool.

    Args:
        rows: inputs.
        labels: their labels.
        held: number of rows reserved for validation.
        labels_per_class: the source's number, used where the request has none.
        request: what the user asked for.

    Returns:
        ``(labeled, validation or None, pool)``, each a pair of inputs and labels.
    """
    size = held if request.validation_size is None else request.validation_size
    if not 0 <= size <= held:
        raise OptionError(f"validation_size must be between 0 and {held} here, not {size}.")
    rest, rest_labels = rows[held:], labels[held:]
    per_class = labels_per_class if request.labels_per_class is None else request.labels_per_class
    chosen = first_per_class(rest_labels, per_class)
    if chosen.all():
        raise DataError("No row is left for the pool; use a smaller labels_per_class.")
    validation = (rows[:size], labels[:size]) if size else None
    return (rest[chosen], rest_labels[chosen]), validation, (rest[~chosen], rest_labels[~chosen])


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
    """Parts of a scenario whose foreign images are held-out classes of the same data set (CIFAR, SVHN).

    A tenth of the ID training images, stratified, is held out for validation. Of the others the first few per class are
    labeled, and the rest can be in the pool. Validation and test hold ID classes only. The foreign images are nine
    tenths of the other classes' training images, the same share.

    Args:
        train: images and labels.
        test: likewise.
        id_classes: the labels that are in-distribution.
        labels_per_class: the source's number.
        vat_epsilon: the source's radius.
        augment: which random changes leave the class of the source's images alone.
        request: what the user asked for.
        extra: images for the pool in place of the training images that are not labeled.

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
    shuffled = numpy_stream(request.seed, "class split others").permutation(len(others))
    shuffled = shuffled[: len(others) - len(others) // _HELD]
    others, other_labels = others[shuffled], other_labels[shuffled]
    if extra is not None:
        more, more_labels = _fresh(extra, np.concatenate([test_rows, rows]))
        shuffled = numpy_stream(request.seed, "class split extra").permutation(len(more))
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


def without_copies(rows: Array, barred: Array | None = None) -> npt.NDArray[np.bool_]:
    """True for rows that are no exact copy of an earlier row or of a row in ``barred``."""
    other = None if barred is None else torch.from_numpy(barred)
    return first_occurrences(torch.from_numpy(np.ascontiguousarray(rows)), other)


def spread_over_folds(labels: Array, shuffled: Array, folds: int) -> Array:
    """A fold for every row; the rows of each class, in the given random order of all rows, are dealt out in turn."""
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    fold_of = np.empty(len(labels), dtype=np.int64)
    fold_of[by_class] = np.arange(len(labels)) % folds
    return fold_of

"""A source of data: a function that makes the parts of a scenario before its pool is mixed.

    @wrssl.register_source("rings", kinds=("noise", "squares"))
    def load(request: Request) -> Parts: ...

``load_scenario("rings", "squares", ratio=0.3)`` calls it and mixes the pool. The facts registered beside it are

* ``kinds``: the kinds of foreign rows, the default first; one kind, ``"foreign"``, where nothing is said;
* ``find``: optional, a function of the request that raises a ``DataError`` where a file is missing and reads no rows.

``register_foreign`` adds a kind of foreign rows to a source that exists, from any file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from wrssl.errors import DataError, OptionError
from wrssl.registry import SOURCES

Array: TypeAlias = npt.NDArray[Any]
LabeledArrays: TypeAlias = tuple[Array, Array]
ROW_TYPES = (np.dtype(np.uint8), np.dtype(np.float32))


@dataclass(frozen=True)
class Request:
    """What the user asked a source for.

    Attributes:
        name: the scenario's, as registered.
        ood: the kind of foreign rows, one of the source's.
        seed: of all random choices.
        data_dir: the folder that holds the files.
        download: fetch missing files.
        labels_per_class: number of labeled rows per class, or None for the source's own number.
        validation_size: number of validation rows, or None for the source's own number.
    """

    name: str
    ood: str
    seed: int
    data_dir: Path
    download: bool = False
    labels_per_class: int | None = None
    validation_size: int | None = None


@dataclass(frozen=True)
class Foreign:
    """One kind of foreign (OOD) rows.

    Attributes:
        name: for messages.
        available: how many there are at most, or None where any number can be made.
        draw: ``draw(n, taken, taken_labels)`` returns n rows of the shape and type of the pool's. ``taken`` are the
            training rows that mixing took out of the pool, the only ones that new rows may be made of. Fewer rows are
            a prefix of more rows.
    """

    name: str
    available: int | None
    draw: Callable[[int, Array, Array], Array]


def stored(name: str, rows: Array) -> Foreign:
    """Foreign rows that exist already, in an order that is random by seed; ``draw(n)`` takes the first n."""
    return Foreign(name, len(rows), lambda n, taken, taken_labels: rows[:n])


@dataclass(frozen=True)
class ForeignClasses(Foreign):
    """Foreign rows that have classes.

    Attributes:
        rows: all of them, in an order that is random by seed.
        labels: their classes.
    """

    rows: Array
    labels: Array


def foreign_classes(rows: Array, labels: Array) -> ForeignClasses:
    """Held-out classes of the same data set; ``draw(n)`` takes the first n rows."""
    assert len(rows) == len(labels)
    return ForeignClasses("classes", len(rows), lambda n, taken, taken_labels: rows[:n], rows, labels)


@dataclass(frozen=True)
class Parts:
    """A source's data before mixing.

    Attributes:
        labeled: inputs and labels.
        pool: all in-distribution rows that the pool may hold, uint8 or float32, in an order that is random by seed.
        pool_labels: their labels; used to make ``mean`` images and never handed on.
        validation: inputs and labels, or None.
        test: inputs and labels, or None.
        foreign: the kinds of foreign rows, in equal shares.
        noise: σ of the input noise; None for the default of ``Scenario``, here and below.
        augment: which random changes leave the class alone, one of ``data.augment.AUGMENTATIONS``.
        vat_epsilon: radius of the adversarial step.
    """

    labeled: LabeledArrays
    pool: Array
    pool_labels: Array
    validation: LabeledArrays | None = None
    test: LabeledArrays | None = None
    foreign: tuple[Foreign, ...] = ()
    noise: float | None = None
    augment: str | None = None
    vat_epsilon: float | None = None

    def __post_init__(self) -> None:
        if len(self.pool) != len(self.pool_labels):
            raise DataError(
                f"A source has {len(self.pool)} pool rows and {len(self.pool_labels)} labels of them; give one label "
                "per row."
            )
        if self.pool.dtype not in ROW_TYPES:
            raise DataError(f"The pool rows of a source have type {self.pool.dtype}; make them uint8 or float32.")


MakeForeign: TypeAlias = Callable[[Request, Parts], Foreign]


@dataclass(frozen=True)
class AddedKind:
    """A kind of foreign rows that was added to a source.

    Attributes:
        make: makes the foreign rows.
        like: the kind of the source that it shares everything else with, the files included.
    """

    make: MakeForeign
    like: str


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds of foreign rows of a source, the default first, those that were added last."""
    return (*_own_kinds(name), *added_kinds(name))


def added_kinds(name: str) -> Mapping[str, AddedKind]:
    """Those that ``register_foreign`` added."""
    added: Mapping[str, AddedKind] = SOURCES.facts(name).get("added", {})
    return added


def _own_kinds(name: str) -> tuple[str, ...]:
    return tuple(SOURCES.facts(name).get("kinds", ("foreign",)))


def register_foreign(source: str, kind: str, like: str | None = None) -> Callable[[MakeForeign], MakeForeign]:
    """Decorator: one more kind of foreign rows for a source, made by a function of the request and the source's parts.

        @register_foreign("digits", "noise")
        def noise(request: Request, parts: Parts) -> Foreign:
            random = numpy_stream(request.seed, "digits noise")
            return stored("noise", random.integers(0, 256, (500, *parts.pool.shape[1:]), dtype=np.uint8))

    Args:
        source: the name of the source.
        kind: the new kind.
        like: the kind of the source whose labeled, validation, test and pool rows (and whose files) the new kind has;
            default the first.
    """

    def keep(make: MakeForeign) -> MakeForeign:
        known, own, added = SOURCES.facts(source), _own_kinds(source), added_kinds(source)
        base = own[0] if like is None else like
        if base not in own:
            raise OptionError(f"{source} has no foreign rows {base!r}; choose like from {', '.join(own)}.")
        # The same function again (a reloaded module, a notebook cell run twice) is fine; another one is a mistake.
        if kind in own or (kind in added and _identity(added[kind].make) != _identity(make)):
            raise OptionError(f"{source} has foreign rows {kind!r} already; register yours under another name.")
        facts = {**known, "added": {**added, kind: AddedKind(make, base)}}
        SOURCES.register(source, **facts)(SOURCES.get(source))
        return make

    return keep


def _identity(make: MakeForeign) -> tuple[str | None, str]:
    return getattr(make, "__module__", None), getattr(make, "__qualname__", repr(make))


def read_parts(request: Request) -> Parts:
    """What the source gives, with the foreign rows of an added kind where the request names one."""
    added = added_kinds(request.name).get(request.ood)
    parts = SOURCES.get(request.name)(request if added is None else replace(request, ood=added.like))
    if not isinstance(parts, Parts):
        raise DataError(
            f"The source {request.name!r} returned {type(parts).__name__}; its function must return wrssl.data.Parts."
        )
    return parts if added is None else replace(parts, foreign=(added.make(request, parts),))


def find_files(request: Request) -> None:
    """A ``DataError`` where a file that the source needs is missing; sources without files never raise one."""
    find: Callable[[Request], Any] | None = SOURCES.facts(request.name).get("find")
    if find is not None:
        added = added_kinds(request.name).get(request.ood)
        find(request if added is None else replace(request, ood=added.like))

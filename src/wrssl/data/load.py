"""``load_scenario``: a named scenario, mixed as asked."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np

from wrssl.data.download import data_folder
from wrssl.data.mixing import check_options, mix
from wrssl.data.scenario import Origin, Scenario
from wrssl.data.source import Parts, Request, find_files, kinds_of, read_parts
from wrssl.data.streams import check_seed
from wrssl.errors import DataError, OptionError
from wrssl.registry import SOURCES


def list_scenarios() -> dict[str, tuple[str, ...]]:
    """The named scenarios, each with its kinds of foreign rows; the first kind is the default."""
    return {name: kinds_of(name) for name in SOURCES.names()}


def find_scenario(name: str, ood: str | None = None, data_dir: str | os.PathLike[str] | None = None) -> None:
    """Check whether the files of a named scenario are there; a ``DataError`` says which one is not and where to get it.

    Args:
        name: one of ``list_scenarios()``.
        ood: the kind of foreign rows; default the first.
        data_dir: as in ``load_scenario``.
    """
    find_files(Request(name, _kind(name, ood), 0, data_folder(data_dir)))


def _kind(name: str, ood: str | None) -> str:
    kinds = kinds_of(name)
    kind = kinds[0] if ood is None else ood
    if kind not in kinds:
        raise OptionError(f"{name} has no foreign rows {ood!r}; choose ood from {', '.join(kinds)}.")
    return kind


def load_scenario(
    name: str,
    ood: str | None = None,
    ratio: float = 0.5,
    mode: str = "replace",
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    clean: bool = False,
    download: bool = False,
    labels_per_class: int | None = None,
    validation_size: int | None = None,
    unlabeled_size: int | None = None,
) -> Scenario:
    """Load a named scenario: a data set whose pool is mixed with foreign (OOD) rows.

    For one seed, the labeled, validation and test parts do not depend on ratio or mode, and the ID rows of the
    pool at a higher ratio are a subset of those at a lower one (``data/mixing.py`` has the exact rules).

    Args:
        name: one of ``list_scenarios()``.
        ood: the kind of foreign rows; default the first of ``list_scenarios()[name]``.
        ratio: share of foreign rows in the pool, 0 to 1.
        mode: ``"replace"``: foreign rows take the place of ID rows, the pool keeps its size (the paper);
            ``"add"``: they are added to a quarter of the ID rows; ``"oliver"``: the ratio is the share of the pool's
            classes that are foreign, as in Oliver et al. (``data/mixing.py`` has the rule; foreign classes only).
        seed: of every random choice.
        data_dir: folder of the files; default ``$WRSSL_DATA``, else ``wrssl`` in the user's cache folder.
        clean: the same ID rows with the foreign ones removed.
        download: fetch missing files from their official address.
        labels_per_class: default as in the paper, see ``data/sources``.
        validation_size: use fewer validation rows; 0 for none.
        unlabeled_size: take at most this number of ID rows for the pool, as if the source had no more.

    Returns:
        The scenario; its truth is known.
    """
    kind = _kind(name, ood)
    sizes = {
        "labels_per_class": labels_per_class, "validation_size": validation_size, "unlabeled_size": unlabeled_size
    }  # fmt: skip
    for option, value in sizes.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
            raise OptionError(f"{option} must be a whole number, not {value!r}.")
    check_options(ratio, mode)
    seed = check_seed(seed)
    request = Request(name, kind, seed, data_folder(data_dir), download, labels_per_class, validation_size)
    try:
        parts = _smaller(read_parts(request), unlabeled_size)
        pool, is_ood = mix(parts, ratio, mode, seed, clean)
    except MemoryError as error:
        raise DataError(f"{name} does not fit into memory; free some, or use a smaller scenario.") from error
    # Everything that decides what is in it; where the files are depends on the machine.
    recipe = {
        "name": name,
        "ood": kind,
        "ratio": float(ratio),
        "mode": mode,
        "seed": seed,
        "clean": bool(clean),
        "labels_per_class": None if labels_per_class is None else int(labels_per_class),
        "validation_size": None if validation_size is None else int(validation_size),
    }
    if unlabeled_size is not None:  # not in the recipes of older runs, which can still be resumed
        recipe["unlabeled_size"] = int(unlabeled_size)
    return Scenario(
        labeled=parts.labeled,
        unlabeled=pool,
        validation=parts.validation,
        test=parts.test,
        is_ood=is_ood,
        name=f"{name}/{kind}",
        noise=parts.noise,
        augment=parts.augment,
        vat_epsilon=parts.vat_epsilon,
        origin=Origin(recipe=recipe),
    )


def _smaller(parts: Parts, size: int | None) -> Parts:
    """The parts with the first rows of the pool only; their order is random."""
    if size is None:
        return parts
    if size < 1:
        raise OptionError(f"unlabeled_size must be at least 1, not {size}.")
    return replace(parts, pool=parts.pool[:size], pool_labels=parts.pool_labels[:size])

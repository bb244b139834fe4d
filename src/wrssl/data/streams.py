"""Named random streams: the same seed and name always give the same numbers, whatever else is drawn."""

from __future__ import annotations

import zlib

import numpy as np

from wrssl.api import OptionError


def check_seed(seed: int) -> int:
    """The seed as a plain int; anything but a whole number ≥ 0 is an ``OptionError``."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise OptionError(f"seed must be a whole number of at least 0, so give for example 0 instead of {seed!r}.")
    return int(seed)


def sequence(seed: int, name: str, *more: int) -> np.random.SeedSequence:
    """What every stream of the package starts from: ``SeedSequence([seed, crc32(name), …])``."""
    return np.random.SeedSequence([check_seed(seed), zlib.crc32(name.encode()), *more])


def stream(seed: int, name: str) -> np.random.Generator:
    """A generator for one purpose.

    Separate streams keep one choice (say, the labelled images) fixed while another one (say, the share of
    foreign images) changes.
    """
    return np.random.default_rng(sequence(seed, name))

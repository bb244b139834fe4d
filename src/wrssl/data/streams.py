"""Named streams of random numbers: the same seed and name always give the same numbers, whatever else is drawn.

Separate streams keep one choice (say, the labeled images) fixed while another one (say, the share of foreign images)
changes. A stream of torch is a function of (seed, name, step) and not of its own history, so a checkpoint needs no
state of it, and two runs that differ in the method still share split, initialization and data order. Nothing here
reads or seeds a global generator.
"""

from __future__ import annotations

import zlib

import numpy as np
import torch

from wrssl.errors import OptionError


def check_seed(seed: int) -> int:
    """The seed as a plain int; anything but a whole number ≥ 0 is an ``OptionError``."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise OptionError(f"seed must be a whole number of at least 0, so give for example 0 instead of {seed!r}.")
    return int(seed)


def sequence(seed: int, name: str, *more: int) -> np.random.SeedSequence:
    """What every stream of the package starts from: ``SeedSequence([seed, crc32(name), …])``."""
    return np.random.SeedSequence([check_seed(seed), zlib.crc32(name.encode()), *more])


def numpy_stream(seed: int, name: str) -> np.random.Generator:
    """NumPy's generator for one purpose."""
    return np.random.default_rng(sequence(seed, name))


def stream_seed(seed: int, name: str, step: int = 0) -> int:
    """A 63-bit seed for one purpose at one step."""
    return int(sequence(seed, name, step).generate_state(1, np.uint64)[0] >> np.uint64(1))


def torch_stream(seed: int, name: str, step: int = 0) -> torch.Generator:
    """Torch's generator, on the CPU, for one purpose at one step."""
    return torch.Generator().manual_seed(stream_seed(seed, name, step))

"""MNIST's ``mean`` images as the paper's published code adds two images up: in eight bits.

Where both images are bright the result is dark (200 and 200 give 72), which no mean of two images would be.
"""

from __future__ import annotations

from wrssl.data.pairs import pairs_of_taken
from wrssl.data.source import Array, Foreign, Parts, Request, register_foreign


@register_foreign("mnist", "mean-wrapped", like="mean")
def mean_wrapped(request: Request, parts: Parts) -> Foreign:
    """The same pairs as ``mean``."""
    return pairs_of_taken("mean-wrapped", request.seed, wrapped_mean_of_two)


def wrapped_mean_of_two(first: Array, second: Array) -> Array:
    """⌊((a + b) mod 256) / 2⌋ of uint8 images."""
    return (first + second) // 2  # numpy's 8-bit sums wrap around

"""Ways of telling a reference sample from a pool: one per file, each ``kind(samples, seed) -> score``.

The scale of a score is the kind's own affair: ``stack.py`` finds out what each score is worth. Adding a kind: one file,
one line in ``KINDS``, one test.
"""

from __future__ import annotations

from wrssl.priors.kinds.energy import energy
from wrssl.priors.kinds.kernel import kernel
from wrssl.priors.kinds.linear import linear
from wrssl.priors.kinds.local import local_kernel
from wrssl.priors.kinds.neighbours import neighbours
from wrssl.priors.kinds.quadratic import quadratic
from wrssl.priors.kinds.trees import trees
from wrssl.priors.samples import Kind

KINDS: dict[str, Kind] = {
    "linear": linear,
    "quadratic": quadratic,
    "kernel": kernel(0.3),
    "kernel-narrow": local_kernel,
    "neighbours": neighbours,
    "energy": energy,
    "trees": trees,
}
DEFAULT = ("linear", "quadratic", "kernel", "kernel-narrow")

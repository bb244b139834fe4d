"""The room loads quickly: numba comes with the first pass through its kernels."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, torch, wrssl
layer = wrssl.WeightedBatchNorm2d(3)
print("numba" in sys.modules)
with wrssl.sample_weights(layer, torch.ones(4)):
    layer(torch.zeros(4, 3, 2, 2))
print("numba" in sys.modules)
"""


def test_a_layer_is_made_without_numba_and_its_kernels_load_it():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]

"""The same networks with faster kernels: convolution, batch norm or none, ReLU and max-pooling as one function.

Nothing here changes what a network computes, only how: ``accelerate`` takes a backbone and gives a second view of it,
with the same parameters and buffers, in which the blocks it recognises run on a matrix product. ``geometry.py`` turns a
convolution into that product, ``kernel.py`` has the arithmetic of a block, ``loops.py`` chooses who runs its inner
loops (``compiled/`` with numba, ``tensors.py`` without), ``function.py`` its derivatives in both modes,
``statistics.py`` what normalises, ``block.py`` the module, ``conditions.py`` when it can run, ``window.py`` the
convolution that is one product, ``fuse.py`` finds them in a network, ``buffers.py`` keeps their memory.
"""

from __future__ import annotations

from wrssl.fast.conditions import constant_parameters
from wrssl.fast.fuse import accelerate

__all__ = ["accelerate", "constant_parameters"]

"""Fast kernels for small convolutional networks on a CPU, behind one function: ``accelerate(backbone, device)``.

Nothing here changes what a network computes, only how: convolution, batch norm or none, ReLU and max-pooling run as one
function. ``accelerate`` finds them in a backbone and returns a module that can be used in its place and that falls back
to its layers wherever the kernels do not apply.

``fuse.py`` has ``accelerate``, ``block.py`` the modules that stand for a chain of layers, ``kernel.py`` the arithmetic
of a block and its derivatives in both modes, ``geometry.py`` how a convolution becomes a matrix product, and the memory
for it, ``loops.py`` the inner loops, compiled by numba.
"""

from __future__ import annotations

from wrssl.fast.fuse import accelerate

__all__ = ["accelerate"]

"""Base SSL methods, one per file; importing this registers them. Methods from outside need no line here."""

from __future__ import annotations

from wrssl.methods.augmentations import gaussian_like, strong, weak, with_noise
from wrssl.registry import METHODS, list_methods, register_method

from wrssl.methods import supervised  # isort: skip
from wrssl.methods import pseudo_label  # isort: skip
from wrssl.methods.pseudo_label import PseudoLabel  # isort: skip
from wrssl.methods import pi_model  # isort: skip
from wrssl.methods import mean_teacher  # isort: skip
from wrssl.methods import vat  # isort: skip
from wrssl.methods import entropy  # isort: skip
from wrssl.methods import uda  # isort: skip
from wrssl.methods import mixmatch  # isort: skip
from wrssl.methods import fixmatch  # isort: skip

__all__ = [
    "METHODS",
    "PseudoLabel",
    "entropy",
    "fixmatch",
    "gaussian_like",
    "list_methods",
    "mean_teacher",
    "mixmatch",
    "pi_model",
    "pseudo_label",
    "register_method",
    "strong",
    "supervised",
    "uda",
    "vat",
    "weak",
    "with_noise",
]

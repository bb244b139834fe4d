"""Networks, and the split of any network into a backbone and its last Linear layer.

``build.py`` makes networks by name, ``networks.py`` and ``wide_resnet.py`` hold those of the package, ``images.py``
what networks for images share, ``rows.py`` the heads for rows of an embedding. ``split.py`` finds the last layer of any
model with the recorded pass of ``trace.py``.
"""

from __future__ import annotations

from wrssl.models.build import build_model, init_default, list_models, outline_model, training_habit
from wrssl.models.images import FitSize, channels_last
from wrssl.models.networks import MLP, LeNet, SmallCNN
from wrssl.models.rows import LinearOnRows, TwoLayerOnRows, UnitRows, set_center
from wrssl.models.split import Split, split
from wrssl.models.trace import undisturbed
from wrssl.models.wide_resnet import WideResNet

__all__ = [
    "MLP",
    "FitSize",
    "LeNet",
    "LinearOnRows",
    "SmallCNN",
    "Split",
    "TwoLayerOnRows",
    "UnitRows",
    "WideResNet",
    "build_model",
    "channels_last",
    "init_default",
    "list_models",
    "outline_model",
    "set_center",
    "split",
    "training_habit",
    "undisturbed",
]

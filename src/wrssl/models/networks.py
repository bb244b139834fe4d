"""The small networks: ``mlp`` for tables, ``lenet`` for images of the MNIST family, ``small_cnn`` for other images."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.models.build import init_default
from wrssl.models.images import FitSize, channels_last
from wrssl.registry import register_model


@register_model("mlp", images=False, init=init_default)
class MLP(nn.Module):
    """A multi-layer perceptron, also the network for the two moons of the paper's Figure 2.

    Linear, batch norm, ReLU, twice, and a Linear head. Images are flattened.

    Args:
        input_shape: shape of one example, ``(F,)`` or ``(C, H, W)``.
        num_classes: number of classes.
        batch_norm: put a batch norm after each hidden Linear layer.
        hidden: width of the two hidden layers.
    """

    def __init__(
        self, input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True, hidden: int = 100
    ) -> None:
        super().__init__()
        self.fc1 = nn.Linear(math.prod(input_shape), hidden)
        self.bn1 = nn.BatchNorm1d(hidden) if batch_norm else nn.Identity()
        self.act1 = nn.ReLU()
        self.fc2 = nn.Linear(hidden, hidden)
        self.bn2 = nn.BatchNorm1d(hidden) if batch_norm else nn.Identity()
        self.act2 = nn.ReLU()
        self.head = nn.Linear(hidden, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        h = self.act1(self.bn1(self.fc1(x.flatten(1))))
        h = self.act2(self.bn2(self.fc2(h)))
        logits: Tensor = self.head(h)
        return logits


@register_model("lenet", images=True, init=init_default)
class LeNet(nn.Module):
    """LeNet-5 as the paper trains it on the MNIST family.

    LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998; with ReLU,
    max-pooling and batch norm in place of the original's squashing functions and trained averages.

    Convolutions 5x5 of 6, 16 and 120 channels, then fully connected 84 and C. The third convolution sees a 5x5 map and
    leaves 1x1: from a 32x32 image directly, from 28x28 with padding 2 in the first convolution, from any other size
    after a bilinear resize to 32x32.

    Args:
        input_shape: ``(channels, height, width)`` of one image.
        num_classes: number of classes.
        batch_norm: put a batch norm after each convolution and after the layer of 84, before the ReLU.
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True) -> None:
        super().__init__()
        channels, height, width = input_shape
        side = 28 if (height, width) == (28, 28) else 32
        self.fit_size = FitSize(side)
        self.conv1 = nn.Conv2d(channels, 6, 5, padding=2 if side == 28 else 0)
        self.bn1 = nn.BatchNorm2d(6) if batch_norm else nn.Identity()
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.bn2 = nn.BatchNorm2d(16) if batch_norm else nn.Identity()
        self.conv3 = nn.Conv2d(16, 120, 5)
        self.bn3 = nn.BatchNorm2d(120) if batch_norm else nn.Identity()
        self.fc = nn.Linear(120, 84)
        self.bn4 = nn.BatchNorm1d(84) if batch_norm else nn.Identity()
        self.head = nn.Linear(84, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        h = F.max_pool2d(F.relu(self.bn1(self.conv1(self.fit_size(x)))), 2)
        h = F.max_pool2d(F.relu(self.bn2(self.conv2(h))), 2)
        h = F.relu(self.bn3(self.conv3(h))).flatten(1)
        h = F.relu(self.bn4(self.fc(h)))
        logits: Tensor = self.head(h)
        return logits


@register_model("small_cnn", images=True, init=init_default)
class SmallCNN(nn.Module):
    """A convolutional network for images of any size, fast enough for a CPU.

    Three blocks (3x3 convolution, batch norm, ReLU) of 16, 32 and 64 channels, global average, Linear.
    Padding keeps the size, and a block is followed by pooling only while the map is at least 4 pixels wide, so
    8x8 images work. Images wider than 32 pixels get a first convolution of stride 2, which quarters the work
    of all that follows. On scikit-learn's 8x8 digits with 10 labels per class (three seeds) average pooling
    was about a point better than maxima, and twice the width one more, but for nearly twice the time.

    Args:
        input_shape: ``(channels, height, width)`` of one image.
        num_classes: number of classes.
        batch_norm: put a batch norm after each convolution.
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, batch_norm: bool = True) -> None:
        super().__init__()
        channels, height, width = input_shape
        stride = 2 if min(height, width) > 32 else 1
        # A batch norm has its own shift: a bias before it would be a direction in which nothing changes.
        bias = not batch_norm
        self.conv1 = nn.Conv2d(channels, 16, 3, stride=stride, padding=1, bias=bias)
        self.bn1 = nn.BatchNorm2d(16) if batch_norm else nn.Identity()
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=bias)
        self.bn2 = nn.BatchNorm2d(32) if batch_norm else nn.Identity()
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1, bias=bias)
        self.bn3 = nn.BatchNorm2d(64) if batch_norm else nn.Identity()
        self.head = nn.Linear(64, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape ``(B, C)``."""
        h = _pool(F.relu(self.bn1(self.conv1(channels_last(x)))))
        h = _pool(F.relu(self.bn2(self.conv2(h))))
        h = F.relu(self.bn3(self.conv3(h))).mean((2, 3))
        logits: Tensor = self.head(h)
        return logits


def _pool(h: Tensor) -> Tensor:
    """Halve the map, unless fewer than 2 pixels would be left."""
    return F.avg_pool2d(h, 2) if min(h.shape[-2:]) >= 4 else h

"""LeNet-5 as the paper trains it on the MNIST family.

LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998; with ReLU,
max-pooling and batch norm in place of the original's squashing functions and trained averages.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from wrssl.models.fit_size import FitSize


class LeNet(nn.Module):
    """Convolutions 5x5 of 6, 16 and 120 channels, then fully connected 84 and C.

    The third convolution sees a 5x5 map and leaves 1x1: from a 32x32 image directly, from 28x28 with padding 2
    in the first convolution, from any other size after a bilinear resize to 32x32.

    Args:
        input_shape: ``(channels, height, width)`` of one image.
        num_classes: number of classes.
        batch_norm: put a batch norm after each convolution and after the layer of 84, before the ReLU.
    """

    def __init__(self, input_shape: tuple[int, int, int], num_classes: int, batch_norm: bool = True) -> None:
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

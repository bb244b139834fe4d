"""Models as users write them, for the tests of the split."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def reset(model: nn.Module, seed: int = 0) -> nn.Module:
    """Fill parameters and buffers from a generator, so that no test depends on the global one."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=g) / max(1, p[0].numel()) ** 0.5)
        for b in model.buffers():
            if b.is_floating_point():
                b.copy_(torch.rand(b.shape, generator=g) + 0.5)
    return model


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """The structure and the names of the common image library's residual networks."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(BasicBlock(8, 8, 1), BasicBlock(8, 8, 1))
        self.layer2 = nn.Sequential(BasicBlock(8, 16, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16, classes)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        return self.fc(torch.flatten(self.avgpool(self.layer2(self.layer1(x))), 1))

    def forward(self, x: Tensor) -> Tensor:
        return self._forward_impl(x)


class Nested(nn.Module):
    """The head sits two levels down and also has a second name; the container uses its training flag."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.top = nn.Module()
        self.top.classifier = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5))
        self.alias = self.top.classifier
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(self.encoder(x) * self.scale, 0.5, self.training)
        return self.alias(h)


class Wrapper(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return self.module(x)


class Shared(nn.Module):
    """One block used twice before the head, as recurrent networks do."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(6, 6)
        self.again = self.step
        self.out = nn.Linear(6, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(torch.tanh(self.again(torch.tanh(self.step(x)))))


class Lambda(nn.Module):
    """``forward = function(self, x)`` with a body of Linear(6, 5) as ``fc``."""

    def __init__(self, function: object) -> None:
        super().__init__()
        self.fc = nn.Linear(6, 5)
        self.function = function

    def forward(self, x: Tensor) -> object:
        return self.function(self, x)  # type: ignore[operator]

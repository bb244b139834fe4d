"""A multi-layer perceptron: the network for tables, and for the two moons of the paper's Figure 2."""

from __future__ import annotations

from torch import Tensor, nn


class MLP(nn.Module):
    """Linear, batch norm, ReLU, twice, and a Linear head. Images are flattened.

    Args:
        num_features: numbers per example, after flattening.
        num_classes: number of classes.
        batch_norm: put a batch norm after each hidden Linear layer.
        hidden: width of the two hidden layers.
    """

    def __init__(self, num_features: int, num_classes: int, batch_norm: bool = True, hidden: int = 100) -> None:
        super().__init__()
        self.fc1 = nn.Linear(num_features, hidden)
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

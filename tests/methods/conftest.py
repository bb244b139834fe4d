"""A small network that writes down its passes, and the same network in NumPy float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from wrssl.api import Augmentation, Context, Pass, RowSources


@pytest.fixture(autouse=True)
def no_test_uses_a_global_generator(global_rng_untouched):
    """Every test of this folder runs with it."""


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def linear(inputs: int, outputs: int, seed: int, scale: float = 1.0) -> nn.Linear:
    """A layer with values of its own generator; torch's constructor would draw from the global one."""
    layer = skip_init(nn.Linear, inputs, outputs, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(scale * normal(outputs, inputs, seed=seed) / inputs**0.5)
        layer.bias.copy_(0.3 * normal(outputs, seed=seed + 1))
    return layer


@dataclass(frozen=True)
class Call:
    """One backbone pass and the network that made it."""

    network: str
    kind: Pass
    inputs: Tensor
    gradient: bool
    mixed: RowSources | None = None


class RecordingNet:
    """The protocol ``Net`` over an ``nn.Sequential`` that ends with its head."""

    weights: Tensor | None = None  # every row counts alike

    def __init__(self, module: nn.Sequential, network: str = "student", calls: list[Call] | None = None) -> None:
        self.module, self.network = module, network
        self.calls: list[Call] = [] if calls is None else calls
        self.moves_statistics = True

    @property
    def head(self) -> nn.Linear:
        return self.module[-1]

    def features(self, x: Tensor, kind: Pass, mixed: RowSources | None = None) -> Tensor:
        self.calls.append(Call(self.network, kind, x.detach().clone(), torch.is_grad_enabled(), mixed))
        return self.module[:-1](x)

    def logits(self, x: Tensor, kind: Pass) -> Tensor:
        return self.head(self.features(x, kind))

    def twin(self, module: nn.Module) -> RecordingNet:
        return RecordingNet(module, "teacher", self.calls)

    def updates(self, kind: Pass) -> bool:
        return self.moves_statistics

    def order(self) -> list[tuple[str, Pass, bool]]:
        return [(c.network, c.kind, c.gradient) for c in self.calls]


class NumpyNet:
    """z = W₂ tanh(W₁ x + b₁) + b₂ and its derivatives, in float64 and without autograd."""

    def __init__(self, module: nn.Sequential) -> None:
        self.W1, self.b1, self.W2, self.b2 = (p.detach().double().numpy().copy() for p in module.parameters())

    def features(self, x: np.ndarray) -> np.ndarray:
        return np.tanh(x @ self.W1.T + self.b1)

    def logits(self, x: np.ndarray) -> np.ndarray:
        return self.features(x) @ self.W2.T + self.b2

    def probabilities(self, x: np.ndarray) -> np.ndarray:
        return softmax(self.logits(x))

    def input_gradient(self, x: np.ndarray, g_z: np.ndarray) -> np.ndarray:
        """dr/dx from dr/dz."""
        return ((g_z @ self.W2) * (1 - self.features(x) ** 2)) @ self.W1

    def parameter_gradients(self, x: np.ndarray, g_z: np.ndarray) -> list[np.ndarray]:
        """dΣr/d(W₁, b₁, W₂, b₂) from dr/dz, with the gradient through this one pass only."""
        h = self.features(x)
        g_a = (g_z @ self.W2) * (1 - h**2)
        return [g_a.T @ x, g_a.sum(0), g_z.T @ h, g_z.sum(0)]


class Shaky:
    """An augmentation that NumPy can repeat: x + 0.2 n is the weak view, 1.3 x − 0.8 n the strong one, n ~ N(0, I)."""

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return x + 0.2 * torch.randn(x.shape, generator=generator, dtype=x.dtype)

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        return 1.3 * x - 0.8 * torch.randn(x.shape, generator=generator, dtype=x.dtype)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def kl(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """KL(p‖q) of each row, with 0 log 0 = 0."""
    ratio = np.where(p > 0, p / q, 1.0)
    return (p * np.log(ratio)).sum(1)


def through_softmax(p: np.ndarray, g_p: np.ndarray) -> np.ndarray:
    """dr/dz from dr/dp."""
    return p * (g_p - (p * g_p).sum(1, keepdims=True))


class Reference:
    """What the tests of this folder compute with."""

    softmax = staticmethod(softmax)
    kl = staticmethod(kl)
    through_softmax = staticmethod(through_softmax)
    Net = NumpyNet
    normal = staticmethod(normal)

    @staticmethod
    def noise(shape: tuple[int, ...], seed: int, draws: int) -> list[np.ndarray]:
        """What a generator with this seed gives in its first draws."""
        generator = torch.Generator().manual_seed(seed)
        return [torch.randn(shape, generator=generator, dtype=torch.float64).numpy() for _ in range(draws)]

    @staticmethod
    def augmented(x: np.ndarray, seed: int, noise: float, kinds: str) -> list[np.ndarray]:
        """What ``Shaky`` and the noise make of x in turn; ``kinds`` is ``"ws"`` for a weak and then a strong view."""
        generator, found = torch.Generator().manual_seed(seed), []
        for kind in kinds:
            n = torch.randn(x.shape, generator=generator, dtype=torch.float64).numpy()
            view = x + 0.2 * n if kind == "w" else 1.3 * x - 0.8 * n
            if noise:
                view = view + noise * torch.randn(x.shape, generator=generator, dtype=torch.float64).numpy()
            found.append(view)
        return found

    @staticmethod
    def slopes(function: Callable[[NumpyNet], float], net: NumpyNet, step: float = 1e-6) -> list[np.ndarray]:
        """The derivatives of a function of the network by its parameters, by central differences."""
        slopes = []
        for parameter in (net.W1, net.b1, net.W2, net.b2):
            slope = np.zeros_like(parameter)
            for place in np.ndindex(parameter.shape):
                kept, values = parameter[place], []
                for change in (step, -step):
                    parameter[place] = kept + change
                    values.append(function(net))
                parameter[place] = kept
                slope[place] = (values[0] - values[1]) / (2 * step)
            slopes.append(slope)
        return slopes

    @staticmethod
    def close(got: Tensor | np.ndarray, want: np.ndarray, tolerance: float = 1e-12) -> None:
        got = got.detach().numpy() if isinstance(got, Tensor) else got
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.fixture
def ref() -> type[Reference]:
    return Reference


@pytest.fixture
def make_net() -> Callable[..., RecordingNet]:
    """A 3-layer network of d inputs and C classes; large ``scale`` makes it confident."""

    def make(seed: int = 0, d: int = 4, C: int = 3, width: int = 6, scale: float = 1.5) -> RecordingNet:
        layers = linear(d, width, seed + 10, scale), nn.Tanh(), linear(width, C, seed + 20, scale)
        return RecordingNet(nn.Sequential(*layers))

    return make


AUGMENT, ATTACK = 101, 202


@pytest.fixture
def make_context() -> Callable[..., Context]:
    """The generators have the seeds 101 (augment) and 202 (attack)."""

    def make(
        step: int = 0,
        noise: float = 0.0,
        epsilon: float = 3.0,
        augmentation: Augmentation | None = None,
        labeled: tuple[Tensor, Tensor] | None = None,
    ) -> Context:
        augment, attack = (torch.Generator().manual_seed(seed) for seed in (AUGMENT, ATTACK))
        return Context(step, 100, augment, attack, noise, epsilon, augmentation, labeled)

    return make


@pytest.fixture
def shaky() -> Shaky:
    return Shaky()


@pytest.fixture
def x() -> Tensor:
    return normal(9, 4, seed=5)


@pytest.fixture
def labeled() -> tuple[Tensor, Tensor]:
    return normal(5, 4, seed=6), torch.tensor([0, 1, 2, 1, 0])

"""The contracts: what a base method, a weighting and a solver provide, and the errors that a user can cause.

Everything else depends on this file, and it on nothing but the errors. ``B`` is the size of the unlabeled batch, ``C``
the number of classes, ``M`` that of members of the pool, ``d`` the width of features. Empty hooks are optional.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from wrssl.errors import DataError, DivergenceError, ModelError, OptionError, WRSSLError  # noqa: F401  (contracts too)

State: TypeAlias = dict[str, Tensor]
Matvec: TypeAlias = Callable[[Tensor], Tensor]
Solver: TypeAlias = Callable[[Matvec, Tensor], Tensor]  # solve(matvec, b) gives x with matvec(x) ≈ b


class Pass(str, Enum):
    """The kinds of backbone pass; a batch-statistics policy (norm/policies.py) says what each one does."""

    LABELED, UNLABELED = "labeled", "unlabeled"  # UNLABELED: the clean pass over the unlabeled batch
    PERTURBED, TEACHER = "perturbed", "teacher"  # PERTURBED: second view, adversarial pass, power iteration
    LOOKAHEAD, EVALUATION, VALIDATION = "lookahead", "evaluation", "validation"  # VALIDATION: for the hypergradient


class RowSources(Protocol):
    """Which members of the batch each row of a pass was made from, where rows are not members (MixMatch)."""

    def weights(self, w: Tensor) -> Tensor: ...  # of the rows, from those of the batch
    def gradient(self, rows: Tensor, w: Tensor) -> Tensor: ...  # by the batch's weights, from that by the rows' weights
    def of_members(self, rows: Tensor, size: int) -> Tensor: ...  # a value per member


class Net(Protocol):
    """The network as a method sees it: backbone passes under the current policy and weights, and the head."""

    @property
    def head(self) -> nn.Linear: ...
    @property
    def module(self) -> nn.Module: ...  # the whole model, head included
    @property
    def weights(self) -> Tensor | None: ...  # of the current unlabeled batch, (B,); None where all are 1
    def features(self, x: Tensor, kind: Pass, mixed: RowSources | None = None) -> Tensor: ...  # (B, d)
    def logits(self, x: Tensor, kind: Pass) -> Tensor: ...  # ``head(features(x, kind))``, (B, C)
    def twin(self, module: nn.Module) -> Net: ...  # the same passes through another copy (a teacher)
    def updates(self, kind: Pass) -> bool: ...  # whether it updates running statistics


class Augmentation(Protocol):
    """Random changes that keep the class of an example; they belong to the data, so every method gets the same."""

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor: ...
    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor: ...


@dataclass(frozen=True)
class Context:
    """What a method may know about the step besides the batch. Randomness comes from these generators only."""

    step: int
    steps: int
    augment: torch.Generator  # of augmentations and noise
    attack: torch.Generator  # of adversarial directions
    noise: float = 0.0  # standard deviation of the input noise that the scenario prescribes
    epsilon: float = 3.0  # length of an adversarial step that the scenario prescribes
    augmentation: Augmentation | None = None
    labeled: tuple[Tensor, Tensor] | None = None  # the labeled batch, for a method with ``mixes_labeled``


@dataclass(frozen=True)
class Views:
    """The result of all backbone passes over one unlabeled batch."""

    inputs: Tensor  # of the pass that carries the gradient; the whole-network hypergradient repeats that pass
    kind: Pass  # of that pass
    features: Tensor  # attached to the graph, (B, d); (R, d) for R mixed rows
    targets: Tensor  # what ``Method.loss`` compares with, detached
    mixed: RowSources | None = None


class Method(ABC):
    """A base method: an unlabeled loss r_j per example, never a mean. ``coef`` is λ, ``lr`` the paper's rate."""

    summary: ClassVar[str]  # one line for ``wrssl methods``
    curvature: str | None = None  # closed form of the loss in logit space (``hypergrad.LOSSES``); None derives it
    uses_unlabeled: ClassVar[bool] = True
    compares_views: ClassVar[bool] = False  # augmented versions of an example; photographs get some embedded then
    mixes_labeled: ClassVar[bool] = False  # ``views`` mixes the labeled batch in, and ``loss`` is the only loss
    coef: float = 1.0
    lr: float = 3e-3

    @abstractmethod
    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """All backbone passes over the unlabeled batch ``x``."""

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r, shape ``(B,)``: pure, no randomness, no state."""

    def setup(self, net: Net) -> None: ...  # once before the first step; Mean Teacher copies the model here
    def after_step(self, net: Net, step: int) -> None: ...  # Mean Teacher updates its teacher here

    def networks(self) -> list[nn.Module]:  # of the method's own, such as a teacher
        return []

    def state_dict(self) -> State:  # tensors that a resumed run needs
        return {}

    def load_state_dict(self, state: State) -> None: ...  # its inverse, called after ``setup``


@dataclass(frozen=True)
class HypergradientRequest:
    """How a weighting wants dL_V/dw to be estimated (Algorithm 2); ``hypergrad.check_request`` checks the values."""

    scope: str = "head"  # "head": the last layer on cached features; "network": all parameters
    solver: str = "neumann"  # a name from ``registry.SOLVERS``
    P: int = 5  # terms of the Neumann series beyond the identity, or iterations of CG
    J: int = 3  # look-ahead steps on a copy of the parameters
    alpha: float | str | None = None  # step of look-ahead and series; None is 1/λmax, "lr" the learning rate
    curvature: str = "gauss-newton"  # or "exact", which for the whole network costs several times more
    damping: float = 0.0  # δ in (H + δI)q = v, as a fraction of λmax
    mixed_at: str = "end"  # the mixed term at θ^J; "start" at θ^0 (the one-step gradient of Lemma 1)
    outer: str = "validation"  # the examples behind L_V; or "labeled", the labeled batch itself
    outer_loss: str = "ce"  # L_V; or "error", the expected error, for the last layer only


@dataclass(frozen=True)
class Signal:
    """What a step tells the weighting about its batch; everything is detached."""

    step: int  # counted from 0
    losses: Tensor  # r_j, (B,)
    probabilities: Tensor  # the softmax of the pass that carries the gradient, (B, C)
    hypergradient: Tensor | None  # dL_V/df_j by the factors f, (B,); None in steps without a request
    reference: tuple[Tensor, Tensor] | None = None  # with ``wants_reference``: which reference examples, softmax


class Rows(Protocol):
    """A table that is read in parts and may be computed only then. A Tensor is one; ``rows[:]`` is all of it."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice | Tensor, /) -> Tensor: ...  # (n, k), float32


@dataclass(frozen=True)
class Pool:
    """What a weighting may know about the unlabeled pool; the truth is not among it (``truth``: oracle only)."""

    size: int  # M
    num_classes: int
    embed: Callable[[str], Rows]  # M rows for "raw", "pca" or "features"
    seed: int
    truth: Tensor | None = None  # is_ood, for a weighting that declares ``wants_truth``
    reference: int = 0  # number of examples that ``Signal.reference`` can name
    embed_known: Callable[[str], Rows] | None = None  # labeled examples, then validation examples that drive weights
    known_labels: Tensor | None = None  # their classes
    embedded: bool = False  # the values are an embedding, and "raw" rows their directions from the pool's mean
    transform: Callable[[str], Callable[[Tensor], Tensor] | None] = lambda kind: None  # None: rows change in training


class BatchWeights:
    """Per member, ``(B,)``: the weight in [0, 1], what multiplies its loss, what it weighs in batch statistics."""

    def __init__(self, weight: Tensor, factor: Tensor | None = None, presence: Tensor | None = None) -> None:
        self.weight = weight
        self.factor = weight if factor is None else factor
        self.presence = weight if presence is None else presence


class VisitRates(NamedTuple):
    """How often members are visited, relative to each other: ``rate`` (M,) in (0, 1], new with each ``version``."""

    rate: Tensor
    version: int


class Weighting(ABC):
    """Gives every pool member a weight in [0, 1]; weights change in ``begin``, ``observe`` and ``update`` only."""

    summary: ClassVar[str]  # one line for ``wrssl methods``
    revision: ClassVar[int] = 1  # raise it when the same options give other weights: old results stay apart
    guarded: ClassVar[bool] = False  # ``fit(fallback=True)`` also trains a plain and a supervised model
    wants_truth: ClassVar[bool] = False  # the oracle
    wants_reference: ClassVar[bool] = False  # ``Signal.reference``, which costs a validation pass per step
    uniform: ClassVar[bool] = False  # every weight is always 1, so weighted batch norm is plain batch norm
    visits: VisitRates | None = None  # None visits all members equally often

    def setup(self, pool: Pool) -> None: ...  # once before the first step
    def begin(self, step: int) -> None: ...  # before each step

    @abstractmethod
    def batch(self, index: Tensor) -> BatchWeights:
        """The current weights of these members; only reads."""

    def request(self, step: int) -> HypergradientRequest | None:  # the hypergradient to estimate in this step
        return None

    def update(self, index: Tensor, signal: Signal) -> None: ...  # learn from one step

    def state_dict(self) -> State:  # tensors that a resumed run needs
        return {}

    def load_state_dict(self, state: State) -> None: ...  # inverse of ``state_dict``, called after ``setup``


class PredictionWeighting(Weighting):
    """A weighting whose weights are a function of losses and predictions; at the end the whole pool is weighed anew."""

    @abstractmethod  # called when the losses of the batch are known, before the hypergradient
    def observe(self, index: Tensor, losses: Tensor, probabilities: Tensor) -> None: ...
    @abstractmethod  # the weights of members with these losses (n,) and predictions (n, C)
    def weigh(self, losses: Tensor, probabilities: Tensor) -> Tensor: ...

"""The contracts: what a base method, a weighting and a solver must provide, and the errors a user can meet.

Everything else in the package depends on this file, and this file depends on nothing in the package.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from wrssl.errors import DataError, DivergenceError, ModelError, OptionError, WRSSLError  # noqa: F401

State: TypeAlias = dict[str, Tensor]


class Pass(str, Enum):
    """The kinds of backbone pass; a batch-statistics policy (norm/policies.py) says what each one does."""

    LABELED = "labeled"
    UNLABELED = "unlabeled"  # the clean pass over the unlabelled batch
    PERTURBED = "perturbed"  # second view, adversarial pass, power iteration
    TEACHER = "teacher"
    LOOKAHEAD = "lookahead"
    VALIDATION = "validation"  # during training, for the hypergradient
    EVALUATION = "evaluation"


class Net(Protocol):
    """What a method sees of the network: backbone passes under the current policy and weights, and the head."""

    @property
    def head(self) -> nn.Linear:
        """The last layer."""

    @property
    def module(self) -> nn.Module:
        """The whole model, head included."""

    @property
    def weights(self) -> Tensor | None:
        """Those of the current unlabelled batch, shape ``(B,)``; None where all count alike."""

    def features(self, x: Tensor, kind: Pass, mixed: Mixed | None = None) -> Tensor:
        """The input of the last layer, shape ``(B, d)``; ``mixed`` where the rows are mixtures of the batch."""

    def logits(self, x: Tensor, kind: Pass) -> Tensor:
        """``head(features(x, kind))``."""

    def twin(self, module: nn.Module) -> Net:
        """The same passes, policy and weights through another copy of the model (a teacher)."""

    def updates(self, kind: Pass) -> bool:
        """Whether a pass of this kind moves the running batch statistics."""


class Augmentation(Protocol):
    """Random changes that leave the class of an example alone: a property of the data, the same for every method."""

    def weak(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """``x`` (B, …) as it might have been recorded as well."""

    def strong(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """``x`` (B, …) distorted as far as a person would still recognise it."""


@dataclass(frozen=True)
class Context:
    """What a method may know about the step besides the batch. Randomness comes from these generators only."""

    step: int
    steps: int
    augment: torch.Generator
    attack: torch.Generator
    noise: float = 0.0  # standard deviation of the input noise that the scenario prescribes
    epsilon: float = 3.0  # length of an adversarial step that the scenario prescribes
    augmentation: Augmentation | None = None  # what the scenario prescribes; None leaves examples as they are
    labeled: tuple[Tensor, Tensor] | None = None  # the labelled batch, for a method with ``mixes_labeled``


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows that were mixed from pairs: row i is share_i · first_i + (1 − share_i) · second_i.

    Weights follow the rows. ``"product"``: w_row = w_first · w_second, so that who has weight 0 is gone, as a source
    and as a partner. ``"linear"``: w_row = share · w_first + (1 − share) · w_second, which leaves an outlier in
    the rows of its partners. A row whose sources are looks at the same example weighs what that weighs.

    Attributes:
        first: places in the unlabelled batch, −1 for a labelled example, whose weight is 1; shape ``(R,)``.
        second: likewise.
        share: of the first, shape ``(R,)``.
        rule: ``"product"`` or ``"linear"``.
    """

    first: Tensor
    second: Tensor
    share: Tensor
    rule: str = "product"

    def weights(self, w: Tensor) -> Tensor:
        """The weights of the rows, ``(R,)``, from those of the batch."""
        one, other = self._sources(w)
        if self.rule == "linear":
            return torch.lerp(other, one, self.share.to(w))
        return torch.where(self.first == self.second, one, one * other)

    def gradient(self, rows: Tensor, w: Tensor) -> Tensor:
        """Derivatives by the weights ``w`` of the batch, from those by the weights of the rows."""
        size, share = len(w), self.share.to(rows)
        first, second = (torch.where(place < 0, size, place) for place in (self.first, self.second))
        if self.rule == "linear":
            parts = share, 1 - share
        else:
            same, (one, other) = first == second, self._sources(w.to(rows))
            parts = torch.where(same, 1.0, other), torch.where(same, 0.0, one)
        total = rows.new_zeros(size + 1)
        return total.index_add(0, first, parts[0] * rows).index_add(0, second, parts[1] * rows)[:size]

    def _sources(self, w: Tensor) -> tuple[Tensor, Tensor]:
        known = torch.cat([w, w.new_ones(1)])  # −1 is the last place
        return known[self.first], known[self.second]

    def of_members(self, rows: Tensor, size: int) -> Tensor:
        """For each member of the batch the mean over the rows in which it comes first; ``rows`` is ``(R, …)``."""
        known = self.first >= 0
        place, values = self.first[known], rows[known]
        total = rows.new_zeros(size, *rows.shape[1:]).index_add(0, place, values)
        count = torch.bincount(place, minlength=size).clamp_min(1).to(rows)
        return total / count.view(-1, *[1] * (rows.dim() - 1))


@dataclass(frozen=True)
class Views:
    """The result of all backbone passes over one unlabelled batch.

    Attributes:
        inputs: what went into the gradient-carrying pass; the whole-network hypergradient repeats it.
        kind: the kind of that pass.
        features: its features, attached to the graph, shape ``(B, d)``, or ``(R, d)`` for R mixed rows.
        targets: what ``Method.loss`` compares with, detached.
        mixed: where the rows come from, if they are not the batch itself.
    """

    inputs: Tensor
    kind: Pass
    features: Tensor
    targets: Tensor
    mixed: Mixed | None = None

    def weights(self, w: Tensor) -> Tensor:
        """The weights of the rows, from those of the batch."""
        return w if self.mixed is None else self.mixed.weights(w)

    def of_members(self, rows: Tensor, size: int) -> Tensor:
        """What is known about rows, as something about the members of the batch."""
        return rows if self.mixed is None else self.mixed.of_members(rows, size)


class Method(ABC):
    """A base SSL method: an unlabelled loss r_j per example, never a mean.

    Attributes:
        summary: one line for ``wrssl methods``.
        curvature: the closed form of the loss in logit space (``hypergrad.zspace``): ``"ce"``, ``"mse"``,
            ``"kl"``, ``"entropy"``, or None to have it derived automatically from ``loss``.
        uses_unlabeled: False for a method that ignores the pool.
        mixes_labeled: True where ``views`` brings the labelled batch (``Context.labeled``) and its loss along; then
            there is no other labelled term.
        coef: λ, the weight of the unlabelled term.
        lr: the learning rate of the paper's table.
    """

    summary: ClassVar[str]
    curvature: str | None = None
    uses_unlabeled: ClassVar[bool] = True
    mixes_labeled: ClassVar[bool] = False
    coef: float = 1.0
    lr: float = 3e-3

    def setup(self, net: Net) -> None:  # noqa: B027  (optional hook)
        """Called once before the first step; Mean Teacher copies the model here."""

    @abstractmethod
    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """All backbone passes over the unlabelled batch ``x``."""

    @abstractmethod
    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r, shape ``(B,)``: pure, no randomness, no state."""

    def after_step(self, net: Net, step: int) -> None:  # noqa: B027  (optional hook)
        """Called after each optimiser step; Mean Teacher moves its teacher here."""

    def companions(self) -> list[nn.Module]:
        """Networks of the method's own, such as a teacher; they are in evaluation mode when the pool is judged."""
        return []

    def state_dict(self) -> State:
        """Tensors that a resumed run needs."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (optional hook)
        """Inverse of ``state_dict``."""


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
    """What a step tells the weighting about its batch; everything is detached.

    Attributes:
        step: the step, counted from 0.
        losses: r_j, shape ``(B,)``.
        probabilities: the softmax of the gradient-carrying pass, shape ``(B, C)``.
        hypergradient: dL_V/df_j for the factors f that multiply the losses, shape ``(B,)``; None in steps where the
            weighting did not ask for it.
        reference: where the weighting asks for it (``wants_reference``), which labelled examples outside of training
            were looked at in this step, and their softmax; without a validation set those of the labelled batch.
    """

    step: int
    losses: Tensor
    probabilities: Tensor
    hypergradient: Tensor | None
    reference: tuple[Tensor, Tensor] | None = None


class Rows(Protocol):
    """A table that is read in parts and may be computed only then. A Tensor is one; ``rows[:]`` is all of it."""

    def __len__(self) -> int:
        """Number of rows."""

    def __getitem__(self, rows: slice | Tensor, /) -> Tensor:
        """These rows, ``(n, k)``, float32."""


@dataclass(frozen=True)
class Pool:
    """What a weighting may know about the unlabelled pool; the truth is not among it.

    Attributes:
        size: number of members M.
        num_classes: C.
        embed: ``embed(kind)`` gives M rows for ``"raw"``, ``"pca"`` or ``"features"``.
        embed_known: the same for the labelled examples, followed by the validation examples that drive the weights.
        known_labels: the classes of those examples.
        seed: for the weighting's own randomness.
        reference: number of examples that ``Signal.reference`` can name.
        truth: is_ood, handed to a weighting that declares ``wants_truth`` (the oracle) and to nobody else.
    """

    size: int
    num_classes: int
    embed: Callable[[str], Rows]
    seed: int
    truth: Tensor | None = None
    reference: int = 0
    embed_known: Callable[[str], Rows] | None = None
    known_labels: Tensor | None = None


class Weighting(ABC):
    """Gives every pool member a weight in [0, 1].

    Attributes:
        summary: one line for ``wrssl methods``.
        wants_truth: True for the oracle only.
        wants_reference: True where ``Signal.reference`` is needed, which costs a validation pass per step.
        uniform: True where every weight is 1 always; weighted batch norm then is plain batch norm.
    """

    summary: ClassVar[str]
    wants_truth: ClassVar[bool] = False
    wants_reference: ClassVar[bool] = False
    uniform: ClassVar[bool] = False

    def setup(self, pool: Pool) -> None:  # noqa: B027  (optional hook)
        """Called once before the first step."""

    def begin_step(self, step: int) -> None:  # noqa: B027  (optional hook)
        """Called before each step; re-clustering happens here."""

    def admission(self) -> Tensor | None:
        """How often each member is visited, relative to the others: numbers in (0, 1], float32, shape ``(M,)``.

        None where all are visited alike. A new tensor, and only that, says that it has changed.
        """
        return None

    def estimator(self, step: int) -> Any:
        """The hypergradient estimator to run in this step, or None where the weighting needs none."""
        return None

    @abstractmethod
    def weights(self, index: Tensor) -> Tensor:
        """The current weights of these members in [0, 1], shape ``(B,)``, detached."""

    def factors(self, index: Tensor) -> Tensor:
        """What multiplies the losses of the current batch: the weights, unless the weighting normalises them."""
        return self.weights(index)

    def presence(self, index: Tensor) -> Tensor:
        """What the members of the current batch count in its statistics: the weights, unless visits follow them."""
        return self.weights(index)

    def observe(self, index: Tensor, losses: Tensor, probabilities: Tensor) -> None:  # noqa: B027  (optional hook)
        """Called when the losses of the batch are known, before the hypergradient; both are detached."""

    def judged(self, losses: Tensor, probabilities: Tensor) -> Tensor | None:
        """The weights of members with these losses and predictions, where they follow from them; else None."""
        return None

    def update(self, index: Tensor, signal: Signal) -> None:  # noqa: B027  (optional hook)
        """Learn from one step."""

    def belonging(self, rows: slice) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Conformal p-value and ood_score of these members, where the weighting knows more than the network does."""
        return None

    def for_newcomers(self) -> Any:
        """A ``priors.newcomers.NewcomerPrior`` that judges examples outside of the pool, or None."""
        return None

    def clusters(self) -> Tensor | None:
        """The cluster of each member, where the weighting has clusters."""
        return None

    def state_dict(self) -> State:
        """Tensors that a resumed run needs."""
        return {}

    def load_state_dict(self, state: State) -> None:  # noqa: B027  (optional hook)
        """Inverse of ``state_dict``."""


class Solver(Protocol):
    """``solve(matvec, b)`` returns x with ``matvec(x) ≈ b`` for a symmetric positive semi-definite matvec."""

    def __call__(self, matvec: Callable[[Tensor], Tensor], b: Tensor) -> Tensor:
        """Solve; ``b`` may have any shape, and ``matvec`` keeps it."""

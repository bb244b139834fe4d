"""One training step, readable on one page.

labelled x_l, y_l ──► backbone ──► h_l
unlabelled x_u ────► method.views ─► h_u, targets            every backbone pass happens once
validation x_v ────► backbone (no gradient, every L steps) ─► h_v

every L steps:  g = hypergradient(head; h_l, y_l; h_u, targets, w; h_v, y_v);  weighting.update(index, g)

loss = CE(head(h_l), y_l) + λ · mean_j(w_j r_j),   r = method.loss(head(h_u), targets)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import Context, Method, Pass, Signal, Views, Weighting
from wrssl.hypergrad import Estimate
from wrssl.training.hypergradient import HypergradientEstimator, LabeledBatch
from wrssl.training.passes import PolicyNet
from wrssl.weighting.weighted_mean import weighted_mean


@dataclass(frozen=True)
class Batch:
    """The data of one step, ready for the network.

    ``held_out`` marks the labelled rows that cross-fitting takes out of the labelled loss in a weight update; where it
    is given, there is no validation batch, and those rows serve as one.
    """

    x_l: Tensor
    y_l: Tensor
    x_u: Tensor
    index: Tensor
    validation: tuple[Tensor, Tensor] | None = None
    held_out: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """What a step reports: detached tensors, so that nothing waits for the device."""

    loss: Tensor
    labeled: Tensor
    unlabeled: Tensor
    mean_weight: Tensor
    estimate: Estimate | None = None


class TrainingStep:
    """Performs steps; owns nothing but references."""

    def __init__(self, net: PolicyNet, method: Method, weighting: Weighting, optimizer: torch.optim.Optimizer) -> None:
        self.net, self.method, self.weighting, self.optimizer = net, method, weighting, optimizer
        self.hypergradient = HypergradientEstimator(net, method)
        self._trained = [p for group in optimizer.param_groups for p in group["params"]]

    def __call__(self, batch: Batch, context: Context) -> Outcome:
        """Forward, weight update where it is due, backward, optimiser step.

        The labelled part goes back through its graph at once, before the pool has its turn: the sum of the gradients is
        the same, and one graph at a time needs half the memory, which then stays in the caches.
        """
        net, method = self.net, self.method
        self.optimizer.zero_grad(set_to_none=True)
        h_l = net.features(batch.x_l, Pass.LABELED)
        labeled = self._labeled_loss(batch, h_l)
        labeled.backward()
        labeled, h_l = labeled.detach(), h_l.detach()
        if not method.uses_unlabeled:
            self._descend(context.step)
            zero = labeled.new_zeros(())
            return Outcome(labeled, labeled, zero, zero)

        w = self.weighting.weights(batch.index).to(h_l)
        net.weights = None if self.weighting.uniform else w
        views = method.views(net, batch.x_u, context)
        logits = net.head(views.features)
        r = method.loss(logits, views.targets)

        estimate = self._update_weights(batch, h_l, views, w, logits, r, context.step)
        if estimate is not None or not self.weighting.uniform:
            w = self.weighting.weights(batch.index).to(r)
        unlabeled = weighted_mean(r, w)
        (method.coef * unlabeled).backward()
        unlabeled = unlabeled.detach()
        self._descend(context.step)
        return Outcome(labeled + method.coef * unlabeled, labeled, unlabeled, w.mean(), estimate)

    def _update_weights(
        self, batch: Batch, h_l: Tensor, views: Views, w: Tensor, logits: Tensor, r: Tensor, step: int
    ) -> Estimate | None:
        options = self.weighting.estimator(step)
        estimate = None
        if options is not None:
            labeled, validation = self._labeled_batches(batch, h_l, options.scope == "head")
            gradient = partial(self._gradient, r, w) if batch.held_out is None else None
            estimate = self.hypergradient(labeled, views, w, validation, options, gradient)
        signal = Signal(step, r.detach(), logits.detach().softmax(1), estimate.gradient if estimate else None)
        self.weighting.update(batch.index, signal)
        return estimate

    def _labeled_loss(self, batch: Batch, h_l: Tensor) -> Tensor:
        if batch.held_out is None:
            return F.cross_entropy(self.net.head(h_l), batch.y_l)
        return F.cross_entropy(self.net.head(h_l[~batch.held_out]), batch.y_l[~batch.held_out])

    def _gradient(self, r: Tensor, w: Tensor) -> Tensor:
        """∇L_T with these weights as one vector: the labelled part is there already, the other goes back once more."""
        with torch.enable_grad():
            loss = self.method.coef * weighted_mean(r, w)
        gradients = torch.autograd.grad(loss, self._trained, retain_graph=True, materialize_grads=True)
        parts = [g if p.grad is None else g + p.grad for p, g in zip(self._trained, gradients, strict=True)]
        return torch.cat([part.reshape(-1) for part in parts])

    def _labeled_batches(self, batch: Batch, h_l: Tensor, needs_features: bool) -> tuple[LabeledBatch, LabeledBatch]:
        """The batches behind L_T and L_V."""
        whole = LabeledBatch(batch.x_l, h_l, batch.y_l)
        if batch.held_out is not None:
            return whole.rows(~batch.held_out), whole.rows(batch.held_out)
        assert batch.validation is not None
        x_v, y_v = batch.validation
        with torch.no_grad():
            h_v = self.net.features(x_v, Pass.VALIDATION) if needs_features else h_l[:0]
        return whole, LabeledBatch(x_v, h_v, y_v)

    def _descend(self, step: int) -> None:
        self.optimizer.step()
        # Torch's fused optimisers change parameters without telling autograd; what is kept per version must know.
        torch.autograd.graph.increment_version(self._trained)
        self.method.after_step(self.net, step)

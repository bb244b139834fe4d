"""One training step, readable on one page.

labelled x_l, y_l ──► backbone ──► h_l
unlabelled x_u ────► method.views ─► h_u, targets            every backbone pass happens once
validation x_v ────► backbone (no gradient, where the weighting asks) ─► h_v

where the weighting asks:  g = hypergradient(head; h_l, y_l; h_u, targets, f; h_v, y_v);  weighting.update(index, g)

loss = CE(head(h_l), y_l) + λ · mean_j(f_j r_j),   r = method.loss(head(h_u), targets),   f = weighting.factors(index)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from wrssl.api import Context, Method, Pass, Signal, Views, Weighting
from wrssl.hypergrad import Estimate
from wrssl.hypergrad.options import HypergradientOptions
from wrssl.training.batch import Batch, LabeledBatch
from wrssl.training.gate import Gate
from wrssl.training.guard import Guard
from wrssl.training.hypergradient import HypergradientEstimator
from wrssl.training.passes import PolicyNet
from wrssl.weighting.weighted_mean import weighted_mean


@dataclass(frozen=True)
class Outcome:
    """What a step reports: detached tensors, so that nothing waits for the device."""

    loss: Tensor
    labeled: Tensor
    unlabeled: Tensor
    mean_weight: Tensor
    estimate: Estimate | None = None
    open: Tensor | None = None  # 1 where the gate let the unlabelled term pass, 0 where not; None without a gate
    skipped: Tensor | None = None  # 1 where loss or gradient were not finite, and the step was not taken


class TrainingStep:
    """Performs steps; owns nothing but references."""

    def __init__(
        self,
        net: PolicyNet,
        method: Method,
        weighting: Weighting,
        optimizer: torch.optim.Optimizer,
        gate: Gate | None = None,
    ) -> None:
        self.net, self.method, self.weighting, self.optimizer, self.gate = net, method, weighting, optimizer, gate
        self.hypergradient = HypergradientEstimator(net, method)
        self.guard = Guard(optimizer, [net.module, *method.companions()])
        self._trained = [p for group in optimizer.param_groups for p in group["params"]]
        head = {id(p) for p in net.head.parameters()}
        self._shared = [p for p in self._trained if id(p) not in head]

    def __call__(self, batch: Batch, context: Context) -> Outcome:
        """Forward, weight update where it is due, backward, optimiser step.

        The labelled part goes back through its graph at once, before the pool has its turn: the sum of the gradients is
        the same, and one graph at a time needs half the memory, which then stays in the caches.
        """
        net, method, index = self.net, self.method, batch.index
        self.optimizer.zero_grad(set_to_none=True)
        self.guard.begin()
        labeled, learned, held_out = self._labeled(batch)
        if not method.uses_unlabeled:
            skipped = self._descend(labeled, context.step)
            zero = labeled.new_zeros(())
            return Outcome(labeled, labeled, zero, zero, skipped=skipped)

        net.weights = None if self.weighting.uniform else self.weighting.presence(index).to(learned.features)
        views = method.views(net, batch.x_u, replace(context, labeled=(learned.x, learned.y)))
        logits = net.head(views.features)
        r = method.loss(logits, views.targets)

        estimate = self._update_weights(batch, learned, held_out, views, logits, r, context.step)
        unlabeled = weighted_mean(r, self._factors(index, views, r))
        term = method.coef * unlabeled
        passing = None if self.gate is None else self.gate(net.head, learned, term)
        if passing is not None:
            term = passing * term
        term.backward()
        whole = labeled + term.detach()
        skipped = self._descend(whole, context.step)
        mean_weight = self.weighting.weights(index).mean()
        return Outcome(whole, labeled, unlabeled.detach(), mean_weight, estimate, passing, skipped)

    def _labeled(self, batch: Batch) -> tuple[Tensor, LabeledBatch, LabeledBatch | None]:
        """The labelled loss, gone back through its graph; the rows that train; those that cross-fitting holds out.

        A method that mixes labelled rows into its own loss gets no other; the pass then moves batch statistics only.
        """
        with torch.set_grad_enabled(not self.method.mixes_labeled):
            whole = LabeledBatch(batch.x_l, self.net.features(batch.x_l, Pass.LABELED), batch.y_l)
        learned = whole if batch.held_out is None else whole.rows(~batch.held_out)
        loss = whole.features.new_zeros(())
        if not self.method.mixes_labeled:
            loss = F.cross_entropy(self.net.head(learned.features), learned.y)
            loss.backward()
        held_out = None if batch.held_out is None else whole.rows(batch.held_out).detach()
        return loss.detach(), learned.detach(), held_out

    def _factors(self, index: Tensor, views: Views, like: Tensor) -> Tensor:
        """What multiplies the loss of each row."""
        return views.weights(self.weighting.factors(index).to(like))

    def _update_weights(
        self,
        batch: Batch,
        learned: LabeledBatch,
        held_out: LabeledBatch | None,
        views: Views,
        logits: Tensor,
        r: Tensor,
        step: int,
    ) -> Estimate | None:
        """Tell the weighting what the batch looks like and, where it asks, how the validation loss depends on it."""
        index, mixed = batch.index, views.mixed
        losses, p = (views.of_members(rows, len(index)) for rows in (r.detach(), logits.detach().softmax(1)))
        losses, p = torch.nan_to_num(losses, 0.0, 0.0, 0.0), _known(p)  # a step that explodes tells nothing
        self.weighting.observe(index, losses, p)
        options: HypergradientOptions | None = self.weighting.estimator(step)
        estimate = gradient = reference = None
        if options is not None:
            outer = held_out if held_out is not None else self._outer(batch, learned, options)
            factors = self._factors(index, views, r)
            alone = held_out is None and self.net.devices.group is None
            known = partial(self._gradient, r, factors) if alone else None
            trained = learned.rows(slice(0)) if self.method.mixes_labeled else learned
            options = options.with_rate(self.optimizer.param_groups[0]["lr"])
            estimate = self.hypergradient(trained, views, factors, outer, options, known)
            gradient = estimate.gradient
            if mixed is not None:
                gradient = mixed.gradient(gradient, self.weighting.factors(index).to(gradient))
        if self.weighting.wants_reference:
            assert batch.reference is not None
            known_rows = learned if batch.validation is None else self._validation(batch)
            with torch.no_grad():
                reference = batch.reference, _known(self.net.head(known_rows.features).softmax(1))
        self.weighting.update(index, Signal(step, losses, p, gradient, reference))
        return estimate

    def _outer(self, batch: Batch, learned: LabeledBatch, options: HypergradientOptions) -> LabeledBatch:
        """The examples behind L_V."""
        if options.outer == "labeled":
            return learned
        return self._validation(batch, options.scope == "head")

    def _validation(self, batch: Batch, needs_features: bool = True) -> LabeledBatch:
        assert batch.validation is not None
        x, y = batch.validation
        with torch.no_grad():
            features = self.net.features(x, Pass.VALIDATION) if needs_features else x.new_empty(0)
        return LabeledBatch(x, features, y)

    def _gradient(self, r: Tensor, factors: Tensor) -> Tensor:
        """∇L_T with these factors as one vector: the labelled part is there already, the other goes back once more."""
        with torch.enable_grad():
            loss = self.method.coef * weighted_mean(r, factors)
        gradients = torch.autograd.grad(loss, self._trained, retain_graph=True, materialize_grads=True)
        parts = [g if p.grad is None else g + p.grad for p, g in zip(self._trained, gradients, strict=True)]
        return torch.cat([part.reshape(-1) for part in parts])

    def _descend(self, loss: Tensor, step: int) -> Tensor:
        group = self.net.devices.group
        if group is not None:  # each process has gone back through its own rows; the head has seen all of them
            group.add_gradients(self._shared)
        skipped = self.guard.step(loss)
        self.method.after_step(self.net, step)
        return skipped


def _known(p: Tensor) -> Tensor:
    """Probabilities, equal ones where the network says none."""
    return torch.nan_to_num(p, 1 / p.shape[1])

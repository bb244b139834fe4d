"""One training step, readable on one page.

labeled x_l, y_l ──► backbone ──► h_l
unlabeled x_u ─────► method.views ─► h_u, targets            every backbone pass happens once
validation x_v ────► backbone (no gradient, where the weighting asks) ─► h_v

where the weighting asks:  g = hypergradient(head; h_l, y_l; h_u, targets, f; h_v, y_v);  weighting.update(index, g)

loss = CE(head(h_l), y_l) + λ · mean_j(f_j r_j),  r = method.loss(head(h_u), targets), f = weighting.batch(index).factor

Beside it: the gate that may leave the pool out of a step, and the guard that refuses a step that explodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from wrssl.api import (
    Context,
    HypergradientRequest,
    Method,
    OptionError,
    Pass,
    PredictionWeighting,
    Signal,
    Views,
    Weighting,
)
from wrssl.hypergrad import Estimate, check_request, with_rate
from wrssl.training.batches import Batch, LabeledBatch
from wrssl.training.hypergradient import HypergradientEstimator, StepRows
from wrssl.training.passes import PolicyNet
from wrssl.weighting import weighted_mean


@dataclass(frozen=True)
class Outcome:
    """What a step reports: detached tensors, so that nothing waits for the device."""

    loss: Tensor
    labeled: Tensor
    unlabeled: Tensor
    mean_weight: Tensor
    estimate: Estimate | None = None
    open: Tensor | None = None  # 1 where the gate admits the unlabeled term, 0 where not; None without a gate
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
        self.hypergradient = HypergradientEstimator(net, method, optimizer.param_groups[0].get("weight_decay", 0.0))
        self.guard = StepGuard(optimizer, [net.module, *method.networks()])
        self._trained = [p for group in optimizer.param_groups for p in group["params"]]
        head = {id(p) for p in net.head.parameters()}
        self._shared = [p for p in self._trained if id(p) not in head]

    def __call__(self, batch: Batch, context: Context, request: HypergradientRequest | None = None) -> Outcome:
        """Forward, weight update where it is due, backward, optimizer step.

        The labeled loss is backpropagated at once, before the passes over the pool: the sum of the gradients is the
        same, and one graph at a time needs half the memory, which then stays in the caches.
        """
        net, method, index = self.net, self.method, batch.index
        self.optimizer.zero_grad(set_to_none=True)
        self.guard.begin()
        labeled, learned, held_out = self._labeled(batch)
        if not method.uses_unlabeled:
            skipped = self._descend(labeled, context.step)
            zero = labeled.new_zeros(())
            return Outcome(labeled, labeled, zero, zero, skipped=skipped)

        presence = None if self.weighting.uniform else self.weighting.batch(index).presence
        net.weights = None if presence is None else presence.to(learned.features)
        views = method.views(net, batch.x_u, replace(context, labeled=(learned.x, learned.y)))
        logits = net.head(views.features)
        r = method.loss(logits, views.targets)

        estimate = self._update_weights(batch, learned, held_out, views, logits, r, context.step, request)
        now = self.weighting.batch(index)
        unlabeled = weighted_mean(r, _of_rows(views, now.factor.to(r)))
        term = method.coef * unlabeled
        admitted = None if self.gate is None else self.gate(net.head, learned, term)
        if admitted is not None:
            term = admitted * term
        term.backward()
        whole = labeled + term.detach()
        skipped = self._descend(whole, context.step)
        return Outcome(whole, labeled, unlabeled.detach(), now.weight.mean(), estimate, admitted, skipped)

    def _labeled(self, batch: Batch) -> tuple[Tensor, LabeledBatch, LabeledBatch | None]:
        """Backpropagate the labeled loss. Returns (loss, training rows, held-out rows).

        A method that mixes labeled rows into its own loss has no other; the pass then only updates batch statistics.
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

    def _update_weights(
        self,
        batch: Batch,
        learned: LabeledBatch,
        held_out: LabeledBatch | None,
        views: Views,
        logits: Tensor,
        r: Tensor,
        step: int,
        request: HypergradientRequest | None,
    ) -> Estimate | None:
        """Tell the weighting its losses and predictions and, where it asks, dL_V/df."""
        index, mixed = batch.index, views.mixed
        losses, p = (of_members(views, rows, len(index)) for rows in (r.detach(), logits.detach().softmax(1)))
        losses, p = torch.nan_to_num(losses, 0.0, 0.0, 0.0), _finite(p)  # a step that explodes tells nothing
        if isinstance(self.weighting, PredictionWeighting):
            self.weighting.observe(index, losses, p)
        estimate = gradient = reference = None
        if request is not None:
            outer = held_out if held_out is not None else self._outer(batch, learned, request)
            of_batch = self.weighting.batch(index).factor.to(r)
            factors = _of_rows(views, of_batch)
            alone = held_out is None and self.net.devices.group is None
            known = partial(self._gradient, r, factors) if alone else None
            trained = learned.rows(slice(0)) if self.method.mixes_labeled else learned
            request = with_rate(check_request(request), self.optimizer.param_groups[0]["lr"])
            estimate = self.hypergradient(StepRows(trained, views, factors, outer), request, known)
            gradient = estimate.gradient
            if mixed is not None:
                gradient = mixed.gradient(gradient, of_batch.to(gradient))
        if self.weighting.wants_reference:
            assert batch.reference is not None
            known_rows = learned if batch.validation is None else self._validation(batch)
            with torch.no_grad():
                reference = batch.reference, _finite(self.net.head(known_rows.features).softmax(1))
        self.weighting.update(index, Signal(step, losses, p, gradient, reference))
        return estimate

    def _outer(self, batch: Batch, learned: LabeledBatch, request: HypergradientRequest) -> LabeledBatch:
        """The examples behind L_V."""
        if request.outer == "labeled":
            return learned
        return self._validation(batch, request.scope == "head")

    def _validation(self, batch: Batch, needs_features: bool = True) -> LabeledBatch:
        assert batch.validation is not None
        x, y = batch.validation
        with torch.no_grad():
            features = self.net.features(x, Pass.VALIDATION) if needs_features else x.new_empty(0)
        return LabeledBatch(x, features, y)

    def _gradient(self, r: Tensor, factors: Tensor) -> Tensor:
        """∇L_T with these factors as one vector: the labeled part is known; the unlabeled part is backpropagated."""
        with torch.enable_grad():
            loss = self.method.coef * weighted_mean(r, factors)
        gradients = torch.autograd.grad(loss, self._trained, retain_graph=True, materialize_grads=True)
        parts = [g if p.grad is None else g + p.grad for p, g in zip(self._trained, gradients, strict=True)]
        return torch.cat([part.reshape(-1) for part in parts])

    def _descend(self, loss: Tensor, step: int) -> Tensor:
        group = self.net.devices.group
        if group is not None:  # each process has backpropagated its own rows; the head has seen all of them
            group.add_gradients(self._shared)
        skipped = self.guard.step(loss)
        self.method.after_step(self.net, step)
        return skipped


def _of_rows(views: Views, values: Tensor) -> Tensor:
    """Weights of the batch as weights of the rows of the views."""
    return values if views.mixed is None else views.mixed.weights(values)


def of_members(views: Views, rows: Tensor, size: int) -> Tensor:
    """Values of the rows of the views as values of the members of the batch."""
    return rows if views.mixed is None else views.mixed.of_members(rows, size)


def _finite(p: Tensor) -> Tensor:
    """Probabilities, equal ones where the network's are NaN."""
    return torch.nan_to_num(p, 1 / p.shape[1])


class Gate:
    """Leaves the pool out of a step in which its gradient opposes that of the labels: 1 admits the term, 0 drops it.

    Fix-A-Step (Huang, Sidhom, Wessler, Hughes, 2023: "Fix-A-Step: Semi-Supervised Learning from Uncurated Unlabeled
    Data"):

        drop λ · mean_j(f_j r_j) where ⟨∇ CE_labeled, ∇ λ mean_j(f_j r_j)⟩ < 0

    Here both gradients are those of the last layer, which are known without another backbone pass. The result is a
    tensor, so that nothing waits for the device.
    """

    def __call__(self, head: nn.Linear, labeled: LabeledBatch, term: Tensor) -> Tensor:
        """Compare the gradient of ``term``, which stays differentiable, with that of the labeled loss."""
        parameters = [p for p in (head.weight, head.bias) if p is not None]
        theirs = torch.autograd.grad(term, parameters, retain_graph=True, materialize_grads=True)
        with torch.no_grad():
            error = head(labeled.features).softmax(1)
            error[torch.arange(len(error)), labeled.y] -= 1
            ours = [error.t() @ labeled.features, error.sum(0)]  # times 1/B, which does not change the sign
            product = sum(((a * b).sum() for a, b in zip(ours, theirs, strict=False)), start=term.new_zeros(()))
            return (product >= 0).to(term.dtype)


def make_gate(name: str | None, method: Method) -> Gate | None:
    """The gate of that name (``FitConfig.gate``); a method without both terms has none."""
    if name is None:
        return None
    if method.mixes_labeled or not method.uses_unlabeled:
        raise OptionError(
            "A gate compares the term of the pool with that of the labels, and this method does not have both; "
            "leave gate=None."
        )
    return Gate()


class StepGuard:
    """Takes the steps of an optimizer whose loss and gradients are finite.

    A loss or a gradient that is not finite (or whose square is not) would spread to every parameter, to the moments of
    the optimizer and to the running statistics, and stay there. Such a step is skipped: parameters, moments and
    statistics are what they were, the weighting gets no losses, and the step is counted. Whether a step is skipped is a
    tensor on the device, which the host reads where it reads the losses anyway (``Tally``).

    Args:
        optimizer: torch's fused ones skip a step by themselves if they are told to; for others the host decides.
        modules: the networks whose running statistics a pass may update.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, modules: Sequence[nn.Module]) -> None:
        self.optimizer = optimizer
        self._skips_itself = bool(getattr(optimizer, "_step_supports_amp_scaling", False))
        self._parameters = [p for group in optimizer.param_groups for p in group["params"]]
        layers = [layer for module in modules for layer in module.modules() if isinstance(layer, _NormBase)]
        found = [buffer for layer in layers for buffer in (layer.running_mean, layer.running_var)]
        self._statistics = [buffer for buffer in found if buffer is not None]
        self._before = [buffer.clone() for buffer in self._statistics]
        self._flag = torch.zeros((), device=self._parameters[0].device)

    def begin(self) -> None:
        """Remember the running statistics, before the first pass of a step."""
        if self._before:
            torch._foreach_copy_(self._before, self._statistics)

    def step(self, loss: Tensor) -> Tensor:
        """Take the step if ``loss`` and all gradients are finite; returns 1 where they are not, else 0."""
        gradients = [p.grad for p in self._parameters if p.grad is not None]
        # A norm overflows where the squares do that Adam keeps, which would then stop a parameter for good.
        sizes = torch.stack([*torch._foreach_norm(gradients), loss.to(gradients[0])])
        broken = sizes.isfinite().all().logical_not().to(self._flag)
        if self._skips_itself:
            self.optimizer.found_inf = broken  # type: ignore[attr-defined]
            self.optimizer.step()
        elif not bool(broken):
            self.optimizer.step()
        skipped = broken.bool()
        for before, now in zip(self._before, self._statistics, strict=True):
            torch.where(skipped, before, now, out=now)
        return broken

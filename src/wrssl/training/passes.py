"""Backbone passes under a batch-statistics policy: what methods see of the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from wrssl.api import Mixed, Pass
from wrssl.models import Split
from wrssl.norm import Part, Source, count_weights, policy_table, statistics, weighted_layers
from wrssl.parallel import Devices, spread

TRAINING_PASSES = (Pass.LABELED, Pass.UNLABELED, Pass.PERTURBED, Pass.TEACHER)


class PolicyNet:
    """Runs each kind of pass with the statistics that the policy prescribes for it, and counts the images.

    Args:
        parts: the model, split into backbone and head.
        policy: ``batch``, ``frozen``, ``eval`` or ``weighted``.
        prepare: makes the backbone that runs from the one that was split off, here and for twins; None keeps it.
    """

    def __init__(self, parts: Split, policy: str, prepare: Callable[[nn.Module], nn.Module] | None = None) -> None:
        self.prepare = prepare
        self.parts = parts if prepare is None else replace(parts, backbone=prepare(parts.backbone))
        self.policy, self.table = policy, policy_table(policy)
        self.layers = weighted_layers(parts.model)
        # Backbone and head as one module, for evaluation: its modes can be switched like those of any model.
        self.joined = nn.Sequential(self.parts.backbone, self.parts.head)
        in_backbone = {id(p) for p in self.parts.backbone.parameters()}
        self._tied = any(id(p) in in_backbone for p in self.parts.head.parameters())
        self.weights = None
        self.images: Counter[Pass] = Counter()
        self.devices = Devices()
        self._twins: dict[int, PolicyNet] = {}

    def use(self, devices: Devices) -> None:
        """Compute the passes there."""
        self.devices = devices
        for twin in self._twins.values():
            twin.use(devices)

    @property
    def weights(self) -> Tensor | None:
        """Those of the current unlabelled batch, set before its passes; None where all count alike."""
        return self._weights

    @weights.setter
    def weights(self, w: Tensor | None) -> None:
        self._weights = w
        # Counted once for all passes over the batch.
        self._counts = count_weights(w) if w is not None and self.policy == "weighted" else None

    @property
    def head(self) -> nn.Linear:
        """The last layer."""
        return self.parts.head

    @property
    def module(self) -> nn.Module:
        """The whole model."""
        return self.parts.model

    def features(self, x: Tensor, kind: Pass, mixed: Mixed | None = None) -> Tensor:
        """The input of the last layer, shape (B, d)."""
        self.images[kind] += len(x)
        source, updates = self.table[kind]
        counts = self._counts if mixed is None and source is Source.WEIGHTED else None
        weights = self.weights_of(mixed)

        def run(rows: Tensor, part: Part | None) -> Tensor:
            with statistics(self.layers, source, updates, weights, counts, part), self.devices.autocast():
                features: Tensor = self.parts.backbone(rows)
            return features.to(self.head.weight.dtype)  # whatever the backbone computes in, the rest does not

        group = self.devices.group
        return run(x, None) if group is None else spread(group, x, run)

    def weights_of(self, mixed: Mixed | None) -> Tensor | None:
        """The weights of the rows of a pass over the pool; None where all count alike."""
        return self.weights if mixed is None or self.weights is None else mixed.weights(self.weights)

    def logits(self, x: Tensor, kind: Pass) -> Tensor:
        """``head(features(x, kind))``."""
        logits: Tensor = self.head(self.features(x, kind))
        return logits

    def call(self, parameters: dict[str, Tensor], x: Tensor, plain: bool = False) -> Tensor:
        """The logits of ``x`` with other parameters; which statistics count is up to the caller.

        Args:
            parameters: by their names in the model.
            x: inputs.
            plain: by the model itself, whose layers can be differentiated twice.
        """
        names = [f"{self.parts.head_name}.weight".lstrip("."), f"{self.parts.head_name}.bias".lstrip(".")]
        if plain or self._tied or names[0] not in parameters:
            output: Tensor = functional_call(self.module, parameters, (x,))
            return output
        body = {name: value for name, value in parameters.items() if name not in names}
        features: Tensor = functional_call(self.parts.backbone, body, (x,))
        return F.linear(features, parameters[names[0]], parameters.get(names[1]))

    def updates(self, kind: Pass) -> bool:
        """Whether a pass of this kind moves the running statistics."""
        return self.table[kind][1]

    def twin(self, module: nn.Module) -> PolicyNet:
        """The same policy, weights and counters over another copy of the model."""
        twin = self._twins.get(id(module))
        if twin is None or twin.module is not module:
            twin = self._twins[id(module)] = PolicyNet(self.parts.twin(module), self.policy, self.prepare)
            twin.images = self.images
            twin.use(self.devices)
        twin.weights = self.weights
        return twin

    def images_forwarded(self) -> int:
        """Images of the passes that training itself needs; equal for every weighting."""
        return sum(self.images[kind] for kind in TRAINING_PASSES)

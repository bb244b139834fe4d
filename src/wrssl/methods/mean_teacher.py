"""Mean Teacher (Tarvainen & Valpola, 2017: "Mean teachers are better role models")."""

from __future__ import annotations

import copy
from typing import ClassVar

import torch
from torch import Tensor, nn

from wrssl.api import Context, Method, Net, Pass, State, Views
from wrssl.hypergrad import LOSSES
from wrssl.methods.augmentations import weak
from wrssl.registry import register_method


@register_method("mt")
class MeanTeacher(Method):
    """The student agrees with an exponential average of itself.

        r_j = (1/C) ‖p(x'_j; θ) − sg p(x''_j; θ')‖²,   x', x'': weak views of x
        θ' ← a θ' + (1 − a) θ after each step t = 0, 1, …,   a = min(1 − 1/(t + 1), decay)

    Augmentation and noise of N(0, σ²) belong to the scenario. Parameters are averaged. The
    teacher's batch-norm statistics are updated by its own passes; where the policy updates none of them (``frozen``,
    ``eval``), they are averaged like the parameters, since they would stay at their initial values. The student is
    what gets evaluated.
    """

    summary: ClassVar[str] = "the student agrees with its own moving average"
    compares_views: ClassVar[bool] = True
    curvature = "mse"

    def __init__(self, decay: float = 0.95, coef: float = 8.0, lr: float = 4e-4) -> None:
        self.decay, self.coef, self.lr = decay, coef, lr
        self.teacher: nn.Module | None = None

    def setup(self, net: Net) -> None:
        """The teacher starts as a copy of the student."""
        # In training mode whatever mode the student arrives in: the policy decides about its statistics.
        self.teacher = copy.deepcopy(net.module).requires_grad_(False).train()

    def views(self, net: Net, x: Tensor, context: Context) -> Views:
        """The student's pass, then the teacher's on another view."""
        assert self.teacher is not None, "setup comes first"
        inputs = weak(x, context)
        features = net.features(inputs, Pass.UNLABELED)
        with torch.no_grad():
            targets = net.twin(self.teacher).logits(weak(x, context), Pass.TEACHER).softmax(1)
        return Views(inputs, Pass.UNLABELED, features, targets)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """r_j = (1/C) ‖p_j − t_j‖²."""
        return LOSSES["mse"].value(logits, targets)

    @torch.no_grad()
    def after_step(self, net: Net, step: int) -> None:
        """θ' ← a θ' + (1 − a) θ."""
        assert self.teacher is not None, "setup comes first"
        a = min(1 - 1 / (step + 1), self.decay)
        theirs: list[Tensor] = list(self.teacher.parameters())
        mine: list[Tensor] = list(net.module.parameters())
        if not net.updates(Pass.TEACHER):
            theirs, mine = [*theirs, *self.teacher.buffers()], [*mine, *net.module.buffers()]
        for teacher, student in zip(theirs, mine, strict=True):
            if teacher.is_floating_point():
                teacher.lerp_(student, 1 - a)

    def networks(self) -> list[nn.Module]:
        """The teacher."""
        return [] if self.teacher is None else [self.teacher]

    def state_dict(self) -> State:
        """The teacher's parameters and buffers."""
        return {} if self.teacher is None else dict(self.teacher.state_dict())

    def load_state_dict(self, state: State) -> None:
        """Inverse of ``state_dict``; ``setup`` comes first."""
        assert self.teacher is not None, "setup comes first"
        self.teacher.load_state_dict(state)

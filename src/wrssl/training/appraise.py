"""The weights at the end of training where they follow from what the network says: the whole pool is judged anew."""

from __future__ import annotations

from collections import Counter

import numpy as np
import torch
from numpy.typing import NDArray

from wrssl.api import Context, Weighting
from wrssl.data import prepare
from wrssl.progress import slices
from wrssl.training.loop import Trainer
from wrssl.training.randomness import stream


def judges_anew(weighting: Weighting) -> bool:
    """Whether the weighting can judge a member without having visited it."""
    return type(weighting).judged is not Weighting.judged


def appraise(trainer: Trainer) -> NDArray[np.float64]:
    """The weight of every pool member by its loss and prediction in evaluation mode, with the method's own passes."""
    net, method, data, plan = trainer.net, trainer.method, trainer.data, trainer.plan
    x, y = data.labeled
    known = prepare(x[: plan.batch_size]).to(trainer.device), y[: plan.batch_size].to(trainer.device)
    weights, images = np.empty(len(data.unlabeled)), Counter(net.images)
    net.weights = None
    net.parts.eval()
    for companion in method.companions():
        companion.eval()
    for rows in slices(len(data.unlabeled), plan.batch_size, "weighing the pool"):
        looks, attack = (stream(plan.seed, f"appraisal {kind}", rows.start) for kind in ("looks", "attack"))
        context = Context(plan.steps, plan.steps, looks, attack, data.noise, data.epsilon, data.augmentation, known)
        views = method.views(net, prepare(data.unlabeled[rows]).to(trainer.device), context)
        with torch.no_grad():
            logits = net.head(views.features)
            said = method.loss(logits, views.targets), logits.softmax(1)
            judged = trainer.weighting.judged(*(views.of_members(part, rows.stop - rows.start) for part in said))
        assert judged is not None
        weights[rows] = judged.cpu().numpy()
    for companion in method.companions():
        companion.train()
    # What is counted are the passes that training needed.
    net.images.clear()
    net.images.update(images)
    return weights

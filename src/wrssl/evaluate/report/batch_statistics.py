"""How far the pool is from known examples at the input of each batch-norm layer, with and without the weights.

For the input of a layer, with mean μ_c and variance σ²_c per channel of the known rows (K) and of the pool (P),

    distance of means       √( mean_c (μ_c(P) − μ_c(K))² / (σ²_c(K) + ε) )          in standard deviations
    factor of variances     exp √( mean_c ln²( (σ²_c(P) + ε) / (σ²_c(K) + ε) ) )     1 where they are equal

for the pool as it is and for the pool weighted by its final weights. Few rows differ by chance: the same numbers for
two halves of the known rows say by how much. All layers run in evaluation mode, so that only the rows differ.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wrssl.data import Scenario
from wrssl.evaluate.inference import CHUNK, logits_of
from wrssl.evaluate.report.pool import evenly

POOL_ROWS, KNOWN_ROWS = 1_000, 500
Moments = dict[str, tuple[Tensor, Tensor]]


def compare_statistics(scenario: Scenario, model: nn.Module, weight: Tensor) -> dict[str, Any] | None:
    """A row per layer with the numbers above; None for a model without batch norm.

    Args:
        scenario: the data; the known rows are the validation set, or the labeled rows where there is none.
        model: whose layers.
        weight: of each pool member, (M,).
    """
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, _BatchNorm)}
    if not layers:
        return None
    part = "labeled" if scenario.validation is None else "validation"
    known = getattr(scenario, part)[0]
    rows, members = (
        torch.from_numpy(evenly(len(x), n)) for x, n in ((known, KNOWN_ROWS), (scenario.unlabeled, POOL_ROWS))
    )
    ones, parity = torch.ones(len(rows)), torch.arange(len(rows)) % 2
    of_known = moments(model, layers, known[rows], torch.stack([ones, parity.float(), 1.0 - parity]))
    w = torch.stack([torch.ones(len(members)), weight[members].float()])
    of_pool = moments(model, layers, scenario.unlabeled[members], w)
    table = []
    for name, (mean, variance) in of_known.items():
        if name in of_pool:
            eps = layers[name].eps
            scale = variance[0] + eps
            pool_mean, pool_variance = of_pool[name]
            pairs = {"halves": (mean[1], variance[1], mean[2], variance[2])}
            pairs |= {
                word: (pool_mean[k], pool_variance[k], mean[0], variance[0])
                for k, word in enumerate(("plain", "weighted"))
            }
            row: dict[str, Any] = {"layer": name, "channels": len(scale)}
            for word, (m, v, m0, v0) in pairs.items():
                row[f"mean_{word}"] = _number(((m - m0).square() / scale).mean().sqrt())
                row[f"variance_{word}"] = _number(((v + eps) / (v0 + eps)).log().square().mean().sqrt().exp())
            table.append(row)
    return {"part": part, "known": len(rows), "members": len(members), "layers": table} if table else None


def moments(model: nn.Module, layers: dict[str, Any], rows: Tensor, weights: Tensor) -> Moments:
    """Mean and variance per channel of each layer's input, (G, C) each, for G ways to weigh the rows, (G, N).

    NaN where all weights are 0. A layer whose input has another first dimension than the batch is left out.
    """
    sums: dict[str, list[Tensor]] = {}
    other: set[str] = set()  # layers that are left out
    w = weights[:, :0]  # of the rows of the current pass

    def listen(name: str, layer: _BatchNorm) -> Any:
        def add(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            x = inputs[0].detach()
            if x.dim() < 2 or x.shape[0] != w.shape[1]:
                other.add(name)
                return
            values = x.double().flatten(2) if x.dim() > 2 else x.double().unsqueeze(2)
            # Around the running mean, so that the difference of squares below keeps its digits.
            values = values - (0.0 if layer.running_mean is None else layer.running_mean.double().view(1, -1, 1))
            weight = w.double().to(values.device)
            new = [weight.sum(1, keepdim=True), weight @ values.mean(2), weight @ values.square().mean(2)]
            sums[name] = new if name not in sums else [a + b for a, b in zip(sums[name], new, strict=True)]

        return layer.register_forward_pre_hook(add)

    handles = [listen(name, layer) for name, layer in layers.items()]
    try:
        for start in range(0, len(rows), CHUNK):
            w = weights[:, start : start + CHUNK]
            logits_of(model, rows[start : start + CHUNK])  # one pass, since the chunk has the size of one
    finally:
        for handle in handles:
            handle.remove()
    found: Moments = {}
    for name, (total, first, second) in sums.items():
        if name not in other:
            mean, running = first / total, layers[name].running_mean
            variance = (second / total - mean.square()).clamp_min(0)
            found[name] = (mean + (0.0 if running is None else running.double())).cpu(), variance.cpu()
    return found


def _number(value: Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None

"""How far the pool is from known examples where batch norm looks: per layer, with and without the weights.

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
from wrssl.evaluate.infer import CHUNK, logits_of
from wrssl.evaluate.report.selection import evenly

POOL_ROWS, KNOWN_ROWS = 1_000, 500
Moments = dict[str, tuple[Tensor, Tensor]]


def compare(scenario: Scenario, model: nn.Module, weight: Tensor) -> dict[str, Any] | None:
    """The table; None for a model without batch norm.

    Args:
        scenario: the data; the known rows are the validation set, or the labelled rows where there is none.
        model: whose layers.
        weight: of each pool member.
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
    """Mean and variance per channel of what each layer gets, (G, C) each, for G ways to weigh the rows, (G, N).

    NaN where nobody counts. A layer whose input has another first dimension than the batch is left out.
    """
    sums: dict[str, list[Tensor]] = {}
    odd: set[str] = set()
    now = weights[:, :0]

    def listen(name: str, layer: _BatchNorm) -> Any:
        def look(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            x = inputs[0].detach()
            if x.dim() < 2 or x.shape[0] != now.shape[1]:
                odd.add(name)
                return
            values = x.double().flatten(2) if x.dim() > 2 else x.double().unsqueeze(2)
            # Around the running mean, so that the difference of squares below keeps its digits.
            values = values - (0.0 if layer.running_mean is None else layer.running_mean.double().view(1, -1, 1))
            w = now.double().to(values.device)
            new = [w.sum(1, keepdim=True), w @ values.mean(2), w @ values.square().mean(2)]
            sums[name] = new if name not in sums else [a + b for a, b in zip(sums[name], new, strict=True)]

        return layer.register_forward_pre_hook(look)

    handles = [listen(name, layer) for name, layer in layers.items()]
    try:
        for start in range(0, len(rows), CHUNK):
            now = weights[:, start : start + CHUNK]
            logits_of(model, rows[start : start + CHUNK])  # one pass: a chunk of its own size
    finally:
        for handle in handles:
            handle.remove()
    found: Moments = {}
    for name, (total, first, second) in sums.items():
        if name not in odd:
            mean, running = first / total, layers[name].running_mean
            variance = (second / total - mean.square()).clamp_min(0)
            found[name] = (mean + (0.0 if running is None else running.double())).cpu(), variance.cpu()
    return found


def _number(value: Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None

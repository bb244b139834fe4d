"""Run by two processes: trains every pair alone and together, and prints how far apart the two are."""

from __future__ import annotations

import json
import sys

import torch

import wrssl
from wrssl.parallel import launch

STEPS = 6
PAIRS = [
    ("pl", "wr-cluster", {}), ("mt", "wr", {}), ("pi", "wr-instance", {}), ("vat", "wr-cluster", {}),
    ("pi", "l2rw", {}), ("pi", "mwn", {}), ("pi", "ds3l", {}), ("pi", "uasd", {}), ("mixmatch", "wr-cluster", {}),
    ("fixmatch", "wr-cluster", {"scope": "network", "L": 2}), ("supervised", "none", {}),
]  # fmt: skip


def trained(scenario, method, weights, options, devices):
    """Losses and mean weights of all steps, and the model and the weights that ``fit`` returns."""
    result = wrssl.fit(
        scenario, method=method, weights=weights, weight_options=options, steps=STEPS, devices=devices, device="cpu",
        batch_size=21, threads=1, fast=False, fallback=False, progress=False,  # 21: parts of 10 and 11 rows
    )  # fmt: skip
    assert len(result.history) == STEPS
    return {
        "losses": torch.tensor(result.history["loss"].tolist()),
        "mean weights": torch.tensor(result.history["mean_weight"].tolist()).nan_to_num(),  # NaN without a pool
        "parameters": torch.cat([p.detach().reshape(-1) for p in result.model.parameters()]),
        "buffers": torch.cat([b.float().reshape(-1) for b in result.model.buffers()]),
        "weights": torch.as_tensor(result.weights).float(),
    }


def main():
    torch.set_num_threads(1)
    scenario = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    devices = launch(2, "ddp", "32-true", "cpu")
    report = {}
    for method, weights, options in PAIRS:
        alone = trained(scenario, method, weights, options, 1)
        shared = trained(scenario, method, weights, options, 2)
        others = devices.group.from_leader(shared)
        report[f"{method} {weights} {options.get('scope', 'head')}"] = {
            name: {
                "apart": float((shared[name] - alone[name]).abs().max()),
                "moved": float((alone[name] - alone[name].mean()).abs().max()),
                "same": torch.equal(others[name], shared[name]),
            }
            for name in alone
        }
    if not devices.lead:  # it has got the leader's tensors, so it can say whether the two are the same
        print(json.dumps(report), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

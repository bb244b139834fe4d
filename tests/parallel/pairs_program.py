"""Run by two processes: trains every pair alone and together, and prints how far apart the two are."""

from __future__ import annotations

import json
import sys

import torch

import wrssl
from wrssl.parallel import Devices, launch
from wrssl.training.candidate import Workshop
from wrssl.training.data import TrainingData

STEPS = 6
PAIRS = [
    ("pl", "wr-cluster", {}), ("mt", "wr", {}), ("pi", "wr-instance", {}), ("vat", "wr-cluster", {}),
    ("pi", "l2rw", {}), ("pi", "mwn", {}), ("pi", "ds3l", {}), ("pi", "uasd", {}), ("mixmatch", "wr-cluster", {}),
    ("fixmatch", "wr-cluster", {"scope": "network", "L": 2}), ("supervised", "none", {}),
]  # fmt: skip


def trained(scenario, method, weights, options, devices):
    """Losses, parameters, buffers and weights after some steps."""
    data = TrainingData.of(scenario, 0, "halves")
    shop = Workshop(scenario, data, "auto", None, 0, 21, None, torch.device("cpu"), False)  # 21: parts of 10 and 11
    candidate = shop.build(method, None, weights, options, "weighted")
    candidate.net.use(devices)
    candidate.look_at_the_pool()
    trainer = candidate.trainer(STEPS)
    losses = torch.tensor([float(trainer.step(step).loss) for step in range(STEPS)])
    parameters = torch.cat([p.detach().reshape(-1) for p in trainer.net.module.parameters()])
    buffers = torch.cat([b.float().reshape(-1) for b in trainer.net.module.buffers()])
    used = trainer.method.uses_unlabeled
    given = trainer.weighting.weights(torch.arange(200)).float() if used else torch.zeros(1)
    return {"losses": losses, "parameters": parameters, "buffers": buffers, "weights": given}


def main():
    torch.set_num_threads(1)
    scenario = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    devices = launch(2, "ddp", "32-true", "cpu")
    report = {}
    for method, weights, options in PAIRS:
        alone = trained(scenario, method, weights, options, Devices())
        shared = trained(scenario, method, weights, options, devices)
        others = devices.group.from_leader(shared)
        report[f"{method} {weights} {options.get('scope', 'head')}"] = {
            name: {
                "apart": float((shared[name] - alone[name]).abs().max()),
                "moved": float((alone[name] - alone[name].mean()).abs().max()),
                "same": torch.equal(others[name], shared[name]),
            }
            for name in alone
        }
    if not devices.lead:  # the one that was told: it can say whether the two are the same
        print(json.dumps(report), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

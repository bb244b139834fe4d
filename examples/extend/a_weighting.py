"""A weighting from outside the package: members whose loss was low at their last visit count more."""

import torch

import wrssl
from wrssl.api import BatchWeights, Weighting


@wrssl.register_weighting("small-loss")
class SmallLoss(Weighting):
    summary = "members with a loss above the batch's median count less"
    guarded = True  # fit also trains a plain and a supervised model, and returns the best of the three

    def __init__(self, rate: float = 0.3) -> None:
        self.rate = rate

    def setup(self, pool):
        self.table = torch.ones(pool.size)

    def batch(self, index):
        return BatchWeights(self.table[index])

    def update(self, index, signal):
        above = (signal.losses > signal.losses.median()).float()
        self.table[index] = (1 - self.rate) * self.table[index] + self.rate * (1 - above)

    def state_dict(self):
        return {"table": self.table}

    def load_state_dict(self, state):
        self.table = state["table"].clone()


if __name__ == "__main__":
    scn = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    res = wrssl.fit(scn, weights="small-loss", steps=200, seed=0)
    print(f"returned: {res.metrics['chosen']}, test accuracy {res.metrics['test_accuracy']:.3f}")

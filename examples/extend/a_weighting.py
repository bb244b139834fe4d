"""A weighting from outside the package: members whose predictions agree from visit to visit count more."""

import torch

import wrssl
from wrssl.api import BatchWeights, Weighting


@wrssl.register_weighting("steady")
class Steady(Weighting):
    """w_j = max_c m_jc with m_j ← (1 − rate) m_j + rate p_j at each visit: a mean of unequal predictions is unsure."""

    summary = "members whose predictions agree from visit to visit"
    guarded = True  # fit also trains a plain and a supervised model, and returns the best of the three
    revision = 1  # raise it when the same options give other weights: `wrssl reproduce` keeps results apart by it

    def __init__(self, rate: float = 0.3) -> None:
        self.rate = rate

    def setup(self, pool):  # once, before the first step
        self.mean = torch.ones(pool.size, pool.num_classes)  # weight 1 up to the first visit

    def batch(self, index):  # only reads
        return BatchWeights(self.mean[index].amax(1))

    def update(self, index, signal):  # after each step
        self.mean[index] += self.rate * (signal.probabilities.cpu() - self.mean[index])

    def state_dict(self):  # all that a resumed run needs
        return {"mean": self.mean}

    def load_state_dict(self, state):
        self.mean = state["mean"].clone()


if __name__ == "__main__":
    scn = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    res = wrssl.fit(scn, method="pl", weights="steady", steps=100, seed=0)
    print(f"returned: {res.metrics['chosen']}, test accuracy {res.metrics['test_accuracy']:.3f}")
    print(f"AUROC of the weights {res.metrics['weight_auroc']:.3f}")

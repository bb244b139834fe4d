"""A base method from outside the package: the prediction on one view agrees with the average of two others."""

import torch

import wrssl
from wrssl.api import Method, Pass, Views
from wrssl.methods import weak


@wrssl.register_method("committee")
class Committee(Method):
    """q_j = sharpen((p(x'_j) + p(x''_j)) / 2),   r_j = −Σ_c q_jc log p_jc(x'''_j),   sharpen(p)_c ∝ p_c^(1/T)."""

    summary = "a view agrees with the average of two others"
    curvature = "ce"  # closed forms exist for the hypergradient of this loss; None derives them

    def __init__(self, T: float = 0.5, coef: float = 1.0, lr: float = 3e-3) -> None:
        self.T, self.coef, self.lr = T, coef, lr

    def views(self, net, x, context):  # every backbone pass over the batch; weak() draws from context's generators
        with torch.no_grad():
            first = net.logits(weak(x, context), Pass.UNLABELED).softmax(1)
            second = net.logits(weak(x, context), Pass.PERTURBED).softmax(1)
            q = ((first + second) / 2) ** (1 / self.T)
        inputs = weak(x, context)
        return Views(inputs, Pass.PERTURBED, net.features(inputs, Pass.PERTURBED), q / q.sum(1, keepdim=True))

    def loss(self, logits, targets):  # r, (B,): one number per example, never a mean, nothing random
        return -(targets * logits.log_softmax(1)).sum(1)


if __name__ == "__main__":
    scn = wrssl.load_scenario("moons", ood="faraway", ratio=0.5, seed=0)
    res = wrssl.fit(scn, method="committee", steps=100, seed=0, method_options={"T": 0.4})
    print(f"test accuracy {res.metrics['test_accuracy']:.3f}")

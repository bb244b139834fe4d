"""A plain PyTorch loop made robust: the lines that end in ``# +`` are all that was added.

Half of the pool are patches of photographs. The same loop runs twice, without and with those lines.
"""

import torch
import torch.nn.functional as F
from torch import nn

import wrssl
from wrssl.hypergrad import head_hypergradient
from wrssl.priors import fit_prior

STEPS, BATCH = 300, 64
data = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
y, yv, yt = (labels for _, labels in (data.labeled, data.validation, data.test))
parts = (data.labeled[0], data.validation[0], data.test[0], data.unlabeled)
x, xv, xt, pool = (part.float() / 127.5 - 1 for part in parts)  # bytes to [-1, 1]


def train(robust: bool) -> float:
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 64))
    backbone = nn.Sequential(*backbone, nn.BatchNorm1d(64), nn.ReLU())
    head = nn.Linear(64, 10)
    w = torch.ones(len(pool))
    if robust:
        backbone = wrssl.convert_batchnorm(backbone)  # +
        prior = fit_prior(x.flatten(1), y.numpy(), pool.flatten(1), seed=0)  # +
        w = torch.from_numpy(prior.weight(slice(None))).float()  # +
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=3e-3)
    for step in range(STEPS):
        i, j, k = (torch.randint(len(part), (BATCH,)) for part in (x, pool, xv))
        h_l = backbone(x[i])
        with wrssl.sample_weights(backbone, w[j]) if robust else torch.enable_grad():  # +
            h_u = backbone(pool[j])
        logits = head(h_u)
        if robust and step % 5 == 0:  # +
            h_v = backbone.eval()(xv[k])  # +
            backbone.train()  # +
            g = head_hypergradient(  # +
                head.weight, head.bias, h_l, y[i], h_u, logits, w[j], h_v, yv[k],  # +
                loss="entropy", solver="cg", iterations=10, curvature="gauss-newton", damping=0.01,  # +
            )  # +  # fmt: skip
            w[j] = (w[j] - 0.02 * g / g.square().mean().sqrt().clamp_min(1e-12)).clamp(0, 1)  # +
        losses = -(logits.softmax(1) * logits.log_softmax(1)).sum(1)
        loss = F.cross_entropy(head(h_l), y[i]) + (w[j] * losses).mean()  # +
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return float((head(backbone.eval()(xt)).argmax(1) == yt).float().mean())


if __name__ == "__main__":
    print(f"test accuracy of the plain loop  {100 * train(robust=False):.1f} %")
    print(f"test accuracy of the robust loop {100 * train(robust=True):.1f} %")

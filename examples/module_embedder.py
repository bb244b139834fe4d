"""Any ``nn.Module`` as embedder: its output on pool and labels becomes the embedding that the weights start from.

The module here is a small autoencoder that is trained on the pool first, without labels; yours may be anything.
"""

import torch
from torch import nn

import wrssl

data = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
pool, labeled = (part.float() / 127.5 - 1 for part in (data.unlabeled, data.labeled[0]))  # bytes to [-1, 1]


def trained_encoder(steps: int = 200) -> nn.Module:
    """An encoder from pixels to 16 numbers, from which a decoder can tell the pixels."""
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
    decoder = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
    for _ in range(steps):
        x = pool[torch.randint(len(pool), (128,))]
        loss = (decoder(encoder(x)) - x.flatten(1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return encoder.eval()


if __name__ == "__main__":
    encoder = trained_encoder()
    with torch.no_grad():
        pair = encoder(pool).numpy(), encoder(labeled).numpy()
    result = wrssl.fit(
        data, weights="wr", weight_options={"embedding": pair}, steps=150, fallback=False, progress=False
    )
    print(f"test accuracy {100 * result.metrics['test_accuracy']:.1f} %")
    print(f"foreign members found with AUROC {result.metrics['ood_auroc']:.3f}")

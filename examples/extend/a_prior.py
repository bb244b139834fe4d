"""A kind of prior from outside the package: the cosine to the nearest labeled row."""

import numpy as np

import wrssl


@wrssl.register_prior("cosine")
def cosine(labeled, labels, pool):
    """A score of rows, high where a row looks like the labeled ones; the pool centers the rows."""
    center = pool.mean(0)

    def unit(rows):
        rows = rows - center
        return rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12)

    known = unit(labeled)

    def score(rows):
        return (unit(rows) @ known.T).max(1).astype(np.float64)

    return score


if __name__ == "__main__":
    scn = wrssl.load_scenario("digits", ood="patches", ratio=0.5, seed=0)
    res = wrssl.fit(scn, weights="prior", weight_options={"kinds": "linear,cosine"}, steps=20, seed=0)
    print(f"AUROC of ood_score {res.metrics['ood_auroc']:.3f}")

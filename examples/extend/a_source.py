"""A data source from outside the package: ``load_scenario`` mixes its pool with foreign rows at any ratio."""

import numpy as np

import wrssl
from wrssl.data import Foreign, Parts, numpy_stream


@wrssl.register_source("rings", kinds=("core",))
def rings(request):
    """Two rings around the origin; the foreign rows lie inside of both."""
    rng = numpy_stream(request.seed, "rings")

    def draw(number):
        y = np.arange(number) % 2
        angle, radius = rng.uniform(0, 2 * np.pi, number), 1.0 + y + rng.normal(0, 0.1, number)
        return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).astype(np.float32), y

    def core(number, taken, taken_labels):
        return rng.normal(0, 0.1, (number, 2)).astype(np.float32)

    labeled, pool, validation, test = draw(20), draw(1000), draw(200), draw(500)
    foreign = (Foreign("core", None, core),)
    return Parts(labeled, pool[0], pool[1], validation, test, foreign, noise=0.15, augment="table", vat_epsilon=0.5)


if __name__ == "__main__":
    scn = wrssl.load_scenario("rings", ratio=0.3, seed=0)
    res = wrssl.fit(scn, steps=100, seed=0, fallback=False)
    print(f"test accuracy {res.metrics['test_accuracy']:.3f}, AUROC of ood_score {res.metrics['ood_auroc']:.3f}")

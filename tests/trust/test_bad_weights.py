"""Weights of all kinds, where they meet statistics and losses: all 0, all 1, alternating, tiny, anything in between."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wrssl
from wrssl.api import BatchWeights, DataError, Weighting
from wrssl.norm import use_native_kernels
from wrssl.registry import WEIGHTINGS
from wrssl.weighting import weighted_mean

LAYERS = {
    1: (wrssl.WeightedBatchNorm1d, torch.nn.BatchNorm1d),
    2: (wrssl.WeightedBatchNorm2d, torch.nn.BatchNorm2d),
    3: (wrssl.WeightedBatchNorm3d, torch.nn.BatchNorm3d),
}
PATTERNS = {
    "all 0": lambda n, own: torch.zeros(n),
    "all 1": lambda n, own: torch.ones(n),
    "alternating": lambda n, own: torch.arange(n) % 2.0,
    "one": lambda n, own: (torch.arange(n) == n // 2).float(),
    "tiny": lambda n, own: torch.full((n,), 1e-30),
    "any": lambda n, own: torch.rand(n, generator=own),
}
cases = st.tuples(
    st.sampled_from(sorted(LAYERS)), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 99)
)


def make(case, training=True):
    axes, rows, channels, side, seed = case
    own = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, channels, *[side] * (axes if axes > 1 else 0), generator=own, requires_grad=True)
    return x, LAYERS[axes][0](channels).train(training), LAYERS[axes][1](channels).train(training), own


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("pattern", sorted(PATTERNS))
@given(cases)
def test_batch_norm_stays_finite_and_rows_of_weight_0_move_nothing(pattern, native, case):
    x, layer, _, own = make(case)
    w = PATTERNS[pattern](len(x), own)
    use_native_kernels(layer, native)
    with wrssl.sample_weights(layer, w):
        y = layer(x)
        y.square().sum().backward()
    assert y.shape == x.shape
    for tensor in (y, x.grad, layer.running_mean, layer.running_var):
        assert torch.isfinite(tensor).all()
    assert (layer.running_var >= 0).all()
    if pattern == "all 0":
        assert (layer.running_mean == 0).all()
        assert (layer.running_var == 1).all()
    if pattern == "alternating" and len(x) > 3:  # rows of weight 0 contribute nothing
        changed, again = x.detach().clone(), LAYERS[case[0]][0](case[2])
        changed[::2] += 100.0
        use_native_kernels(again, native)
        with wrssl.sample_weights(again, w):
            other = again(changed)
        assert torch.allclose(other[1::2], y[1::2], atol=1e-4)
        assert torch.allclose(again.running_mean, layer.running_mean, atol=1e-5)


@given(cases)
def test_all_ones_are_torchs_own_layer(case):
    x, layer, plain, _ = make(case)
    if x[:, 0].numel() < 2:
        return  # torch refuses a single value
    with wrssl.sample_weights(layer, torch.ones(len(x))):
        y = layer(x)
    assert torch.allclose(y, plain(x), atol=1e-5)
    assert torch.allclose(layer.running_var, plain.running_var, atol=1e-5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.sampled_from(sorted(PATTERNS)), st.integers(0, 99))
def test_weighted_mean_is_the_mean_over_the_batch(losses, pattern, seed):
    r = torch.tensor(losses, dtype=torch.float64)
    w = PATTERNS[pattern](len(r), torch.Generator().manual_seed(seed)).double()
    expected = sum(a * b for a, b in zip(r.tolist(), w.tolist(), strict=True)) / len(losses)
    assert float(weighted_mean(r, w)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    if len(r) > 1:
        with pytest.raises(DataError, match="shape"):
            weighted_mean(r, w.unsqueeze(1))


@given(st.sampled_from([float("nan"), float("inf")]) | st.floats(-1e30, -1e-30), st.integers(1, 9), st.data())
def test_weights_that_are_none_are_refused(value, rows, draw):
    w = torch.ones(rows)
    w[draw.draw(st.integers(0, rows - 1))] = value
    with pytest.raises(DataError, match="finite and not negative"):
        wrssl.sample_weights(wrssl.WeightedBatchNorm1d(2), w)


@given(
    st.sampled_from(sorted(PATTERNS)),
    st.sampled_from(["pl", "pi", "mt", "vat", "entmin", "uda", "fixmatch", "mixmatch"]),
    st.sampled_from(["batch", "frozen", "eval", "weighted"]),
    st.integers(2, 9),
)
def test_training_with_such_weights(pattern, method, bn, batch_size):
    class Fixed(Weighting):
        summary = "a pattern"

        def setup(self, pool):
            self.table = PATTERNS[pattern](pool.size, torch.Generator().manual_seed(0))

        def batch(self, index):
            return BatchWeights(self.table[index])

    own = np.random.default_rng(batch_size)
    x, y = own.normal(size=(38, 3)).astype(np.float32), np.arange(8) % 2
    scenario = wrssl.Scenario((x[:8], y), x[8:30], (x[30:], y))
    with WEIGHTINGS.isolated():
        wrssl.register_weighting("pattern")(Fixed)
        result = wrssl.fit(scenario, "mlp", method, "pattern", bn, steps=3, batch_size=batch_size, progress=False)
    assert np.isfinite(result.predict_proba(x)).all()
    assert result.metrics["skipped_steps"] == 0
    assert np.allclose(result.weights, PATTERNS[pattern](22, torch.Generator().manual_seed(0)).numpy())

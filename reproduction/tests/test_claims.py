"""Whether the paper's claims hold is decided by an interval, computed here a second way."""

import numpy as np
import pytest
from scipy import stats

from wrssl_reproduction.catalogue import NAMES, get_experiment
from wrssl_reproduction.catalogue.cells import PAPERS, PLAIN
from wrssl_reproduction.cell import Label
from wrssl_reproduction.experiment import ABOVE, BELOW, NOT_HURT, beats
from wrssl_reproduction.statistics import FAILS, HOLDS, UNDECIDED, Stat, findings, interval, verdict


@pytest.mark.parametrize("n", [2, 3, 5, 50])
def test_the_interval_is_that_of_a_t_test(n):
    values = np.random.default_rng(n).normal(0.7, 2, n)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval(Stat.of(values)) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_the_verdict_follows_from_the_interval():
    values = [1.0, 1.1, 1.2, 1.1]
    assert verdict(Stat.of(values), *ABOVE) == HOLDS
    assert verdict(Stat.of(values), *BELOW) == FAILS
    assert verdict(Stat.of(values), 0.0, 1.15) == UNDECIDED
    assert verdict(Stat.of([-0.5, -0.4, -0.6]), *NOT_HURT) == HOLDS
    assert verdict(Stat.of([5.0]), *ABOVE) == UNDECIDED, "one seed decides nothing"
    assert verdict(Stat.of([2.0, 2.0]), *ABOVE) == UNDECIDED, "two can agree by chance"
    assert verdict(Stat.of([2.0, 2.0, 2.0]), *ABOVE) == HOLDS
    assert verdict(Stat.of([-1.0, 3.0, 0.5]), *ABOVE) == UNDECIDED


def test_five_in_a_hundred_true_claims_are_called_wrong_at_most():
    """Of means that are exactly on the edge, 2.5 % are taken for above and as many for below."""
    noise = np.random.default_rng(0).normal(size=(4000, 5))
    verdicts = [verdict(Stat.of(values), *ABOVE) for values in noise]
    for side in (HOLDS, FAILS):
        assert verdicts.count(side) / len(noise) == pytest.approx(0.025, abs=0.008)


def test_findings_come_by_protocol_and_pair_seeds():
    claim = beats("fashion", "50", PAPERS, (PLAIN,), "At 50 %", "above 0")[0]
    assert claim.better == Label("fashion", PAPERS, "50")
    assert claim.worse == Label("fashion", PLAIN, "50")
    rows = []
    for budget, steps in (("quick", 200), ("paper", 2000)):
        for seed, (ours, plain) in enumerate(((0.9, 0.8), (0.93, 0.81), (0.91, None))):
            for curve, accuracy in ((PAPERS, ours), (PLAIN, plain)):
                if accuracy is not None:
                    place = {"budget": budget, "steps": str(steps), "seed": str(seed)}
                    rows.append({**place, "label": f"fashion|{curve}|50", "test_accuracy": str(accuracy)})
    found = findings(get_experiment("fig4a"), claim, rows)
    assert [each.protocol for each in found] == [("paper", 2000), ("quick", 200)]
    assert found[0].stat.n == 2
    assert found[0].stat.mean == pytest.approx(11.0)
    assert findings(get_experiment("fig4a"), claim, []) == []


def test_every_experiment_of_the_paper_has_claims_with_a_range_that_can_fail():
    for name in NAMES:
        claims = get_experiment(name).claims
        assert claims, name
        for claim in claims:
            low, high = claim.range
            assert low < high, claim.text
            assert np.isfinite([low, high]).any(), claim.text
    texts = [claim.text for name in NAMES for claim in get_experiment(name).claims]
    per_experiment = [len({c.text for c in get_experiment(name).claims}) for name in NAMES]
    assert sum(per_experiment) == len(texts), "two claims of an experiment have the same words"

"""The weighting ``wr``: prior, refinement and visits, each for itself and all of them in a training."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch

import wrssl
from wrssl.api import BatchWeights, DataError, OptionError, Signal
from wrssl.evaluate import is_ood
from wrssl.registry import WEIGHTINGS
from wrssl.training import Callback, resume_run
from wrssl.weighting import kmeans
from wrssl.weighting.refinement import Evidence
from wrssl.weighting.visits import Visits
from wrssl.weighting.wr import RobustWeighting

SIZE = 120
ALL = torch.arange(SIZE)


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def half_foreign(make_pool):
    """Members of which every other is elsewhere, somewhat, and forty known examples."""
    rows = normal(SIZE, 3, seed=1)
    rows[1::2] += 2
    return make_pool(rows, known=normal(40, 3, seed=2))


def set_up(pool, name="wr", **options):
    weighting = WEIGHTINGS.create(name, {"kinds": "linear", **options})
    weighting.setup(pool)
    return weighting


def persuade(weighting, updates=60, seed=0):
    """Tell the weighting again and again that cluster 0 hurts and cluster 1 helps."""
    rng = np.random.default_rng(seed)
    for step in range(updates):
        index = torch.from_numpy(rng.permutation(SIZE)[:50])
        cluster = weighting.refinement.cluster_of[index]
        gradient = 0.1 * rng.standard_normal(50) + np.where(cluster == 0, 1, np.where(cluster == 1, -1, 0))
        weighting.update(index, signal(step, torch.from_numpy(gradient).float()))


class Impatient(RobustWeighting):
    """Visits follow the evidence early, so that short runs use all of it."""

    patience = 10


class Told(Evidence):
    """Writes down what it is told."""

    def __init__(self, groups):
        super().__init__(groups)
        self.told = []

    def collect(self, group, gradient, own):
        self.told.append((group, gradient, own))
        super().collect(group, gradient, own)


def impatient(pool, **options):
    weighting = Impatient(kinds="linear", **options)
    weighting.setup(pool)
    return weighting


def signal(step, gradient, size=50):
    return Signal(step, torch.ones(size), torch.full((size, 2), 0.5), gradient)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"floor": 0.0}, r"^floor must be above 0 and at most 1, but it is 0\.0\.$"),
        ({"floor": 1.5}, r"^floor must be above 0 and at most 1, but it is 1\.5\.$"),
        ({"floor": -0.1}, r"^floor must be above 0"),
        ({"floor": float("nan")}, r"^floor must be above 0"),
        ({"K": 0}, r"at least 1 \(K=0, L=5\)\.$"),
        ({"L": 0}, r"at least 1 \(K=20, L=0\)\.$"),
        ({"P": -1}, r"cannot be negative \(J=0, P=-1\)\.$"),
        ({"kinds": "magic"}, r"^There is no kind of prior 'magic'"),
        ({"embedding": "umap"}, r"^embedding must be one of pca, raw, features or a pair of arrays, not 'umap'\.$"),
        ({"refresh": -5}, r"^refresh counts steps and cannot be negative, but it is -5\.$"),
        ({"refine": "yes"}, r"^The option 'refine' must be true or false, not 'yes'\.$"),
        (
            {"alpha": 1.0},
            r"has no option 'alpha'; its options are: prior, refine, admit, floor, K, L, P, damping, embedding",
        ),
    ],
    ids=str,
)
def test_options_are_checked_with_sentences(options, sentence):
    with pytest.raises(OptionError, match=sentence):
        WEIGHTINGS.create("wr", options)


def test_before_any_evidence_weights_are_the_prior(half_foreign):
    weighting, prior = set_up(half_foreign), set_up(half_foreign, "prior")
    torch.testing.assert_close(weighting.batch(ALL).weight, prior.batch(ALL).weight, rtol=0, atol=1e-6)
    for one, other in zip(weighting.belonging(slice(None)), prior.belonging(slice(None)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_clusters_are_those_of_the_same_rows(half_foreign):
    weighting = set_up(half_foreign, K=7)
    assert torch.equal(weighting.clusters(), kmeans(half_foreign.embed.rows, 7, half_foreign.seed))
    assert set(half_foreign.embed.asked) == {"pca"}
    assert set_up(half_foreign, refine=False).clusters() is None


def test_evidence_moves_weights_and_not_the_judgment_of_what_belongs(half_foreign):
    weighting = set_up(half_foreign, K=4)
    before, judged = weighting.batch(ALL).weight.clone(), weighting.belonging(slice(None))
    persuade(weighting)
    after, cluster = weighting.batch(ALL).weight, weighting.clusters()
    for k, sign, end in ((0, -1, 0.0), (1, 1, 1.0)):
        mine = (cluster == k) & ((before - end).abs() > 0.02)  # at the end already, a weight can go no further
        assert mine.sum() > 5
        assert (sign * (after - before)[mine] > 0).all()
    assert float((after - before).abs().max()) > 0.3
    for one, other in zip(weighting.belonging(slice(None)), judged, strict=True):
        np.testing.assert_array_equal(one, other)
    expected = weighting.refinement.refined(ALL, before, weighting.refinement.evidence.shift)
    torch.testing.assert_close(after, expected, rtol=0, atol=1e-5)


def test_an_update_tells_the_evidence_groups_gradient_and_prior(half_foreign):
    weighting = set_up(half_foreign, K=4)
    weighting.refinement.evidence = Told(12)
    index, gradient = torch.arange(10, 60), normal(50, seed=5)
    weighting.update(index, signal(0, gradient))
    [(group, handed, own)] = weighting.refinement.evidence.told
    prior = set_up(half_foreign, "prior").batch(index).weight
    level = (3 * prior).floor().clamp(max=2).long()
    assert torch.equal(group, 3 * weighting.clusters()[index].long() + level)
    assert torch.equal(handed, gradient)
    torch.testing.assert_close(own, prior / prior.clamp_min(0.05))  # as if all were visited equally often
    weighting.update(index, signal(1, None))
    assert len(weighting.refinement.evidence.told) == 1, "a step without a hypergradient is no evidence"


def test_the_level_of_a_member_is_that_of_its_prior(half_foreign):
    """And not that of its weight, which would change its group while evidence about the group is collected."""
    weighting = set_up(half_foreign, K=4)
    weighting.refinement.evidence = Told(12)
    persuade(weighting)
    index = torch.arange(50)
    weighting.update(index, signal(0, normal(50, seed=5)))
    level = (weighting.refinement.evidence.told[-1][0] % 3).tolist()
    prior = set_up(half_foreign, "prior").batch(index).weight
    assert level == (3 * prior).floor().clamp(max=2).tolist()
    assert level != (3 * weighting.batch(index).weight).floor().clamp(max=2).tolist()


def test_the_hypergradient_is_asked_for_in_every_lth_step(half_foreign):
    weighting = set_up(half_foreign, L=3, P=7, damping=0.5)
    assert [step for step in range(8) if weighting.request(step) is not None] == [0, 3, 6]
    options = weighting.request(0)
    assert (options.solver, options.scope, options.J, options.P, options.damping) == ("cg", "head", 0, 7, 0.5)


def test_visit_rates_and_factors(half_foreign):
    """a = max(w, floor); a visit counts min(1, w/a), brought to mean 1."""
    weighting = set_up(half_foreign, floor=0.3)
    w = weighting.batch(ALL).weight
    assert (w < 0.3).any()
    assert (w > 0.3).any()
    assert torch.equal(weighting.visits.rate, w.clamp_min(0.3))
    index = torch.arange(0, SIZE, 2)
    share = (w[index] / w[index].clamp_min(0.3)).clamp_max(1)
    torch.testing.assert_close(weighting.batch(index).factor, share / share.mean())


def test_presence_is_what_a_visit_counts(half_foreign):
    """w/a in batch statistics, w itself where visits are equal; nothing for members that are likely foreign."""
    weighting = set_up(half_foreign, floor=0.9)
    w, index = weighting.batch(ALL).weight, torch.arange(0, SIZE, 2)
    w = w[index]
    assert (w < 0.5).any()
    assert ((w >= 0.5) & (w < 0.9)).any()
    expected = torch.where(w < 0.5, 0.0, (w / w.clamp_min(0.9)).clamp_max(1))
    torch.testing.assert_close(weighting.batch(index).presence, expected)
    alike = set_up(half_foreign, admit=False)
    w = alike.batch(index).weight
    assert torch.equal(alike.batch(index).presence, torch.where(w < 0.5, 0.0, w))
    prior = set_up(half_foreign, "prior")
    assert torch.equal(prior.batch(index).presence, prior.batch(index).weight)


def test_without_refinement_weights_stay_the_prior(half_foreign):
    weighting, prior = set_up(half_foreign, refine=False), set_up(half_foreign, "prior")
    assert [weighting.request(step) for step in range(12)] == [None] * 12
    weighting.update(ALL[:50], signal(0, None))
    assert torch.equal(weighting.batch(ALL).weight, prior.batch(ALL).weight)
    assert torch.equal(weighting.visits.rate, prior.batch(ALL).weight.clamp_min(0.05))


def test_without_rates_all_members_are_visited_equally_often_and_count_their_weight(half_foreign):
    weighting = set_up(half_foreign, admit=False, K=4)
    assert weighting.visits is None
    persuade(weighting)
    for step in (0, 100, 200):
        weighting.begin(step)
    assert weighting.visits is None
    assert torch.equal(weighting.batch(ALL).factor, weighting.batch(ALL).weight)
    assert (weighting.batch(ALL).weight - set_up(half_foreign, "prior").batch(ALL).weight).abs().max() > 0.3


def test_without_both_it_is_the_prior(half_foreign):
    weighting, prior = set_up(half_foreign, refine=False, admit=False), set_up(half_foreign, "prior")
    assert torch.equal(weighting.batch(ALL).factor, prior.batch(ALL).factor)
    assert weighting.visits is None
    assert weighting.request(0) is None


def test_visits_are_redistributed_when_the_evidence_has_moved_and_only_then(half_foreign):
    """Every ``patience`` steps, if the log-odds of some group moved by more than ``notable`` since the last time."""
    assert (RobustWeighting.patience, RobustWeighting.notable) == (100, 0.5)
    weighting = impatient(half_foreign, K=4)
    first = weighting.visits
    for step in range(31):
        weighting.begin(step)
        assert weighting.visits is first, "there is no evidence"
    persuade(weighting)
    for step in (*range(31, 40), 41):
        weighting.begin(step)
        assert weighting.visits is first, "it is not time yet"
    weighting.begin(50)
    second = weighting.visits
    assert second.version == first.version + 1
    assert torch.equal(second.rate, weighting.batch(ALL).weight.clamp_min(0.05))
    assert not torch.equal(second.rate, first.rate)
    weighting.begin(60)
    assert weighting.visits is second, "the evidence is what it was"
    shift = weighting.refinement.evidence.shift
    for much, moved in ((0.4, False), (0.6, True)):
        weighting.refinement.evidence.shift = shift + much * (torch.arange(12) == 5)
        weighting.begin(70)
        assert (weighting.visits.version != second.version) == moved


class CountedVisits(Visits):
    """Remembers how often it had to weigh the whole pool, and does not do it."""

    def __init__(self):
        super().__init__(0.05)
        self.followed = 0

    def follow(self, weights, size):
        self.followed += 1


@pytest.mark.parametrize(("size", "every"), [(100_000, 100), (250_000, 250)])
def test_visits_of_a_large_pool_are_redistributed_less_often(size, every, half_foreign):
    """To weigh the whole pool may cost as much as a thousand members per step."""
    weighting = set_up(half_foreign, K=4)
    weighting.pool, weighting.plan = dataclasses.replace(half_foreign, size=size), CountedVisits()
    steps = []
    for step in range(1001):
        weighting.refinement.evidence.shift = weighting.refinement.evidence.shift + 1.0
        before = weighting.plan.followed
        weighting.begin(step)
        steps += [step] * (weighting.plan.followed - before)
    assert steps == list(range(every, 1001, every))


def test_in_step_0_visits_are_not_redistributed(half_foreign):
    weighting = set_up(half_foreign, K=4)
    first = weighting.visits
    persuade(weighting)
    weighting.begin(0)
    assert weighting.visits is first


def test_a_batch_has_the_weights_of_its_members_at_any_time(half_foreign):
    """Whatever was asked before: the same tensor with other members, an equal one, the same one after an update."""
    weighting, index = set_up(half_foreign, K=4), torch.arange(30)
    whole = weighting.batch(ALL).weight
    first = weighting.batch(index).weight
    torch.testing.assert_close(first, whole[:30], rtol=0, atol=1e-6)
    index += 30
    torch.testing.assert_close(weighting.batch(index).weight, whole[30:60], rtol=0, atol=1e-6)
    index -= 30
    for _ in range(20):
        weighting.update(index, signal(0, normal(30, seed=1), 30))
    after = weighting.batch(index)
    assert not torch.equal(after.weight, first), "what was learned counts at once"
    again = weighting.batch(torch.arange(30))
    for name in ("weight", "factor", "presence"):
        assert torch.equal(getattr(after, name), getattr(again, name))


def test_a_batch_has_new_weights_after_a_new_comparison(half_foreign):
    weighting = set_up(half_foreign, embedding="features", refresh=10)
    before = weighting.batch(ALL).weight
    weighting.begin(10)
    assert not torch.equal(weighting.batch(ALL).weight, before)
    torch.testing.assert_close(weighting.batch(ALL).weight, weighting.batch(ALL.clone()).weight)


@pytest.mark.parametrize("wrong", [(SIZE - 1, 40), (SIZE, 41)])
def test_own_rows_must_be_as_many_as_members(wrong, half_foreign):
    with pytest.raises(DataError, match="give one row per member and one per labeled example"):
        set_up(half_foreign, embedding=(normal(wrong[0], 3, seed=1), normal(wrong[1], 3, seed=2)))


def test_an_own_embedding_is_compared_and_clustered(half_foreign):
    pair = half_foreign.embed.rows.numpy(), half_foreign.embed_known.rows.numpy()
    own, usual = set_up(half_foreign, embedding=pair), set_up(half_foreign)
    assert torch.equal(own.batch(ALL).weight, usual.batch(ALL).weight)
    assert torch.equal(own.clusters(), usual.clusters())


@pytest.mark.parametrize("options", [{}, {"refine": False}, {"admit": False}], ids=str)
def test_the_state_goes_into_a_new_object_and_on_from_there(options, half_foreign):
    """In the middle of a training: what follows is bit for bit the same."""
    one, other = impatient(half_foreign, K=4, **options), impatient(half_foreign, K=4, **options)
    if options.get("refine", True):
        persuade(one)
    one.begin(10)  # redistributes visits
    if options.get("refine", True):
        persuade(one, 7, seed=1)  # evidence that visits do not follow yet
    other.load_state_dict({key: value.clone() for key, value in one.state_dict().items()})
    for weighting in (one, other):
        if options.get("refine", True):
            persuade(weighting, 5, seed=2)
    for index in (ALL, torch.arange(0, SIZE, 3)):
        mine, theirs = one.batch(index), other.batch(index)
        for name in ("weight", "factor", "presence"):
            assert torch.equal(getattr(mine, name), getattr(theirs, name))
    assert torch.equal(one.followed, other.followed)

    def same_rates():
        assert (one.visits is None) == (other.visits is None) == (not options.get("admit", True))
        return one.visits is None or torch.equal(one.visits.rate, other.visits.rate)

    assert same_rates()
    for weighting in (one, other):
        weighting.begin(20)
    assert same_rates()


def test_the_state_is_tensors_and_its_own(half_foreign):
    weighting = set_up(half_foreign, K=4)
    stored = weighting.state_dict()
    assert all(isinstance(value, torch.Tensor) for value in stored.values())
    kept = {key: value.clone() for key, value in stored.items()}
    weighting.load_state_dict(stored)
    persuade(weighting)
    assert all(torch.equal(stored[key], kept[key]) for key in kept)


# Whole trainings.


@pytest.fixture(scope="module")
def moons():
    return wrssl.load_scenario("moons", ood="faraway", seed=0)


@pytest.fixture
def made():
    """The weightings named ``lively`` that fits have made, newest last.

    They are ``wr`` with visits that follow early, and with evidence that short runs already have: the gradient of every
    member of an even cluster is raised. They note the steps in which they compared and redistributed visits.
    """
    weightings = []

    class Lively(RobustWeighting):
        patience, notable = 5, 0.1

        def __init__(self, **options):
            super().__init__(**options)
            self.compared, self.redistributed = [], []
            weightings.append(self)

        def begin(self, step):
            before = self.visits
            super().begin(step)
            if self.visits is not before:
                self.redistributed.append(step)

        def compare(self, step):
            super().compare(step)
            self.compared.append((step, self.prior.scores.copy()))

        def update(self, index, signal):
            g = signal.hypergradient
            if g is not None:
                raised = g + 3 * g.square().mean().sqrt() * (self.clusters()[index] % 2 == 0)
                signal = dataclasses.replace(signal, hypergradient=raised)
            super().update(index, signal)

    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("lively")(Lively)
        yield weightings


def test_foreign_members_are_found_and_own_ones_kept(moons):
    result = wrssl.fit(moons, steps=60, seed=0, fallback=False)
    metrics = result.metrics
    assert metrics["ood_auroc"] > 0.95
    assert metrics["mean_weight_id"] - metrics["mean_weight_ood"] > 0.6
    assert metrics["weight_auroc"] > 0.95
    assert metrics["drop_rate_ood"] > 0.5
    assert metrics["drop_rate_id"] < 0.1


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_pool_keeps_its_weight(seed):
    clean = wrssl.load_scenario("moons", ood="faraway", ratio=0.0, seed=seed)
    result = wrssl.fit(clean, steps=60, seed=seed, fallback=False)
    assert result.weights.mean() > 0.8
    assert (result.verdicts["verdict"] == "drop").mean() < 0.1


def test_batches_are_full_of_members_that_count(moons):
    """Half the pool is foreign and weighs little: far fewer than half of the visits go there."""
    seen, pool = [], []

    class Watch(Callback):
        def on_step(self, trainer, outcome):
            seen.append(float(outcome.mean_weight))
            pool.append(float(trainer.weighting.batch(torch.arange(1000)).weight.mean()))

    wrssl.fit(moons, method="entmin", steps=20, seed=0, fallback=False, callbacks=[Watch()])
    assert pool[-1] < 0.6
    assert np.mean(seen) > pool[-1] + 0.25


def test_batch_statistics_are_those_of_the_weighted_pool(moons):
    """One half weighs 1, the other ½: a third of what batch norm sees is the other half, as in the loss. Weighed once
    more after they were visited half as often, it would be a fifth."""
    in_loss, in_statistics = [], []

    class Halves(RobustWeighting):
        def prior_weights(self, index):
            return torch.where(index < 500, 1.0, 0.5)

        def update(self, index, signal):
            self.seen = index

    class Watch(Callback):
        def on_step(self, trainer, outcome):
            index = trainer.weighting.seen
            other, now = index >= 500, trainer.weighting.batch(index)
            for found, counts in ((in_loss, now.factor), (in_statistics, trainer.net.weights)):
                found.append(float(counts[other].sum() / counts.sum()))

    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("halves")(Halves)
        options = {"method": "entmin", "weights": "halves", "weight_options": {"refine": False}}
        wrssl.fit(moons, **options, steps=60, fallback=False, callbacks=[Watch()])
    assert np.mean(in_loss) == pytest.approx(1 / 3, abs=0.02)
    assert np.mean(in_statistics) == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("validation", [True, False])
def test_a_step_asks_a_weighting_about_its_batch_a_few_times_only(validation, moons):
    """For the batch statistics, for a hypergradient where there is one, and for the loss; once whether it wants one."""
    asked = []

    class Counted(RobustWeighting):
        def begin(self, step):
            super().begin(step)
            asked.append({"batch": 0, "request": 0, "due": step % 5 == 0})

        def request(self, step):
            asked[-1]["request"] += 1
            return super().request(step)

        def batch(self, index) -> BatchWeights:
            if asked and len(index) == 100:
                asked[-1]["batch"] += 1
            return super().batch(index)

    own = moons if validation else wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled)
    with WEIGHTINGS.isolated():
        WEIGHTINGS.register("counted")(Counted)
        wrssl.fit(own, method="entmin", weights="counted", steps=11, fallback=False)
    assert len(asked) == 11
    assert [step["request"] for step in asked] == [1] * 11
    assert [step["batch"] for step in asked] == [3 if step["due"] else 2 for step in asked]


@pytest.mark.parametrize(("refresh", "expected"), [(10, [0, 10, 20, 30]), (0, [0])])
def test_features_are_compared_again_while_they_change(refresh, expected, moons, made):
    options = {"embedding": "features", "refresh": refresh, "kinds": "linear", "L": 100}  # no evidence
    wrssl.fit(moons, method="entmin", weights="lively", weight_options=options, steps=35, seed=0, fallback=False)
    assert [step for step, _ in made[-1].compared] == expected
    scores = [scores for _, scores in made[-1].compared]
    for one, other in itertools.pairwise(scores):
        assert np.abs(one - other).max() > 0.1
    assert made[-1].redistributed == expected[1:], "and visits follow"


def test_a_new_comparison_keeps_clusters_and_evidence(half_foreign):
    weighting = set_up(half_foreign, embedding="features", refresh=10, K=4)
    persuade(weighting)
    cluster, shift = weighting.clusters(), weighting.refinement.evidence.shift
    weighting.begin(10)
    assert weighting.clusters() is cluster
    assert weighting.refinement.evidence.shift is shift


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("vat", {"L": 1}),
        ("mt", {"L": 2, "K": 3, "admit": False}),
        ("entmin", {"L": 1, "embedding": "features", "refresh": 10, "kinds": "linear"}),
        ("mixmatch", {"refine": False}),
    ],
    ids=str,
)
def test_a_stopped_run_goes_on_bit_for_bit(method, options, moons, made, tmp_path, monkeypatch):
    monkeypatch.setenv("WRSSL_SAVE_EVERY", "0")

    class Stop(Callback):
        def on_step(self, trainer, outcome):
            if trainer.done == 27:
                raise KeyboardInterrupt

    arguments = {"method": method, "weights": "lively", "weight_options": options, "steps": 40, "fallback": False}
    whole = wrssl.fit(moons, **arguments)
    first = made[-1]
    with pytest.raises(KeyboardInterrupt):
        wrssl.fit(moons, **arguments, out=tmp_path / "run", callbacks=[Stop()])
    resumed = resume_run(tmp_path / "run")
    second = made[-1]
    assert second is not first
    if options.get("refine", True):
        assert first.refinement.evidence.shift.any(), "else there is nothing to lose"
    if options.get("refine", True) and options.get("admit", True):
        assert first.redistributed
        assert second.redistributed
    assert torch.equal(first.refinement.evidence.sums, second.refinement.evidence.sums)
    np.testing.assert_array_equal(first.prior.scores, second.prior.scores)
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    assert whole.verdicts.equals(resumed.verdicts)
    assert whole.metrics["images"] == resumed.metrics["images"], "features of the pool are counted once"
    for p, q in zip(whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    written = json.loads((tmp_path / "run" / "config.json").read_text())
    assert written["weight_options"] == options


def test_trial_steps_leave_no_trace(moons, made):
    """``steps="auto"`` tries a few steps: evidence, visits and parameters are as if it had not."""
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled[:200], validation=moons.validation)
    options = {"L": 1, "kinds": "linear"}
    arguments = {"method": "entmin", "weights": "lively", "weight_options": options, "fallback": False}
    tried = wrssl.fit(own, steps="auto", **arguments)
    known = wrssl.fit(own, steps=tried.config["steps"], **arguments)
    np.testing.assert_array_equal(tried.weights, known.weights)
    assert made[-1].refinement.evidence.shift.any()
    for p, q in zip(tried.model.state_dict().values(), known.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)


def test_without_validation_the_evidence_comes_from_labels_that_are_held_out(moons, made):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, is_ood=is_ood(moons))
    result = wrssl.fit(own, method="entmin", weights="lively", weight_options={"L": 1}, steps=20, seed=0)
    assert made[-1].refinement.evidence.sums.any()
    assert ((result.weights >= 0) & (result.weights <= 1)).all()


def test_a_pool_of_foreign_members_only_changes_nothing():
    """No member belongs: weights are small, and the model is the very one that learns from the labels alone."""
    alien = wrssl.load_scenario("moons", ood="faraway", ratio=1.0, seed=0)
    result = wrssl.fit(alien, method="vat", steps=40, seed=0, fallback=False)
    alone = wrssl.fit(alien, method="supervised", weights="none", bn="batch", steps=40, seed=0)
    assert result.weights.mean() < 0.01
    assert np.isfinite(result.history["loss"]).all()
    for p, q in zip(result.model.state_dict().values(), alone.model.state_dict().values(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_without_its_prior_it_begins_with_ones_and_still_judges_and_learns(half_foreign):
    weighting, usual = set_up(half_foreign, prior=False, K=4), set_up(half_foreign, K=4)
    assert weighting.batch(ALL).weight.tolist() == [1.0] * SIZE
    mine, other = weighting.belonging(slice(None)), usual.belonging(slice(None))
    np.testing.assert_array_equal(mine.p, other.p)
    np.testing.assert_array_equal(mine.ood_score, other.ood_score)
    assert mine.weight.tolist() == [1.0] * SIZE
    persuade(weighting, updates=200)
    hurts = weighting.refinement.cluster_of == 0
    assert weighting.batch(ALL).weight[hurts].max() < 0.5
    assert weighting.batch(ALL).weight[~hurts].min() > 0.9

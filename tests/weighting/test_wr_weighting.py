"""The weighting ``wr``: prior, refinement and admission, each for itself and all of them in a training."""

from __future__ import annotations

import dataclasses
import itertools
import json

import numpy as np
import pytest
import torch
from wrssl.training.resume import resume_run

import wrssl
from wrssl.api import DataError, OptionError
from wrssl.training import Callback, state
from wrssl.training.step import TrainingStep
from wrssl.weighting import WEIGHTINGS
from wrssl.weighting import wr as module
from wrssl.weighting.kmeans import kmeans
from wrssl.weighting.prior import PriorWeighting
from wrssl.weighting.wr import RobustWeighting

SIZE = 120
EVERYBODY = torch.arange(SIZE)


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


def signal(step, gradient, size=50):
    return wrssl.api.Signal(step, torch.ones(size), torch.full((size, 2), 0.5), gradient)


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
    torch.testing.assert_close(weighting.weights(EVERYBODY), prior.weights(EVERYBODY), rtol=0, atol=1e-6)
    for one, other in zip(weighting.belonging(slice(None)), prior.belonging(slice(None)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_clusters_are_those_of_the_same_rows(half_foreign):
    weighting = set_up(half_foreign, K=7)
    assert torch.equal(weighting.clusters(), kmeans(half_foreign.embed.rows, 7, half_foreign.seed))
    assert set(half_foreign.embed.asked) == {"pca"}
    assert set_up(half_foreign, refine=False).clusters() is None


def test_evidence_moves_weights_and_not_the_verdict_on_who_belongs(half_foreign):
    weighting = set_up(half_foreign, K=4)
    before, (p, score) = weighting.weights(EVERYBODY).clone(), weighting.belonging(slice(None))
    persuade(weighting)
    after, cluster = weighting.weights(EVERYBODY), weighting.clusters()
    for k, sign, end in ((0, -1, 0.0), (1, 1, 1.0)):
        mine = (cluster == k) & ((before - end).abs() > 0.02)  # who is at the end already can go no further
        assert mine.sum() > 5
        assert (sign * (after - before)[mine] > 0).all()
    assert float((after - before).abs().max()) > 0.3
    np.testing.assert_array_equal(weighting.belonging(slice(None))[0], p)
    np.testing.assert_array_equal(weighting.belonging(slice(None))[1], score)
    expected = weighting.refinement.refined(EVERYBODY, before, weighting.refinement.evidence.shift)
    torch.testing.assert_close(after, expected, rtol=0, atol=1e-5)


def test_an_update_tells_the_evidence_groups_gradient_and_who_is_own(half_foreign, monkeypatch):
    weighting, told = set_up(half_foreign, K=4), []
    monkeypatch.setattr(weighting.refinement.evidence, "collect", lambda *arguments: told.append(arguments))
    index, gradient = torch.arange(10, 60), normal(50, seed=5)
    weighting.update(index, signal(0, gradient))
    [(group, handed, own)] = told
    prior = set_up(half_foreign, "prior").weights(index)
    level = (3 * prior).floor().clamp(max=2).long()
    assert torch.equal(group, 3 * weighting.clusters()[index].long() + level)
    assert torch.equal(handed, gradient)
    torch.testing.assert_close(own, prior / prior.clamp_min(0.05))  # as if everybody were visited alike
    weighting.update(index, signal(1, None))
    assert len(told) == 1, "a step without a hypergradient is no evidence"


def test_the_level_of_a_member_is_that_of_its_prior(half_foreign):
    """And not that of its weight, which would change its group while evidence about the group is collected."""
    weighting = set_up(half_foreign, K=4)
    persuade(weighting)
    told = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weighting.refinement.evidence, "collect", lambda group, *rest: told.append(group))
        weighting.update(torch.arange(50), signal(0, normal(50, seed=5)))
    prior = set_up(half_foreign, "prior").weights(torch.arange(50))
    assert (told[0] % 3).tolist() == (3 * prior).floor().clamp(max=2).tolist()
    assert (told[0] % 3).tolist() != (3 * weighting.weights(torch.arange(50))).floor().clamp(max=2).tolist()


def test_the_hypergradient_is_asked_for_in_every_lth_step(half_foreign):
    weighting = set_up(half_foreign, L=3, P=7, damping=0.5)
    assert [step for step in range(8) if weighting.estimator(step) is not None] == [0, 3, 6]
    options = weighting.estimator(0)
    assert (options.solver, options.scope, options.J, options.P, options.damping) == ("cg", "head", 0, 7, 0.5)


def test_admission_and_factors(half_foreign):
    """a = max(w, floor); a visit counts min(1, w/a), brought to mean 1."""
    weighting = set_up(half_foreign, floor=0.3)
    w = weighting.weights(EVERYBODY)
    assert (w < 0.3).any()
    assert (w > 0.3).any()
    assert torch.equal(weighting.admission(), w.clamp_min(0.3))
    index = torch.arange(0, SIZE, 2)
    share = (w[index] / w[index].clamp_min(0.3)).clamp_max(1)
    torch.testing.assert_close(weighting.factors(index), share / share.mean())


def test_presence_is_what_a_visit_counts(half_foreign):
    """w/a in batch statistics, w itself where everybody is visited alike; nothing for those who are likely foreign."""
    weighting = set_up(half_foreign, floor=0.9)
    w, index = weighting.weights(EVERYBODY), torch.arange(0, SIZE, 2)
    w = w[index]
    assert (w < 0.5).any()
    assert ((w >= 0.5) & (w < 0.9)).any()
    expected = torch.where(w < 0.5, 0.0, (w / w.clamp_min(0.9)).clamp_max(1))
    torch.testing.assert_close(weighting.presence(index), expected)
    alike = set_up(half_foreign, admit=False)
    w = alike.weights(index)
    assert torch.equal(alike.presence(index), torch.where(w < 0.5, 0.0, w))
    prior = set_up(half_foreign, "prior")
    assert torch.equal(prior.presence(index), prior.weights(index))


def test_without_refinement_weights_stay_the_prior(half_foreign):
    weighting, prior = set_up(half_foreign, refine=False), set_up(half_foreign, "prior")
    assert [weighting.estimator(step) for step in range(12)] == [None] * 12
    weighting.update(EVERYBODY[:50], signal(0, None))
    assert torch.equal(weighting.weights(EVERYBODY), prior.weights(EVERYBODY))
    assert torch.equal(weighting.admission(), prior.weights(EVERYBODY).clamp_min(0.05))


def test_without_admission_everybody_is_visited_alike_and_counts_its_weight(half_foreign):
    weighting = set_up(half_foreign, admit=False, K=4)
    assert weighting.admission() is None
    persuade(weighting)
    for step in (0, 100, 200):
        weighting.begin_step(step)
    assert weighting.admission() is None
    assert torch.equal(weighting.factors(EVERYBODY), weighting.weights(EVERYBODY))
    assert (weighting.weights(EVERYBODY) - set_up(half_foreign, "prior").weights(EVERYBODY)).abs().max() > 0.3


def test_without_both_it_is_the_prior(half_foreign):
    weighting, prior = set_up(half_foreign, refine=False, admit=False), set_up(half_foreign, "prior")
    assert torch.equal(weighting.factors(EVERYBODY), prior.factors(EVERYBODY))
    assert weighting.admission() is None
    assert weighting.estimator(0) is None


def test_visits_are_dealt_anew_when_the_evidence_has_moved_and_only_then(half_foreign, monkeypatch):
    """Every PATIENCE steps, if the log-odds of some group moved by more than NOTABLE since the last deal."""
    monkeypatch.setattr(module, "PATIENCE", 10)
    weighting = set_up(half_foreign, K=4)
    first = weighting.admission()
    for step in range(31):
        weighting.begin_step(step)
        assert weighting.admission() is first, "there is no evidence"
    persuade(weighting)
    for step in (*range(31, 40), 41):
        weighting.begin_step(step)
        assert weighting.admission() is first, "between two looks nothing changes"
    weighting.begin_step(50)
    second = weighting.admission()
    assert second is not first
    assert torch.equal(second, weighting.weights(EVERYBODY).clamp_min(0.05))
    assert not torch.equal(second, first)
    weighting.begin_step(60)
    assert weighting.admission() is second, "the evidence is what it was"
    shift = weighting.refinement.evidence.shift
    for much, moved in ((0.4, False), (0.6, True)):
        weighting.refinement.evidence.shift = shift + much * (torch.arange(12) == 5)
        weighting.begin_step(70)
        assert (weighting.admission() is not second) == moved


@pytest.mark.parametrize(("size", "every"), [(100_000, 100), (250_000, 250)])
def test_a_large_pool_is_dealt_anew_less_often(size, every, half_foreign, monkeypatch):
    """A look at everybody may cost as much as a thousand members per step."""
    weighting = set_up(half_foreign, K=4)
    weighting.pool, dealt = dataclasses.replace(half_foreign, size=size), []
    monkeypatch.setattr(weighting.visits, "deal", lambda weights, size: dealt.append(step))
    for step in range(1001):
        weighting.refinement.evidence.shift = weighting.refinement.evidence.shift + 1.0
        weighting.begin_step(step)
    assert dealt == list(range(every, 1001, every))


def test_in_step_0_nothing_is_dealt_anew(half_foreign):
    weighting = set_up(half_foreign, K=4)
    first = weighting.admission()
    persuade(weighting)
    weighting.begin_step(0)
    assert weighting.admission() is first


def test_a_batch_is_looked_up_once_until_something_changes(half_foreign, monkeypatch):
    weighting = set_up(half_foreign, K=4)
    looks = []
    prior_of = weighting.prior.curve

    class Curve:
        nodes, values = prior_of.nodes, prior_of.values

        def __call__(self, score):
            looks.append(len(score))
            return prior_of(score)

    object.__setattr__(weighting.prior, "curve", Curve())
    index = torch.arange(30)
    first = [weighting.weights(index), weighting.weights(index), weighting.factors(index)]
    assert looks == [30]
    assert first[0] is first[1]
    other = torch.arange(30)
    assert torch.equal(weighting.weights(other), first[0])
    assert looks == [30, 30], "an equal batch is another batch"
    for _ in range(20):
        weighting.update(index, signal(0, normal(30, seed=1), 30))
    before = len(looks)
    weighting.weights(index)
    assert len(looks) == before + 1, "what was learned is asked for again"


def test_a_batch_is_looked_up_again_after_a_comparison_anew(half_foreign):
    """The loop never asks about the same tensor in two steps, but a watcher of a training may."""
    weighting = set_up(half_foreign, embedding="features", refresh=10)
    before = weighting.weights(EVERYBODY)
    weighting.begin_step(10)
    assert not torch.equal(weighting.weights(EVERYBODY), before)
    torch.testing.assert_close(weighting.weights(EVERYBODY), weighting.weights(EVERYBODY.clone()))


@pytest.mark.parametrize("wrong", [(SIZE - 1, 40), (SIZE, 41)])
def test_own_rows_must_be_as_many_as_members(wrong, half_foreign):
    with pytest.raises(DataError, match="give one row per member and one per labelled example"):
        set_up(half_foreign, embedding=(normal(wrong[0], 3, seed=1), normal(wrong[1], 3, seed=2)))


def test_an_embedding_of_ones_own_is_compared_and_clustered(half_foreign):
    pair = half_foreign.embed.rows.numpy(), half_foreign.embed_known.rows.numpy()
    own, usual = set_up(half_foreign, embedding=pair), set_up(half_foreign)
    assert torch.equal(own.weights(EVERYBODY), usual.weights(EVERYBODY))
    assert torch.equal(own.clusters(), usual.clusters())


@pytest.mark.parametrize("options", [{}, {"refine": False}, {"admit": False}], ids=str)
def test_there_and_back(options, half_foreign, monkeypatch):
    """Through a state, in the middle of a training: what follows is bit for bit the same."""
    monkeypatch.setattr(module, "PATIENCE", 10)
    one, other = set_up(half_foreign, K=4, **options), set_up(half_foreign, K=4, **options)
    if options.get("refine", True):
        persuade(one)
    one.begin_step(10)  # deals
    if options.get("refine", True):
        persuade(one, 7, seed=1)  # evidence that visits do not know yet
    other.load_state_dict({key: value.clone() for key, value in one.state_dict().items()})
    for weighting in (one, other):
        if options.get("refine", True):
            persuade(weighting, 5, seed=2)
    index = torch.arange(0, SIZE, 3)
    assert torch.equal(one.weights(EVERYBODY), other.weights(EVERYBODY))
    assert torch.equal(one.factors(index), other.factors(index))
    assert torch.equal(one.admitted, other.admitted)
    if options.get("admit", True):
        assert torch.equal(one.admission(), other.admission())
    for weighting in (one, other):
        weighting.begin_step(20)
    assert (one.admission() is None) == (other.admission() is None)
    assert one.admission() is None or torch.equal(one.admission(), other.admission())


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
def lively(monkeypatch):
    """Evidence that counts from the first updates on, visits that are dealt often: short runs, too, use all of it."""
    monkeypatch.setattr("wrssl.weighting.evidence.SURE", 0.2)
    monkeypatch.setattr(module, "PATIENCE", 5)
    monkeypatch.setattr(module, "NOTABLE", 0.1)


@pytest.fixture
def made(monkeypatch):
    """The weightings that fits have made, newest last, with the steps in which they were dealt and compared."""
    weightings = []

    class Kept(RobustWeighting):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.compared, self.dealt, self.step = [], [], 0
            weightings.append(self)

        def begin_step(self, step):
            self.step, before = step, self.visits.admission
            super().begin_step(step)
            if self.visits.admission is not before:
                self.dealt.append(step)

        def compare(self, step):
            super().compare(step)
            self.compared.append((step, self.prior.scores.copy()))

    monkeypatch.setattr(WEIGHTINGS, "_classes", {**WEIGHTINGS._classes, "wr": Kept})
    return weightings


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


def test_batches_are_full_of_those_who_count(moons, made):
    """Half the pool is foreign and weighs little: far fewer than half of the visits go there."""
    seen = []

    class Watch(Callback):
        def on_step(self, step, outcome):
            seen.append(float(outcome.mean_weight))

    wrssl.fit(moons, method="entmin", steps=20, seed=0, fallback=False, callbacks=[Watch()])
    pool = float(made[-1].weights(torch.arange(1000)).mean())
    assert pool < 0.6
    assert np.mean(seen) > pool + 0.25


def test_batch_statistics_are_those_of_the_weighted_pool(moons, monkeypatch):
    """One half weighs 1, the other ½: a third of what batch norm sees is the other half, as in the loss. Weighed once
    more after they were visited half as often, it would be a fifth."""
    monkeypatch.setattr(PriorWeighting, "weights", lambda self, index: torch.where(index < 500, 1.0, 0.5))
    in_loss, in_statistics, perform = [], [], TrainingStep.__call__

    def spy(self, batch, context):
        outcome = perform(self, batch, context)
        other = batch.index >= 500
        for found, counts in ((in_loss, self.weighting.factors(batch.index)), (in_statistics, self.net.weights)):
            found.append(float(counts[other].sum() / counts.sum()))
        return outcome

    monkeypatch.setattr(TrainingStep, "__call__", spy)
    wrssl.fit(moons, method="entmin", weight_options={"refine": False}, steps=60, fallback=False)
    assert np.mean(in_loss) == pytest.approx(1 / 3, abs=0.02)
    assert np.mean(in_statistics) == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize(("refresh", "expected"), [(10, [0, 10, 20, 30]), (0, [0])])
def test_features_are_compared_anew_while_they_change(refresh, expected, moons, made):
    options = {"embedding": "features", "refresh": refresh, "kinds": "linear"}
    wrssl.fit(moons, method="entmin", weight_options=options, steps=35, seed=0, fallback=False)
    assert [step for step, _ in made[-1].compared] == expected
    scores = [scores for _, scores in made[-1].compared]
    for one, other in itertools.pairwise(scores):
        assert np.abs(one - other).max() > 0.1
    assert made[-1].dealt == expected[1:], "and visits follow"


def test_a_comparison_anew_keeps_clusters_and_evidence(half_foreign):
    weighting = set_up(half_foreign, embedding="features", refresh=10, K=4)
    persuade(weighting)
    cluster, shift = weighting.clusters(), weighting.refinement.evidence.shift
    weighting.begin_step(10)
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
def test_a_stopped_run_goes_on_bit_for_bit(method, options, moons, made, lively, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "SAVE_EVERY", -1.0)

    class Stop(Callback):
        def on_step(self, step, outcome):
            if step == 26:
                raise KeyboardInterrupt

    arguments = {"method": method, "weight_options": options, "steps": 40, "seed": 0, "fallback": False}
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
        assert first.dealt
    assert torch.equal(first.refinement.evidence.sums, second.refinement.evidence.sums)
    np.testing.assert_array_equal(first.prior.scores, second.prior.scores)
    np.testing.assert_array_equal(whole.weights, resumed.weights)
    assert whole.verdicts.equals(resumed.verdicts)
    assert whole.metrics["images"] == resumed.metrics["images"], "features of the pool are counted once"
    for p, q in zip(whole.model.state_dict().values(), resumed.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)
    written = json.loads((tmp_path / "run" / "config.json").read_text())
    assert written["weight_options"] == options


def test_trial_steps_leave_no_trace(moons, made, lively):
    """``steps="auto"`` tries a few steps: evidence, visits and parameters are as if it had not."""
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled[:200], validation=moons.validation)
    arguments = {"method": "entmin", "seed": 0, "fallback": False, "weight_options": {"L": 1, "kinds": "linear"}}
    tried = wrssl.fit(own, steps="auto", **arguments)
    known = wrssl.fit(own, steps=tried.config["steps"], **arguments)
    np.testing.assert_array_equal(tried.weights, known.weights)
    assert made[-1].refinement.evidence.shift.any()
    for p, q in zip(tried.model.state_dict().values(), known.model.state_dict().values(), strict=True):
        assert torch.equal(p, q)


def test_without_validation_the_evidence_comes_from_labels_that_are_held_out(moons, made):
    own = wrssl.Scenario(labeled=moons.labeled, unlabeled=moons.unlabeled, is_ood=moons._is_ood)
    result = wrssl.fit(own, method="entmin", weight_options={"L": 1}, steps=20, seed=0)
    assert made[-1].refinement.evidence.sums.any()
    assert ((result.weights >= 0) & (result.weights <= 1)).all()


def test_a_pool_of_strangers_only_changes_nothing():
    """Nobody belongs: weights are small, and the model is the very one that learns from the labels alone."""
    alien = wrssl.load_scenario("moons", ood="faraway", ratio=1.0, seed=0)
    result = wrssl.fit(alien, method="vat", steps=40, seed=0, fallback=False)
    alone = wrssl.fit(alien, method="supervised", weights="none", bn="batch", steps=40, seed=0)
    assert result.weights.mean() < 0.01
    assert np.isfinite(result.history["loss"]).all()
    for p, q in zip(result.model.state_dict().values(), alone.model.state_dict().values(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-5, atol=1e-6)


def test_without_its_prior_it_begins_with_ones_and_still_judges_and_learns(half_foreign):
    weighting, usual = set_up(half_foreign, prior=False, K=4), set_up(half_foreign, K=4)
    assert weighting.weights(EVERYBODY).tolist() == [1.0] * SIZE
    for mine, other in zip(weighting.belonging(slice(None)), usual.belonging(slice(None)), strict=True):
        np.testing.assert_array_equal(mine, other)
    persuade(weighting, updates=200)
    hurts = weighting.refinement.cluster_of == 0
    assert weighting.weights(EVERYBODY)[hurts].max() < 0.5
    assert weighting.weights(EVERYBODY)[~hurts].min() > 0.9

"""Embeddings of the pool: the right numbers, the same in parts as at once, never more members at once than a chunk."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from torch import nn

import wrssl.training.embedding as module
from wrssl import Scenario
from wrssl.api import OptionError, Pool
from wrssl.config import FitConfig
from wrssl.data import raw_rows
from wrssl.registry import WEIGHTINGS
from wrssl.training import EmbeddedRows, build_network
from wrssl.training.embedding import PoolEmbedding

SIZE = 1_203


@pytest.fixture(autouse=True)
def no_global_generator_is_used(global_rng_untouched):
    """Dropout in the network would, if the mode were wrong."""


def stored(kind="images", size=SIZE, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if kind == "table":
        return torch.randn(size, 9, generator=generator) * torch.linspace(3, 0.5, 9) + 2
    side = 40 if kind == "large" else 6
    shapes = 150 * torch.rand(4, 2, side, side, generator=generator)
    noise = 100 * torch.rand(size, 2, side, side, generator=generator)
    return (shapes[torch.arange(size) % 4] + noise).to(torch.uint8)


def embedding_of(pool, model=None, seed=0):
    known, y = stored_like(pool, 20), torch.arange(20) % 2
    scenario = Scenario(labeled=(known, y), unlabeled=pool)
    net = build_network(scenario, FitConfig(model=model or "auto"), torch.device("cpu"))
    return PoolEmbedding(pool, known, net, torch.device("cpu"), torch.Generator().manual_seed(seed)), net


def stored_like(pool, size):
    kind = "table" if pool.dim() == 2 else "large" if pool.shape[2] == 40 else "images"
    return stored(kind, size, seed=77)


def network_inputs(pool):
    """By numpy: bytes become x / 127.5 − 1."""
    values = pool.numpy()
    return values / 127.5 - 1 if values.dtype == np.uint8 else values.astype(np.float64)


@pytest.mark.parametrize("kind", ["images", "table"])
def test_raw_rows_are_network_inputs(kind):
    pool = stored(kind)
    rows = embedding_of(pool)[0]("raw")
    assert len(rows) == SIZE
    assert rows[:].dtype == torch.float32
    np.testing.assert_allclose(rows[:].numpy(), network_inputs(pool).reshape(SIZE, -1), atol=1e-6)


def test_large_images_are_averaged_down():
    pool = torch.zeros(3, 1, 64, 32, dtype=torch.uint8)
    pool[:, :, 1::2] = 255
    assert raw_rows(pool).shape == (3, 32 * 32)
    np.testing.assert_allclose(raw_rows(pool), 0.0, atol=1e-6)
    assert raw_rows(torch.zeros(3, 1, 10, 90)).shape == (3, 10 * 32)


@pytest.mark.parametrize("kind", ["images", "table", "large"])
def test_components_equal_a_singular_value_decomposition(kind):
    pool = stored(kind, 300)
    found = embedding_of(pool)[0]("pca")[:].double().numpy()
    flat = raw_rows(pool).double().numpy()
    u, s, _ = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    want = (u * s)[:, : found.shape[1]]
    assert found.shape[1] == min(50, flat.shape[1])
    strong = slice(0, 3)  # eigenvalues far apart, so that their directions are determined well
    signs = np.sign((found[:, strong] * want[:, strong]).sum(0))
    np.testing.assert_allclose(found[:, strong], signs * want[:, strong], atol=2e-3)
    np.testing.assert_allclose(np.square(found).sum(0), np.square(want).sum(0), rtol=1e-3)


@pytest.mark.parametrize("kind", ["raw", "pca", "features"])
@pytest.mark.parametrize("data", ["images", "table"])
def test_parts_equal_the_whole_whatever_the_chunk(kind, data, monkeypatch):
    pool = stored(data)
    rows = embedding_of(pool)[0](kind)
    whole = rows[:]
    some = torch.randperm(SIZE, generator=torch.Generator().manual_seed(2))[:500]
    for chunk in (1, 64, 333, 5_000):
        monkeypatch.setattr("wrssl.training.embedding.CHUNK", chunk)
        torch.testing.assert_close(rows[:], whole, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(rows[100:777], whole[100:777], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(rows[1_200:9_999], whole[1_200:], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(rows[some], whole[some], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["raw", "pca", "features"])
def test_the_clusters_of_the_pool_do_not_depend_on_the_chunk_of_its_embedding(kind, monkeypatch):
    """The pool is so large that k-means finds its centers in a sample and assigns members part by part."""
    monkeypatch.setattr("wrssl.training.embedding.FIT_ROWS", 400)
    size = 20_500
    pool, found = stored("images", size), []
    for chunk in (500, 2_000, 50, 64, 30_000):
        monkeypatch.setattr("wrssl.training.embedding.CHUNK", chunk)
        weighting = WEIGHTINGS.create("wr-cluster", {"K": 7, "embedding": kind, "warmup": 0})
        weighting.setup(Pool(size, 2, embedding_of(pool)[0], 3))
        found.append(weighting.clusters())
    assert all(torch.equal(found[0], other) for other in found[1:])
    assert len(found[0].unique()) == 7


def test_components_come_from_a_sample_and_its_generator(monkeypatch):
    pool = stored("table", 900)
    whole = embedding_of(pool)[0]("pca")[:]
    monkeypatch.setattr("wrssl.training.embedding.FIT_ROWS", 200)
    one, again, other = (embedding_of(pool, seed=seed)[0]("pca")[:] for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one, whole)
    # Nine features have nine components: whatever the sample, a rotation, which keeps all distances.
    np.testing.assert_allclose(pdist(one[:60].double()), pdist(pool[:60].double()), rtol=1e-5)


@pytest.mark.parametrize("kind", ["raw", "pca", "features"])
@pytest.mark.parametrize("data", ["images", "table"])
def test_known_examples_are_embedded_like_members(kind, data):
    """Members that are the labeled examples once more have the same rows, whatever is asked for first."""
    labeled = stored_like(stored(data, 1), 20)
    pool = torch.cat([stored(data, 200), labeled])
    first, second = embedding_of(pool)[0], embedding_of(pool)[0]
    members, known = first(kind)[:], first.known(kind)
    assert len(known) == 20
    torch.testing.assert_close(known[:], members[-20:], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(known[3:7], members[-17:-13], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(known[torch.tensor([4, 0])], members[[-16, -20]], rtol=1e-5, atol=1e-5)
    assert torch.equal(second.known(kind)[:], known[:])
    assert torch.equal(second(kind)[:], members)


def test_components_of_known_examples_are_those_of_the_pool():
    """By a singular value decomposition of the pool alone: its mean is subtracted, its directions are taken."""
    pool = stored("table", 300)
    embed = embedding_of(pool)[0]
    found, labeled = embed.known("pca")[:].double().numpy(), stored_like(pool, 20).double().numpy()
    mean = pool.double().numpy().mean(0)
    directions = np.linalg.svd(pool.double().numpy() - mean, full_matrices=False)[2]
    want = (labeled - mean) @ directions.T
    np.testing.assert_allclose(np.abs(found[:, :3]), np.abs(want[:, :3]), atol=2e-3)
    assert np.abs(found.mean(0)).max() > 0.1, "they are not centred themselves"


def test_components_are_found_once(monkeypatch):
    """The pool may be on disk, and another sample would give other directions."""
    monkeypatch.setattr("wrssl.training.embedding.FIT_ROWS", 100)
    monkeypatch.setattr("wrssl.training.embedding.CHUNK", 1_000)
    found = []

    def spy(pool, generator, rows):
        found.append(len(pool))
        return components(pool, generator, rows)

    components = module.principal_components
    monkeypatch.setattr(module, "principal_components", spy)
    embed = embedding_of(stored("table", 300))[0]
    embed.known("raw"), embed("features")
    assert found == [], "they were not asked for"
    first = embed("pca")[:]
    assert torch.equal(embed("pca")[:], first)
    embed.known("pca")[:]
    assert found == [300]


def test_a_constant_pool_has_components():
    rows = embedding_of(torch.full((30, 2, 6, 6), 9, dtype=torch.uint8))[0]("pca")[:]
    assert rows.abs().max() < 1e-5


def test_no_more_members_than_a_chunk_are_embedded_at_once(monkeypatch):
    monkeypatch.setattr("wrssl.training.embedding.CHUNK", 100)
    sizes = []

    def record(x):
        sizes.append(len(x))
        return x.flatten(1).float()

    rows = EmbeddedRows(stored("table"), record)
    assert sizes == [], "nothing is computed before it is asked for"
    rows[3:250]
    rows[torch.arange(250)]
    assert sizes == [100, 100, 47, 100, 100, 50]


def test_features_are_those_of_the_network_as_it_is_without_a_trace():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Flatten(), nn.utils.skip_init(nn.Linear, 72, 5), nn.BatchNorm1d(5))
            self.drop, self.head = nn.Dropout(0.5), nn.utils.skip_init(nn.Linear, 5, 2)

        def forward(self, x):
            return self.head(self.drop(self.body(x)))

    model = Own()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
        model.body[2].running_var.fill_(4.0)
    embed, net = embedding_of(stored("images"), model)
    rows = embed("features")
    state = {name: value.clone() for name, value in net.module.state_dict().items()}

    def by_hand():
        layer, norm = net.module.body[1], net.module.body[2]
        x = network_inputs(stored("images")).reshape(SIZE, -1)
        z = x @ layer.weight.detach().double().numpy().T + layer.bias.detach().double().numpy()
        z = (z - norm.running_mean.numpy()) / np.sqrt(norm.running_var.numpy() + norm.eps)
        return z * norm.weight.detach().numpy() + norm.bias.detach().numpy()

    np.testing.assert_allclose(rows[:].numpy(), by_hand(), rtol=1e-3, atol=1e-4)
    assert all(m.training for m in net.module.modules())
    assert all(torch.equal(value, state[name]) for name, value in net.module.state_dict().items())
    assert not rows[:3].requires_grad
    with torch.no_grad():
        net.module.body[1].bias.add_(1.0)
    np.testing.assert_allclose(rows[:].numpy(), by_hand(), rtol=1e-3, atol=1e-4)


def test_an_unknown_embedding_is_a_sentence():
    embed = embedding_of(stored("table", 20))[0]
    for ask in (embed, embed.known):
        with pytest.raises(OptionError, match="no embedding 'vgg'; choose raw, pca or features"):
            ask("vgg")

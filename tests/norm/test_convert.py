"""convert_batchnorm: there and back, whatever the model looks like."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from wrssl.api import ModelError
from wrssl.norm import (
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
    WeightedSyncBatchNorm,
    convert_batchnorm,
    sample_weights,
    weighted_layers,
)


class Block(nn.Module):
    """A residual block as in the usual ResNets."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + x)


def residual_network() -> nn.Sequential:
    stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU())
    return nn.Sequential(stem, Block(4), nn.Sequential(Block(4), Block(4)), nn.Flatten(), nn.Linear(144, 2))


def test_nested_layers_there_and_back():
    model = residual_network()
    parameters, optimizer = dict(model.named_parameters()), torch.optim.SGD(model.parameters(), lr=0.1)
    keys = list(model.state_dict())
    assert convert_batchnorm(model) is model
    assert sum(type(m) is WeightedBatchNorm2d for m in model.modules()) == 7
    assert list(model.state_dict()) == keys
    assert all(parameters[k] is v for k, v in model.named_parameters())
    model(torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))).sum().backward()
    before = model[0][1].weight.clone()
    optimizer.step()  # it still holds the very parameters
    assert not torch.equal(before, model[0][1].weight)
    convert_batchnorm(model, back=True)
    assert sum(type(m) is nn.BatchNorm2d for m in model.modules()) == 7
    assert not weighted_layers(model)


@pytest.mark.parametrize(
    ("plain", "weighted"),
    [
        (nn.BatchNorm1d, WeightedBatchNorm1d),
        (nn.BatchNorm2d, WeightedBatchNorm2d),
        (nn.BatchNorm3d, WeightedBatchNorm3d),
        (nn.SyncBatchNorm, WeightedSyncBatchNorm),
    ],
)
def test_the_root_itself(plain, weighted):
    layer = plain(3, momentum=None, eps=1e-3)
    assert type(convert_batchnorm(layer)) is weighted
    assert (layer.momentum, layer.eps) == (None, 1e-3)
    assert type(convert_batchnorm(layer, back=True)) is plain


def test_state_dicts_are_interchangeable(generator):
    plain, weighted = nn.BatchNorm2d(3), WeightedBatchNorm2d(3)
    plain(torch.randn(4, 3, 2, 2, generator=generator))
    weighted.load_state_dict(plain.state_dict(), strict=True)
    with sample_weights(weighted, torch.rand(4, generator=generator)):
        weighted(torch.randn(4, 3, 2, 2, generator=generator))
    plain.load_state_dict(weighted.state_dict(), strict=True)
    assert torch.equal(plain.running_var, weighted.running_var)
    assert plain.num_batches_tracked == 2


def test_a_shared_layer_stays_one_layer():
    shared = nn.BatchNorm1d(3)
    model = convert_batchnorm(nn.Sequential(nn.Linear(3, 3), shared, nn.Linear(3, 3), shared))
    assert model[1] is model[3] is shared
    assert len(weighted_layers(model)) == 1


def test_sync_batch_norm_runs_in_one_process_on_the_cpu(generator):
    layer, plain = convert_batchnorm(nn.SyncBatchNorm(3)), nn.BatchNorm2d(3)
    x = torch.randn(4, 3, 5, 5, generator=generator)
    torch.testing.assert_close(layer(x), plain(x))
    w = torch.tensor([1.0, 1.0, 0.0, 0.0])
    with sample_weights(layer, w):
        y = layer(x)
    torch.testing.assert_close(y[:2], plain(x[:2]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_weighted_sync_batch_norm_knows_how_many_processes_there_are(processes, generator, monkeypatch):
    """Statistics of this process alone would differ between several, so they are refused there."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: processes)
    layer, x = WeightedSyncBatchNorm(3), torch.randn(4, 3, generator=generator)
    refused = pytest.raises(ModelError, match="processes") if processes > 1 else nullcontext()
    with sample_weights(layer, torch.ones(4)), refused:
        torch.testing.assert_close(layer(x), nn.BatchNorm1d(3)(x))


@pytest.mark.parametrize("processes", [1, 2])
def test_unweighted_sync_batch_norm_synchronizes_between_several_processes_only(processes, generator, monkeypatch):
    """Torch's own layer refuses tensors on the CPU, which shows that the pass is its."""
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: processes)
    layer, x = WeightedSyncBatchNorm(3), torch.randn(4, 3, generator=generator)
    with pytest.raises(ValueError, match="expected input tensor to be on") if processes > 1 else nullcontext():
        torch.testing.assert_close(layer(x), nn.BatchNorm1d(3)(x))


def test_hooks_copies_and_pickles_survive(generator):
    layer = nn.BatchNorm1d(3)
    calls = []
    layer.register_forward_hook(lambda *args: calls.append(1))
    convert_batchnorm(layer)
    layer(torch.randn(4, 3, generator=generator))
    assert calls == [1]
    with sample_weights(layer, torch.ones(4)):
        twin = copy.deepcopy(convert_batchnorm(nn.BatchNorm1d(3)))
    assert type(pickle.loads(pickle.dumps(twin))) is WeightedBatchNorm1d


def test_lazy_layers_are_refused_until_they_know_their_size():
    model = nn.Sequential(nn.LazyBatchNorm1d())
    with pytest.raises(ModelError, match="run one batch"):
        convert_batchnorm(model)
    model(torch.zeros(4, 3))
    assert type(convert_batchnorm(model)[0]) is WeightedBatchNorm1d


def test_a_layer_with_its_own_forward_is_reported():
    class Own(nn.BatchNorm1d):
        def forward(self, input):
            return super().forward(input) + 1

    with pytest.warns(UserWarning, match="stays unweighted"):
        convert_batchnorm(nn.Sequential(Own(3)))


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_torch_script_is_for_converted_back_models_which_refuse_weights():
    model = convert_batchnorm(residual_network())
    x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    model(x)
    with pytest.raises(ModelError, match="back=True"):
        torch.jit.script(model)
    assert len(weighted_layers(model)) == 7  # the model itself stays as it is
    scripted = torch.jit.script(convert_batchnorm(model, back=True).eval())
    torch.testing.assert_close(scripted(x), model(x))
    with pytest.raises(ModelError, match="scripted"):
        sample_weights(scripted, torch.ones(4))


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 5, 5)], ids=str)
def test_a_compiled_function_may_use_weights(shape):
    """``backend="eager"``: what is traced, without a compiler for it."""
    torch._dynamo.reset()
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(shape, generator=generator), torch.rand(6, generator=generator)
    results = []
    for compiled in (False, True):
        layer = (WeightedBatchNorm1d if len(shape) == 2 else WeightedBatchNorm2d)(4)

        def run(x, w, layer=layer):
            with sample_weights(layer, w):
                return layer(x)

        own = x.clone().requires_grad_()
        y = (torch.compile(run, backend="eager") if compiled else run)(own, w)
        y.pow(3).sum().backward()
        results.append([y, own.grad, layer.weight.grad, *layer.buffers()])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)

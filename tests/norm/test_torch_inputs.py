"""The inputs of torch's own tests of batch norm, for both modes and types: with all weights 1 the layers are equal."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from wrssl.norm import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d, sample_weights

common_modules = pytest.importorskip("torch.testing._internal.common_modules", reason="needs the package expecttest")

LAYERS = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
}


def cases():
    for info in common_modules.module_db:
        for dtype in (torch.float32, torch.float64) if info.module_cls in LAYERS else ():
            for training in (True, False):
                inputs = info.module_inputs_func(info, "cpu", dtype, requires_grad=False, training=training)
                for number, given in enumerate(inputs):
                    name = f"{info.module_cls.__name__}-{str(dtype)[6:]}-{'train' if training else 'eval'}-{number}"
                    yield pytest.param(info.module_cls, dtype, training, given, id=f"{name}-{given.desc}")


CASES = list(cases())


def test_torch_has_the_usual_number_of_cases():
    assert len(CASES) >= (88 if torch.__version__ >= "2.13" else 76)  # 76 in torch 2.4


@pytest.mark.parametrize(("kind", "dtype", "training", "given"), CASES)
def test_the_same_output_and_buffers(kind, dtype, training, given):
    arguments, options = given.constructor_input.args, given.constructor_input.kwargs
    (x,) = given.forward_input.args
    theirs, ours = (made(*arguments, **options).to(dtype).train(training) for made in (kind, LAYERS[kind]))
    for p, own in zip(theirs.parameters(), ours.parameters(), strict=True):
        nn.init.uniform_(p, 0.5, 1.5, generator=torch.Generator().manual_seed(0))
        own.data.copy_(p.data)
    expected = theirs(x)
    with sample_weights(ours, torch.ones(len(x))):
        y = ours(x)
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(dict(ours.named_buffers()), dict(theirs.named_buffers()))

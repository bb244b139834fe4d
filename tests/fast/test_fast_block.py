"""A fused block against the layers that it stands for: values, gradients in both modes, buffers."""

from __future__ import annotations

import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call

from wrssl.fast.block import BareBlock, FusedBlock, WindowConv
from wrssl.hypergrad.forward import tangent
from wrssl.norm import Source, WeightedBatchNorm2d, statistics

W = torch.tensor([0.9, 0.1, 0.0, 0.5, 1.0], dtype=torch.float64)


NAMES = ("conv.weight", "conv.bias", "norm.weight", "norm.bias")
CASES = {
    "batch": (Source.BATCH, True, None),
    "batch, no update": (Source.BATCH, False, None),
    "running": (Source.RUNNING, False, None),
    "weighted": (Source.WEIGHTED, True, W),
    "weighted, all ones": (Source.WEIGHTED, True, torch.ones_like(W)),
    "weighted, one member": (Source.WEIGHTED, True, torch.eye(5, dtype=torch.float64)[3]),
    "weighted, all zero": (Source.WEIGHTED, True, torch.zeros_like(W)),
}


def images(side: int = 12, n: int = 5, channels: int = 3, dtype=torch.float64) -> torch.Tensor:
    x = torch.randn(n, channels, side, side, generator=torch.Generator().manual_seed(4), dtype=dtype)
    x[:, :, : side // 3] = 0.0  # as the background of digits: whole pooling windows of equal values
    return x


def layers(kernel=3, padding=1, bias=True, dtype=torch.float64, momentum: float | None = 0.1):
    generator = torch.Generator().manual_seed(5)
    conv = nn.Conv2d(3, 4, kernel, padding=padding, bias=bias).to(dtype)
    norm = WeightedBatchNorm2d(4, momentum=momentum).to(dtype)
    with torch.no_grad():
        for p in (*conv.parameters(), *norm.parameters(), norm.running_mean):
            p.copy_(torch.randn(p.shape, generator=generator, dtype=dtype))
        norm.weight[0] = -1.5  # a falling channel
        norm.running_var.uniform_(0.5, 2, generator=generator)
    return conv, norm


def plain(conv, norm, x):
    return F.max_pool2d(F.relu(norm(conv(x))), 2)


def outcome(run, conv, norm, x, case):
    x = x.clone().requires_grad_()
    parameters = [*conv.parameters(), *norm.parameters()]
    before = {k: v.clone() for k, v in norm.state_dict().items()}
    with statistics([norm], *case):
        y = run(x)
    g = torch.randn(y.shape, generator=torch.Generator().manual_seed(6), dtype=y.dtype)
    gradients = torch.autograd.grad(y, [x, *parameters], g, materialize_grads=True)
    after = {k: v.clone() for k, v in norm.state_dict().items()}
    norm.load_state_dict(before)
    return y, gradients, after


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.parametrize("sizes", [(3, 1, True), (5, 2, False), (2, 1, True)], ids=str)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_values_gradients_and_buffers(case, sizes, momentum):
    conv, norm = layers(*sizes, momentum=momentum)
    x = images(side=11 if sizes[0] == 2 else 12)
    expected = outcome(lambda x: plain(conv, norm, x), conv, norm, x, case)
    got = outcome(FusedBlock(conv, norm), conv, norm, x, case)
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-12, rtol=1e-10)


@pytest.mark.parametrize("case", [CASES[k] for k in ("batch", "running", "weighted", "weighted, all zero")])
def test_forward_mode(case):
    conv, norm = layers()
    both, x = nn.ModuleDict({"conv": conv, "norm": norm}), images()
    everything = _all(conv, norm, x)
    sizes = [t.numel() for t in everything]
    theta = torch.cat([t.detach().reshape(-1) for t in everything])
    direction = torch.randn(theta.shape, generator=torch.Generator().manual_seed(7), dtype=theta.dtype)

    def run(flat, forward):
        pieces = [p.view(t.shape) for p, t in zip(flat.split(sizes), everything, strict=True)]
        both.forward = forward
        with statistics([norm], case[0], False, case[2]):
            return functional_call(both, dict(zip(NAMES, pieces[1:], strict=True)), (pieces[0],))

    expected = tangent(lambda t: run(t, lambda x: plain(conv, norm, x)), theta, direction)
    got = tangent(lambda t: run(t, FusedBlock(conv, norm).forward), theta, direction)
    assert float(got.abs().max()) > 0
    torch.testing.assert_close(got, expected, atol=1e-11, rtol=1e-10)


def _all(conv, norm, x):
    return [x, conv.weight, conv.bias, norm.weight, norm.bias]


@pytest.mark.parametrize("sizes", [(3, 1, True), (5, 2, False), (2, 1, True)], ids=str)
def test_without_batch_norm(sizes):
    conv, _ = layers(*sizes)
    x = images(side=11 if sizes[0] == 2 else 12).requires_grad_()
    everything = [x, *conv.parameters()]

    def run(forward):
        y = forward(x)
        g = torch.randn(y.shape, generator=torch.Generator().manual_seed(6), dtype=y.dtype)
        return y, torch.autograd.grad(y, everything, g)

    expected, got = run(lambda x: F.max_pool2d(F.relu(conv(x)), 2)), run(BareBlock(conv))
    assert float(got[0].detach().max()) > 0
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)


def test_without_batch_norm_gradcheck_in_both_modes():
    conv, _ = layers()
    block = BareBlock(conv)

    def run(x, weight, bias):
        conv.forward = block.forward  # type: ignore[method-assign]
        return functional_call(conv, {"weight": weight * 1, "bias": bias * 1}, (x,))

    x = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    inputs = [t.detach().clone().requires_grad_() for t in (x, conv.weight, conv.bias)]
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=True, fast_mode=True)


def test_without_batch_norm_where_the_kernel_does_not_fit_and_with_changed_parameters():
    conv, _ = layers()
    block, x = BareBlock(conv), images()
    odd = images(side=13)
    torch.testing.assert_close(block(odd), F.max_pool2d(F.relu(conv(odd)), 2), atol=0, rtol=0)
    with torch.no_grad():
        conv.weight.mul_(2.0)
    torch.testing.assert_close(block(x), F.max_pool2d(F.relu(conv(x)), 2), atol=1e-12, rtol=1e-10)


def test_gradcheck_in_both_modes():
    conv, norm = layers()
    block = FusedBlock(conv, norm)

    def run(x, *parameters):
        parameters = [p * 1 for p in parameters]  # gradcheck changes tensors behind autograd's back
        both = nn.ModuleDict({"conv": conv, "norm": norm})
        both.forward = block.forward  # type: ignore[method-assign]
        with statistics([norm], Source.WEIGHTED, False, W):
            return functional_call(both, dict(zip(NAMES, parameters, strict=True)), (x,))

    x = torch.randn(5, 3, 4, 4, generator=torch.Generator().manual_seed(8), dtype=torch.float64)
    inputs = [t.detach().clone().requires_grad_() for t in _all(conv, norm, x)]
    assert torch.autograd.gradcheck(run, inputs, check_forward_ad=True, fast_mode=True)


def test_float32_at_a_mean_a_thousand_deviations_away():
    """Far away the variance must not be a difference of large squares."""
    conv, norm = layers(dtype=torch.float32)
    x = images(dtype=torch.float32) + 1000
    got, expected = FusedBlock(conv, norm)(x), plain(conv.double(), norm.double(), x.double())
    torch.testing.assert_close(got.double(), expected, atol=5e-2, rtol=5e-2)


def test_graphs_do_not_disturb_each_other():
    """Memory belongs to one graph at a time: two passes, then both backwards, one of them twice."""
    conv, norm = layers()
    block = FusedBlock(conv, norm)
    x, z = images(), images().flip(0) * 2
    with statistics([norm], Source.BATCH, False, None):
        expected = [torch.autograd.grad(plain(conv, norm, i).square().sum(), conv.weight)[0] for i in (x, z)]
        first, second = block(x), block(z)
        with torch.no_grad():
            block(z + 1)
        for _ in range(2):
            (got,) = torch.autograd.grad(first.square().sum(), conv.weight, retain_graph=True)
            torch.testing.assert_close(got, expected[0], atol=1e-10, rtol=1e-10)
        (got,) = torch.autograd.grad(second.square().sum(), conv.weight)
        torch.testing.assert_close(got, expected[1], atol=1e-10, rtol=1e-10)


def test_a_graph_and_its_memory_are_released_with_the_result():
    """A cycle through torch's own objects would never be collected, and every pass would cost its memory anew."""
    conv, norm = layers()
    block = FusedBlock(conv, norm)
    y = block(images())
    kept = weakref.ref(y.grad_fn.kept)
    y.sum().backward()
    assert kept() is not None
    del y
    assert kept() is None


def test_memory_does_not_grow_with_the_number_of_passes():
    conv, norm = layers()
    block = FusedBlock(conv, norm)
    counts = []
    for _ in range(4):
        block(images()).sum().backward()
        counts.append({key: len(shelf) for key, shelf in block.memory.free.items()})
    assert counts[0] == counts[3]
    assert all(counts[0].values())


def test_overwriting_the_output_is_noticed():
    conv, norm = layers()
    y = FusedBlock(conv, norm)(images())
    with torch.no_grad():
        y.zero_()
    with pytest.raises(RuntimeError, match="modified inplace"):
        y.sum().backward()


def test_second_derivatives_are_refused_not_wrong():
    conv, norm = layers()
    x = images().requires_grad_()
    (g,) = torch.autograd.grad(FusedBlock(conv, norm)(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


@pytest.mark.parametrize("with_norm", [True, False])
def test_only_parameters_that_require_a_gradient_get_one(with_norm):
    conv, norm = layers()
    block = FusedBlock(conv, norm) if with_norm else BareBlock(conv)
    parameters = dict(nn.ModuleDict({"conv": conv, "norm": norm}).named_parameters())
    found = {}
    for wanted in (set(NAMES), {"conv.weight"}, {"norm.bias", "conv.bias"}, set()):
        for name, p in parameters.items():
            p.requires_grad_(name in wanted)
            p.grad = None
        x = images().requires_grad_()
        with statistics([norm], Source.RUNNING, False, None):
            block(x).square().sum().backward()
        gradients = {name: p.grad for name, p in parameters.items() if p.grad is not None}
        assert set(gradients) == {name for name in wanted if with_norm or name.startswith("conv")}
        for name, gradient in {"x": x.grad, **gradients}.items():
            assert float(gradient.abs().max()) > 0
            torch.testing.assert_close(gradient, found.setdefault(name, gradient), atol=0, rtol=0)


def change(how, conv, norm):
    """Change the parameters, in the ways that a program has."""
    parameters = [*conv.parameters(), *norm.parameters()]
    with torch.no_grad():
        if how == "optimizer":
            torch.optim.Adam(parameters, lr=0.1, fused=False).step()
        elif how == "fused optimizer":  # does not raise the versions of the parameters
            torch.optim.Adam(parameters, lr=0.1, fused=True).step()
        elif how == "load_state_dict":
            conv.load_state_dict({k: v * 2 + 1 for k, v in conv.state_dict().items()})
        elif how == "copy_":
            norm.weight.copy_(-norm.weight)
        elif how == ".data":  # does not raise them either
            conv.weight.data[:, 0].mul_(-2)
            norm.weight.data.mul_(2)
        elif how == "numpy":
            conv.weight.numpy()[:, 0] *= 3
        elif how == "replaced":
            conv.weight = nn.Parameter(conv.weight.detach() * 2 + 1)
        elif how == "type":
            conv.float()
            norm.float()


@pytest.mark.parametrize(
    "how", ["optimizer", "fused optimizer", "load_state_dict", "copy_", ".data", "numpy", "replaced", "type"]
)
def test_changed_parameters_are_seen(how):
    """The expanded kernel is kept between passes, however the parameters change."""
    conv, norm = layers()
    block, x = FusedBlock(conv, norm), images()
    before = block(x)
    before.sum().backward()
    change(how, conv, norm)
    with statistics([norm], Source.BATCH, False, None):
        got, expected = block(x.to(conv.weight)), plain(conv, norm, x.to(conv.weight))
    if how == "type":
        assert got.dtype == torch.float32
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)
    else:
        torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)
        assert not torch.allclose(got, before)


def test_the_expanded_kernel_is_kept_while_the_parameters_stay():
    conv, norm = layers()
    block, x = FusedBlock(conv, norm), images()
    kernel = block.kernel_for(x, conv)
    first = block.widen(kernel, conv.weight, norm.weight)
    assert block.widen(kernel, conv.weight.clone(), norm.weight) is first
    assert block.widen(kernel, conv.weight, -norm.weight) is not first


@pytest.mark.parametrize("what", ["odd size", "autocast", "half", "functorch", "eval"])
def test_elsewhere_the_layers_run(what):
    conv, norm = layers(dtype=torch.float32)
    block, x = FusedBlock(conv, norm), images(dtype=torch.float32)
    if what == "odd size":
        x = x[..., :11]
    if what == "half":
        x = x.bfloat16()
        conv.bfloat16()
        norm.bfloat16()
    if what == "eval":
        norm.eval()
    with statistics([norm], Source.BATCH, False, None), torch.autocast("cpu", enabled=what == "autocast"):
        got = torch.func.vmap(block)(x.unsqueeze(0))[0] if what == "functorch" else block(x)
        torch.testing.assert_close(got, plain(conv, norm, x), atol=1e-5, rtol=1e-4)


def test_weights_of_another_batch_are_refused():
    conv, norm = layers()
    with (
        statistics([norm], Source.WEIGHTED, True, W[:4]),
        pytest.raises(Exception, match="4 weights but the batch has 5"),
    ):
        FusedBlock(conv, norm)(images())


@pytest.mark.parametrize("side", [5, 6])
def test_a_kernel_over_the_whole_image_is_a_product(side):
    conv = nn.Conv2d(3, 4, 5).double()
    x = images(side)
    x = x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2).requires_grad_()
    got, expected = WindowConv(conv)(x), conv(x)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(got.square().sum(), [x, *conv.parameters()]),
        torch.autograd.grad(expected.square().sum(), [x, *conv.parameters()]),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-10)

"""Which cases take the native form and which the composed one, and that neither keeps a graph or memory."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacrev, jvp, vmap

from wrssl.norm import WeightedBatchNorm1d, WeightedBatchNorm2d, convert_batchnorm, sample_weights, use_native_kernels

# torch's first forward-mode derivative imports a module of its own that uses what torch has deprecated.
torch_s_own_warning = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


@pytest.fixture
def layer(generator):
    norm = WeightedBatchNorm2d(3).double()
    with torch.no_grad():
        norm.weight.copy_(torch.rand(3, generator=generator) + 0.5)
        norm.bias.copy_(torch.rand(3, generator=generator))
    return norm


@pytest.fixture
def x(generator):
    return torch.randn(6, 3, 4, 4, generator=generator, dtype=torch.float64)


@pytest.fixture
def w(generator):
    return torch.rand(6, generator=generator, dtype=torch.float64)


def run(layer, x, w, native=True, **options):
    use_native_kernels(layer, native)
    with sample_weights(layer, w, **options):
        return layer(x)


def is_native(y):
    return "_Native" in y.grad_fn.name()


def test_the_switch(layer, x, w):
    assert is_native(run(layer, x, w))
    assert not is_native(run(layer, x, w, native=False))
    twin = copy.deepcopy(layer)
    assert is_native(run(layer, x, w))
    assert not twin.native  # a copy, such as a teacher, computes as its original did
    use_native_kernels(layer, False)
    use_native_kernels(layer, True)
    assert "native" not in vars(convert_batchnorm(layer, back=True))  # converted layers carry no state of ours


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        ((6, 3), "TableNorm"),
        ((6, 3, 1), "TableNorm"),
        ((6, 3, 1, 1), "TableNorm"),
        ((6, 3, 4, 4), "_Native"),
        ((6, 4, 2, 2), "_Native"),
        ((6, 1, 5), "_Native"),  # as many numbers as a table of 6 x 5
        ((6, 12, 2), "_Native"),  # as many as one of 12 x 12
    ],
    ids=str,
)
def test_one_number_per_channel_has_a_function_of_its_own(shape, name, w, generator):
    kind = WeightedBatchNorm1d if len(shape) <= 3 else WeightedBatchNorm2d
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    layer = kind(shape[1], track_running_stats=False).double()
    y = run(layer, x, w)
    assert name in y.grad_fn.name()
    torch.testing.assert_close(y, run(layer, x, w, native=False), atol=1e-12, rtol=0)


@torch_s_own_warning
@pytest.mark.parametrize(("positions", "function"), [((), "TableNorm"), ((4, 4), "Add")])
def test_forward_mode_takes_the_function_that_has_a_derivative_in_it(positions, function, w, generator):
    """The one for tables; other batches are composed."""
    x, along = (torch.randn(6, 3, *positions, generator=generator, dtype=torch.float64) for _ in range(2))
    layer = (WeightedBatchNorm2d if positions else WeightedBatchNorm1d)(3).double()
    with forward_ad.dual_level():
        y = run(layer, forward_ad.make_dual(x.requires_grad_(), along), w)
        assert y.grad_fn.name().startswith(function)


@pytest.mark.parametrize("case", ["transposed", "sliced"])
def test_other_memory_orders_are_composed_and_right(case, layer, x, w):
    other = {
        "transposed": lambda: x.transpose(2, 3).contiguous().transpose(2, 3),
        "sliced": lambda: torch.stack([x, x], -1)[..., 0],
    }[case]()
    y, expected = run(layer, other, w), run(layer, x, w)
    assert not is_native(y)
    torch.testing.assert_close(y, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("expand", [True, False])
def test_a_gradient_in_another_memory_order(expand, layer, x, w, generator):
    x.requires_grad_()
    g = torch.ones((), dtype=torch.float64).expand_as(x)
    if not expand:
        g = torch.randn(6, 4, 4, 3, generator=generator, dtype=torch.float64).permute(0, 3, 1, 2)
    inputs = [x, *layer.parameters()]
    for a, b in zip(*(torch.autograd.grad(run(layer, x, w, n), inputs, g) for n in (True, False)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0)


def test_weights_with_gradients_are_composed(layer, x, w):
    w.requires_grad_()
    y = run(layer, x, w, differentiable=True)
    assert not is_native(y)
    assert torch.autograd.grad(y.square().sum(), w)[0].abs().max() > 0
    assert is_native(run(layer, x, w))


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"track_running_stats": False}], ids=str)
def test_second_derivatives(options, x, w, generator):
    norm = WeightedBatchNorm2d(3, **options).double()
    x, g = x[:, :, :2, :2].contiguous().requires_grad_(), torch.randn(6, 3, 2, 2, generator=generator).double()
    assert is_native(run(norm, x, w))

    def f(x, *parameters):
        values = dict(zip(("weight", "bias"), parameters, strict=False))
        with sample_weights(norm, w):
            return functional_call(norm, values, (x,))

    parameters = [torch.rand(3, generator=generator, dtype=torch.float64).requires_grad_() for _ in norm.parameters()]
    assert torch.autograd.gradcheck(f, (x, *parameters))
    assert torch.autograd.gradgradcheck(f, (x, *parameters), (g.requires_grad_(),))


def test_double_backward_equals_that_of_the_composed_form(layer, x, w, generator):
    direction = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    x.requires_grad_()
    inputs, results = [x, *layer.parameters()], []
    for native in (True, False):
        loss = run(layer, x, w, native).pow(3).sum()
        first = torch.autograd.grad(loss, inputs, create_graph=True)
        penalty = (first[0] * direction).sum() + first[1].square().sum()
        results.append([*first, *torch.autograd.grad(penalty, inputs)])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-12)


def test_a_factor_that_depends_on_the_input(layer, x, w):
    """γ = f(x): the gradient of x with a graph must count that way once, as the one without a graph does."""
    x.requires_grad_()
    with sample_weights(layer, w):
        y = functional_call(layer, {"weight": x.mean((0, 2, 3)) + 2}, (x,))
    loss = y.pow(3).sum()
    plain = torch.autograd.grad(loss, x, retain_graph=True)[0]
    graph = torch.autograd.grad(loss, x, create_graph=True)[0]
    torch.testing.assert_close(graph, plain, atol=1e-10, rtol=0)


@torch_s_own_warning
def test_transforms_of_torch_func(layer, x, w, generator):
    layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    layer.track_running_stats = False
    tangent = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(parameters, x):
        with sample_weights(layer, w):
            return functional_call(layer, parameters, (x,)).pow(3).sum()

    leaf = x.clone().requires_grad_()
    y = loss(parameters, leaf)
    assert is_native(run(layer, x, w))
    (expected,) = torch.autograd.grad(y, leaf)
    by_x = grad(loss, argnums=1)(parameters, x)
    torch.testing.assert_close(by_x, expected, atol=1e-12, rtol=0)
    _, along = jvp(lambda x: loss(parameters, x), (x,), (tangent,))
    torch.testing.assert_close(along, (expected * tangent).sum(), atol=1e-10, rtol=0)
    second = hessian(loss)(parameters, x)["weight"]["weight"]
    torch.testing.assert_close(second, jacrev(grad(loss))(parameters, x)["weight"]["weight"], atol=1e-10, rtol=0)


def test_vmap_over_batches(layer, x, w, generator):
    layer.running_mean = layer.running_var = layer.num_batches_tracked = None
    layer.track_running_stats = False
    batches = torch.randn(4, *x.shape, generator=generator, dtype=torch.float64)
    with sample_weights(layer, w):
        together, one_by_one = vmap(layer)(batches), torch.stack([layer(batch) for batch in batches])
    torch.testing.assert_close(together, one_by_one, atol=1e-12, rtol=0)


@torch_s_own_warning
def test_forward_mode(layer, x, w, generator):
    tangent = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    step = 1e-6
    with forward_ad.dual_level():
        y, slope = forward_ad.unpack_dual(run(layer, forward_ad.make_dual(x, tangent), w))
    ahead, behind = (run(layer, x + sign * step * tangent, w) for sign in (1, -1))
    torch.testing.assert_close(slope, (ahead - behind) / (2 * step), atol=1e-7, rtol=0)
    torch.testing.assert_close(y, run(layer, x, w), atol=1e-12, rtol=0)


def test_nothing_is_kept(layer, x, w):
    """Neither the buffers nor the layer hold a graph, and what backward needed is gone without the collector's help."""
    x.requires_grad_()
    gc.disable()
    try:
        y = run(layer, x, w)
        y.square().sum().backward()
        held = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [reference() for reference in held] == [None, None]
    finally:
        gc.enable()
    assert all(b.grad_fn is None and not b.requires_grad for b in layer.buffers())
    with torch.no_grad():
        assert run(layer, x, w).grad_fn is None


def test_backward_twice_and_a_changed_input(layer, x, w):
    x.requires_grad_()
    y = run(layer, x, w)
    first, second = (torch.autograd.grad(y.pow(3).sum(), x, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    hidden = x * 1
    y = run(layer, hidden, w)
    torch.relu_(y)  # as with torch's layer, the output is free to be written to
    y.sum().backward(retain_graph=True)
    hidden.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.sum().backward()


@pytest.mark.parametrize("backward_inside", [False, True])
def test_autocast_keeps_statistics_and_gradients_in_float32(backward_inside, generator):
    norm, twin = WeightedBatchNorm2d(3), WeightedBatchNorm2d(3)
    x, w = torch.randn(16, 3, 6, 6, generator=generator).bfloat16(), torch.rand(16, generator=generator)
    x.requires_grad_()
    exact = x.detach().float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = run(norm, x, w)
        if backward_inside:
            y.float().pow(3).sum().backward()
    if not backward_inside:
        y.float().pow(3).sum().backward()
    run(twin, exact, w, native=False).bfloat16().float().pow(3).sum().backward()
    assert y.dtype == x.grad.dtype == torch.bfloat16
    assert norm.weight.grad.dtype == norm.running_mean.dtype == torch.float32
    torch.testing.assert_close(norm.running_var, twin.running_var, atol=1e-6, rtol=0)
    torch.testing.assert_close(norm.weight.grad, twin.weight.grad, atol=1e-3, rtol=1e-5)
    torch.testing.assert_close(x.grad.float(), exact.grad, atol=0.01, rtol=0.01)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_layers_and_inputs(dtype, generator):
    norm, exact = WeightedBatchNorm1d(4).to(dtype), WeightedBatchNorm1d(4)
    x, w = torch.randn(16, 4, generator=generator).to(dtype), torch.rand(16, generator=generator)
    y, expected = run(norm, x, w), run(exact, x.float(), w)
    assert y.dtype == norm.running_var.dtype == dtype
    torch.testing.assert_close(y.float(), expected, atol=0.02, rtol=0.01)

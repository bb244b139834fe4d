"""Find the blocks of a network and build the view of it that runs them fused."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from wrssl.fast.block import BareBlock, FusedBlock
from wrssl.fast.window import WindowConv
from wrssl.models import FitSize
from wrssl.norm.layers import Weighted, WeightedBatchNorm2d

# Up to here the gathered windows stay small and torch's own convolution, made for many channels, is not faster.
_MOST_CHANNELS = 16
_RELU = (F.relu, torch.relu, torch.relu_)
_POOL = (F.max_pool2d, torch.max_pool2d)


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, FitSize | Weighted) or super().is_leaf_module(m, module_qualified_name)


def accelerate(backbone: nn.Module, device: torch.device | str = "cpu") -> nn.Module | None:
    """A second view of ``backbone`` with fused blocks, same parameters and buffers; None where nothing can be gained.

    A network that cannot be traced (its forward branches on values, say) runs as it is.
    """
    if torch.device(device).type != "cpu" or _watched(backbone):
        return None
    try:
        graph, other = _traces(backbone)
    except Exception:  # whatever a user's forward raises when it meets a proxy instead of a tensor
        return None
    if str(graph) != str(other):  # a trace is one of the modes for ever, and here they differ (dropout by its function)
        return None
    view = fx.GraphModule(backbone, graph)
    fused = sum(_fuse(view, node) for node in list(graph.nodes))
    if not fused:
        return None
    graph.eliminate_dead_code()
    view.recompile()
    return view


def _traces(backbone: nn.Module) -> tuple[fx.Graph, fx.Graph]:
    """What forward does in training and in evaluation mode; the modes are afterwards as they were."""
    modes = [(module, module.training) for module in backbone.modules()]
    try:
        return _Tracer().trace(backbone.train()), _Tracer().trace(backbone.eval())
    finally:
        for module, training in modes:
            module.training = training


def _fuse(view: fx.GraphModule, node: fx.Node) -> bool:
    """Replace the chain that starts at this convolution, if it is one."""
    conv = _module(view, node)
    if type(conv) is not nn.Conv2d or not _plain(conv):
        return False
    chain = [each for each in (node, *_followers(node, 3)) if type(_module(view, each)) is not nn.Identity]
    block, last = _block(view, conv, chain)
    if block is not None:
        if conv.in_channels > _MOST_CHANNELS or any(_overwrites(view, user) for user in last.users):
            return False
        _replace(view, node, last, block)
        return True
    if conv.padding == (0, 0):
        _replace(view, node, node, WindowConv(conv))
    return False


def _block(view: fx.GraphModule, conv: nn.Conv2d, chain: list[fx.Node]) -> tuple[nn.Module | None, fx.Node]:
    """What stands for the chain after this convolution, and the last node that it replaces."""
    norm = _module(view, chain[1]) if len(chain) > 1 else None
    block: nn.Module = BareBlock(conv)
    rest = chain[1:]
    if type(norm) is WeightedBatchNorm2d and _ordinary(norm):
        block, rest = FusedBlock(conv, norm), chain[2:]
    fits = len(rest) > 1 and _is_relu(view, rest[0]) and _is_pool(view, rest[1])
    return (block, rest[1]) if fits else (None, chain[0])


def _replace(view: fx.GraphModule, first: fx.Node, last: fx.Node, module: nn.Module) -> None:
    name = f"fused_{first.name}"
    view.add_module(name, module)
    with view.graph.inserting_before(first):
        new = view.graph.call_module(name, (first.args[0],))
    last.replace_all_uses_with(new)


def _followers(node: fx.Node, count: int) -> list[fx.Node]:
    """The next nodes of a chain, as long as each result is used once."""
    found: list[fx.Node] = []
    while len(found) < count and len(node.users) == 1:
        node = next(iter(node.users))
        found.append(node)
    return found


def _module(view: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    return view.get_submodule(str(node.target)) if node.op == "call_module" else None


def _is_relu(view: fx.GraphModule, node: fx.Node) -> bool:
    if node.op == "call_function":
        return node.target in _RELU
    return (node.op == "call_method" and node.target in ("relu", "relu_")) or type(_module(view, node)) is nn.ReLU


def _is_pool(view: fx.GraphModule, node: fx.Node) -> bool:
    pool = _module(view, node)
    if type(pool) is nn.MaxPool2d:
        given: dict[str, Any] = vars(pool)
    elif node.op == "call_function" and node.target in _POOL:
        names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    else:
        return False
    two = (2, (2, 2), [2, 2])
    return (
        given.get("kernel_size") in two
        and given.get("stride") in (None, [], *two)
        and given.get("padding", 0) in (0, (0, 0))
        and given.get("dilation", 1) in (1, (1, 1))
        and not given.get("ceil_mode")
        and not given.get("return_indices")
    )


def _overwrites(view: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node changes its input in place: pooling does not need its result any more, a block does."""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    return bool(getattr(_module(view, node), "inplace", False) or node.kwargs.get("inplace") or name.endswith("_"))


def _plain(conv: nn.Conv2d) -> bool:
    return (
        conv.stride == (1, 1)
        and conv.dilation == (1, 1)
        and conv.groups == 1
        and conv.padding_mode == "zeros"
        and not isinstance(conv.padding, str)
    )


def _ordinary(norm: Weighted) -> bool:
    return norm.affine and norm.running_mean is not None


def _watched(module: nn.Module) -> bool:
    """Whether somebody has put hooks or parametrisations on a layer, which a fused block would not call."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(any(getattr(m, kind) for kind in kinds) or hasattr(m, "parametrizations") for m in module.modules())

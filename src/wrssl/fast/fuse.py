"""Find the blocks of a network and build the view of it that runs them fused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from wrssl.fast.block import BareBlock, FusedBlock, WindowConv
from wrssl.norm import Weighted, WeightedBatchNorm2d, weighted_layers

# Up to here the gathered windows stay small and torch's own convolution, made for many channels, is not faster.
_MOST_CHANNELS = 16
_RELU = (F.relu, torch.relu, torch.relu_)
_POOL = (F.max_pool2d, torch.max_pool2d)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def accelerate(backbone: nn.Module, device: torch.device | str = "cpu") -> nn.Module:
    """``backbone`` with fused blocks: a module with the same parameters and buffers, by the same names.

    It computes what the backbone computes, up to rounding, and can be differentiated once, in reverse or forward mode.
    A block calls its layers one by one wherever its kernel does not apply: images of another size, other types and
    devices, autocast, ``torch.func`` transforms, weights that need a gradient. The whole backbone runs as it is while
    there are hooks on it, or while its batch is spread over processes.

    Args:
        backbone: the network, its batch-norm layers converted.
        device: where it will run.

    Returns:
        The accelerated module, or ``backbone`` itself where nothing can be fused: on another device than a CPU, or if
        the network cannot be traced (its forward branches on values, say) or has hooks or parametrizations.
    """
    modules = list(backbone.modules())
    watched = any(_hooks(modules)) or any(hasattr(module, "parametrizations") for module in modules)
    if torch.device(device).type != "cpu" or watched:
        return backbone
    try:
        graph, other = _traces(backbone)
    except Exception:  # any error that a user's forward raises for a proxy in place of a tensor
        return backbone
    if str(graph) != str(other):  # a trace is fixed to one of the modes, and here they differ (functional dropout)
        return backbone
    view = fx.GraphModule(backbone, graph)
    _share_tensors(view, backbone)
    if not sum(_fuse(view, node) for node in list(graph.nodes)):
        return backbone
    graph.eliminate_dead_code()
    view.recompile()
    return _Accelerated(backbone, view)


class _Accelerated(nn.Module):
    """A backbone together with the view of it that has fused blocks.

    Parameters, buffers and submodules are the backbone's own dictionaries, so that names, modes, moves to another type
    and replaced parameters are always those of the backbone.
    """

    def __init__(self, backbone: nn.Module, view: fx.GraphModule) -> None:
        super().__init__()
        for name in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            self.__dict__[name] = backbone.__dict__[name]
        self.training = backbone.training
        self._forms = backbone, view  # a tuple, so that they are not registered
        self._hooks = _hooks(backbone.modules())
        self._norms = weighted_layers(backbone)

    def train(self, mode: bool = True) -> _Accelerated:
        """Switch the mode of all layers, as the backbone does."""
        self._forms[0].train(mode)
        self.training = mode
        return self

    def forward(self, x: Tensor) -> Tensor:
        """The output of the backbone."""
        backbone, view = self._forms
        if any(self._hooks) or any(norm.part is not None for norm in self._norms):
            backbone.training = self.training
            output: Tensor = backbone(x)
        else:
            output = view.forward(x)
        return output


def _hooks(modules: Iterable[nn.Module]) -> list[Any]:
    """The collections of hooks of these modules; each is empty or not at the moment of the look."""
    return [getattr(module, kind) for module in modules for kind in _HOOKS]


def _share_tensors(view: fx.GraphModule, backbone: nn.Module) -> None:
    """Replace the dictionaries of tensors in the view's own containers by those of the backbone's containers."""
    for name, container in view.named_modules():
        own = backbone.get_submodule(name)
        if container is not own:
            for field, tensor in container._buffers.items():
                if field not in own._buffers:  # a plain attribute of the backbone
                    container.__dict__[field] = tensor
            container.__dict__.update(_parameters=own._parameters, _buffers=own._buffers)


class _Tracer(fx.Tracer):
    """Leaves are torch's modules, weighted layers, and modules without layers or parameters of their own (resizing)."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        empty = next(m.children(), None) is None and next(m.parameters(), None) is None
        return empty or isinstance(m, Weighted) or super().is_leaf_module(m, module_qualified_name)


def _traces(backbone: nn.Module) -> tuple[fx.Graph, fx.Graph]:
    """The graphs of forward in training and in evaluation mode; the modes are restored."""
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
    """The block for the chain after this convolution, and the last node that it replaces."""
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
    """Whether a node changes its input in place: pooling does not need its own result in backward, a block does."""
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

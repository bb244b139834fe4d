"""Embedders that the caller brings: an ``nn.Module``, any callable, a model of transformers or timm.

What such an embedder computes is known by its numbers only, so the fingerprint is made of them: the class and the
weights of a module, the source of a function.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wrssl.embedding.embedder import IMAGE, TEXT, Embedder, FloatRows, prefix
from wrssl.embedding.pictures import network_input
from wrssl.errors import DataError, OptionError

if TYPE_CHECKING:
    import torch
    from torch import nn

SIZE = 224
ON_DEVICE = 64  # pictures per call on a device other than the CPU
_TRIAL = np.zeros((SIZE, SIZE, 3), dtype=np.uint8)


def of_callable(function: Any) -> Embedder:
    """An ``nn.Module`` or a function of items as an embedder."""
    import torch

    if isinstance(function, torch.nn.Module):
        return ModuleEmbedder(function)
    if callable(function):
        return CallableEmbedder(function)
    raise OptionError(
        "An embedder is a name, onnx:FILE, hf:DIR-or-id, timm:NAME, an nn.Module or a function of items, not "
        f"{type(function).__name__}; an array of rows is the data itself: Scenario(labeled=(rows, y), unlabeled=rows)."
    )


def weights_digest(module: Any) -> str:
    """Of the class and all parameters and buffers."""
    digest = hashlib.sha256(type(module).__qualname__.encode())
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def usable(device: str) -> torch.device:
    """The device of that name, or an ``OptionError`` where it is not there."""
    import torch

    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"Device {device!r} is not available; take 'cpu', or leave it out.") from error


def place_of(module: nn.Module) -> torch.device:
    """Where its parameters or buffers are; the CPU where it has none."""
    import torch

    return next((x.device for x in (*module.parameters(), *module.buffers())), torch.device("cpu"))


class TorchEmbedder(Embedder):
    """An embedder that runs a module, where the parameters of that module are.

    Attributes:
        module: it stays where it is; another device gets a copy.
    """

    module: nn.Module

    def on(self, device: str) -> Embedder:
        """The same embedder with a copy of the module on this device."""
        place = usable(device)
        if place == place_of(self.module):
            return self
        moved = copy.copy(self)
        moved.module = copy.deepcopy(self.module).to(place)
        moved.batch = type(self).batch if place.type == "cpu" else max(self.batch, ON_DEVICE)
        return moved

    def torch_module(self) -> nn.Module:
        """A copy of the module."""
        return copy.deepcopy(self.module)


class ModuleEmbedder(TorchEmbedder):
    """A module from images ``(B, 3, 224, 224)`` in [−1, 1] to rows ``(B, dim)``; feature maps are averaged.

    The module is put into evaluation mode for the call only, and computes without gradients.
    """

    kind, batch = IMAGE, 16

    def __init__(self, module: Any) -> None:
        self.module = module
        self.fingerprint = f"module-{weights_digest(module)}-1"
        self.dim = int(self.rows([_TRIAL, _TRIAL]).shape[1])

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """One row per picture."""
        import torch

        training = self.module.training
        self.module.eval()
        try:
            with torch.no_grad():
                x = torch.from_numpy(np.stack([network_input(item, SIZE) for item in items]))
                found = self.module(x.to(place_of(self.module))).float().cpu()
        finally:
            self.module.train(training)
        values: FloatRows = (found if found.dim() == 2 else found.flatten(2).mean(2)).numpy()
        return values


class CallableEmbedder(Embedder):
    """A function from a list of items to ``(n, dim)`` floats.

    The attributes ``kind``, ``dim`` and ``fingerprint`` of the function count where it has them; else the kind is
    ``"image"``, the width is that of its first answer, and the fingerprint is that of its source.
    """

    batch = 16

    def __init__(self, function: Callable[[Sequence[Any]], Any]) -> None:
        self._function = function
        self.kind = getattr(function, "kind", IMAGE)
        self.side = getattr(function, "side", 256)
        self.fingerprint = getattr(function, "fingerprint", None) or f"function-{_source_digest(function)}-1"
        trial = "a text" if self.kind == TEXT else _TRIAL
        self.dim = getattr(function, "dim", None) or int(self.rows([trial]).shape[1])

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """What the function gives."""
        found = np.asarray(self._function(items), dtype=np.float32)
        if found.ndim != 2:
            raise DataError(f"The embedder must give one row per item, (n, dim), not an array of shape {found.shape}.")
        return found


def _source_digest(function: Any) -> str:
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise OptionError(
            "The source of this embedder cannot be read, so its rows could not be told from others in the cache; give "
            "it an attribute fingerprint."
        ) from error
    closed = [repr(cell.cell_contents) for cell in getattr(function, "__closure__", None) or ()]
    return hashlib.sha256("\0".join([text, *closed]).encode()).hexdigest()[:16]


@prefix("hf")
def transformers_embedder(name: str) -> Embedder:
    """A model of Hugging Face transformers, from a folder or by ``ID`` or ``ID@REVISION``; its code is never run."""
    if importlib.util.find_spec("transformers") is None:
        raise OptionError('The embedder hf: needs transformers; install it with: pip install "wrssl[hub]"')
    return TransformersEmbedder(name)


class TransformersEmbedder(TorchEmbedder):
    """The mean of the last hidden layer over tokens or patches."""

    batch = 8

    def __init__(self, name: str) -> None:
        from transformers import AutoModel

        name, _, revision = name.partition("@")
        pinned: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": False}
        try:
            self.module = AutoModel.from_pretrained(name, use_safetensors=True, **pinned).eval()  # nosec B615
            self._processor, self.kind = _processor(name, pinned)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"{name} cannot be opened with transformers ({' '.join(str(error).split())[:160]}); give a folder "
                "that save_pretrained wrote, with safetensors, or an id of the hub where it can be reached."
            ) from error
        self.fingerprint = f"hf-{weights_digest(self.module)}-{_settings_digest(self._processor)}-2"
        self.dim = int(self.rows(["a text" if self.kind == TEXT else _TRIAL]).shape[1])

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """One by one, so that a row does not depend on the padding that its neighbors need."""
        import torch

        found = []
        with torch.no_grad():
            for item in items:
                given = (
                    self._processor(item, return_tensors="pt", truncation=True)
                    if self.kind == TEXT
                    else self._processor(images=item, input_data_format="channels_last", return_tensors="pt")
                )
                hidden = self.module(**given.to(place_of(self.module))).last_hidden_state
                found.append(hidden.flatten(2).mean(2)[0] if hidden.dim() == 4 else hidden[0].mean(0))
        rows: FloatRows = torch.stack(found).float().cpu().numpy()
        return rows


def _processor(name: str, pinned: dict[str, Any]) -> tuple[Any, str]:
    """What prepares texts or, where there is no tokenizer, images; the revision is among ``pinned``."""
    from transformers import AutoImageProcessor, AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, **pinned), TEXT  # nosec B615
    except (OSError, ValueError, KeyError, TypeError):
        make: Any = AutoImageProcessor
        return make.from_pretrained(name, backend="pil", **pinned), IMAGE  # nosec B615


def _settings_digest(processor: Any) -> str:
    """Of what happens to an item before the network: two models may share their weights and differ in it."""
    if hasattr(processor, "get_vocab"):  # a tokenizer
        fast = getattr(processor, "backend_tokenizer", None)
        known = sorted(processor.get_vocab().items()) if fast is None else fast.to_str()
        told = [known, processor.model_max_length]
    else:
        told = sorted(processor.to_dict().items())
    return hashlib.sha256(repr(told).encode()).hexdigest()[:8]


@prefix("timm")
def timm_embedder(name: str) -> Embedder:
    """A model of timm without its classifier, with its own preprocessing."""
    if importlib.util.find_spec("timm") is None:
        raise OptionError('The embedder timm: needs timm; install it with: pip install "wrssl[timm]"')
    return TimmEmbedder(name)


class TimmEmbedder(TorchEmbedder):
    """The features before the classifier."""

    kind, batch = IMAGE, 8

    def __init__(self, name: str) -> None:
        import timm
        from PIL import Image

        try:
            self.module = model = timm.create_model(name, pretrained=True, num_classes=0).eval()
        except (RuntimeError, OSError) as error:
            raise OptionError(f"timm cannot open {name!r} ({error}); timm.list_models() has the names.") from error
        self._transform = timm.data.create_transform(**timm.data.resolve_model_data_config(self.module))
        self._open = Image.fromarray
        self.fingerprint = f"timm-{name}-{weights_digest(model)}-1"
        self.dim = int(model.num_features)

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """One row per picture."""
        import torch

        with torch.no_grad():
            x = torch.stack([self._transform(self._open(item)) for item in items])
            rows: FloatRows = self.module(x.to(place_of(self.module))).float().cpu().numpy()
        return rows

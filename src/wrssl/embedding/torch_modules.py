"""Embedders that the caller brings: an ``nn.Module``, any callable, a model of transformers or timm.

What such an embedder computes is known by its numbers only, so the fingerprint is made of them: the class and the
weights of a module, the source of a function.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wrssl.embedding.embedder import IMAGE, TEXT, Embedder, FloatRows, prefix
from wrssl.embedding.pictures import network_input
from wrssl.errors import DataError, OptionError

SIZE = 224
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


class ModuleEmbedder(Embedder):
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
                device = next((p.device for p in self.module.parameters()), torch.device("cpu"))
                found = self.module(x.to(device)).float().cpu()
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


class TransformersEmbedder(Embedder):
    """The mean of the last hidden layer over tokens or patches."""

    batch = 8

    def __init__(self, name: str) -> None:
        from transformers import AutoModel

        name, _, revision = name.partition("@")
        pinned: dict[str, Any] = {"revision": revision or "main", "trust_remote_code": False}
        try:
            self._model = AutoModel.from_pretrained(name, use_safetensors=True, **pinned).eval()  # nosec B615
            self._processor, self.kind = _processor(name, pinned)
        except (OSError, ValueError) as error:
            raise OptionError(
                f"{name} cannot be opened with transformers ({' '.join(str(error).split())[:160]}); give a folder "
                "that save_pretrained wrote, with safetensors, or an id of the hub where it can be reached."
            ) from error
        self.fingerprint = f"hf-{weights_digest(self._model)}-1"
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
                    else self._processor(images=item, return_tensors="pt")
                )
                hidden = self._model(**given).last_hidden_state
                found.append(hidden.flatten(2).mean(2)[0] if hidden.dim() == 4 else hidden[0].mean(0))
        rows: FloatRows = torch.stack(found).float().numpy()
        return rows


def _processor(name: str, pinned: dict[str, Any]) -> tuple[Any, str]:
    """What prepares texts or, where there is no tokenizer, images; the revision is among ``pinned``."""
    from transformers import AutoImageProcessor, AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, **pinned), TEXT  # nosec B615
    except (OSError, ValueError, KeyError, TypeError):
        make: Any = AutoImageProcessor
        return make.from_pretrained(name, use_fast=False, **pinned), IMAGE  # nosec B615


@prefix("timm")
def timm_embedder(name: str) -> Embedder:
    """A model of timm without its classifier, with its own preprocessing."""
    if importlib.util.find_spec("timm") is None:
        raise OptionError('The embedder timm: needs timm; install it with: pip install "wrssl[timm]"')
    return TimmEmbedder(name)


class TimmEmbedder(Embedder):
    """The features before the classifier."""

    kind, batch = IMAGE, 8

    def __init__(self, name: str) -> None:
        import timm
        from PIL import Image

        try:
            self._model = timm.create_model(name, pretrained=True, num_classes=0).eval()
        except (RuntimeError, OSError) as error:
            raise OptionError(f"timm cannot open {name!r} ({error}); timm.list_models() has the names.") from error
        self._transform = timm.data.create_transform(**timm.data.resolve_model_data_config(self._model))
        self._open = Image.fromarray
        self.fingerprint = f"timm-{name}-{weights_digest(self._model)}-1"
        self.dim = int(self._model.num_features)

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """One row per picture."""
        import torch

        with torch.no_grad():
            x = torch.stack([self._transform(self._open(item)) for item in items])
            rows: FloatRows = self._model(x).float().numpy()
        return rows

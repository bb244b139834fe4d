"""Networks as ONNX files, run by ONNX Runtime: converted once from torch, or a user's own (``onnx:FILE``).

An ONNX file is data, but it may ask for code: operators of another domain, which a shared library provides, and tensors
in other files, whose paths it names. Files with either are refused before the runtime sees them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from wrssl.embedding.cache import write_whole
from wrssl.embedding.embedder import IMAGE, Embedder, FloatRows, prefix
from wrssl.embedding.pictures import network_input
from wrssl.errors import DataError, OptionError

INSTALL = 'pip install "wrssl[photos]"'
_DOMAINS = ("", "ai.onnx", "com.microsoft")  # operators that ONNX Runtime itself implements


def runtime(install: str = INSTALL) -> Any:
    """The module onnxruntime; where it is missing, a sentence with the command that installs it."""
    try:
        import onnxruntime
    except ImportError as error:
        raise OptionError(f"This embedder needs ONNX Runtime; install it with: {install}") from error
    return onnxruntime


def open_session(model: Path | bytes, threads: int = 1, install: str = INSTALL) -> Any:
    """A session on the CPU; ``threads`` inside one call, as several calls run side by side."""
    ort = runtime(install)
    data = model if isinstance(model, bytes) else _read(model)
    check_harmless(data, "the network" if isinstance(model, bytes) else str(model))
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    try:
        return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime has a dozen kinds of exception for damaged files
        raise DataError(
            f"{model if isinstance(model, Path) else 'The network'} is no ONNX file that can be run."
        ) from error


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); give the path of an ONNX file.") from error


def check_harmless(data: bytes, name: str) -> None:
    """Refuse a model that asks for code or for other files."""
    try:
        import onnx
    except ImportError as error:
        raise OptionError(f"ONNX files are checked before they are run; install what is needed: {INSTALL}") from error
    try:
        model = onnx.load_model_from_string(data)
    except Exception as error:
        raise DataError(f"{name} is no ONNX file; give one, or convert the network again.") from error
    tensors, domains = [], {entry.domain for entry in model.opset_import}
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        tensors += list(getattr(graph, "initializer", ()))
        for node in graph.node:
            domains.add(node.domain)
            for attribute in node.attribute:
                tensors += [attribute.t, *attribute.tensors]
                graphs += [attribute.g, *attribute.graphs]
    outside = domains - set(_DOMAINS) - {function.domain for function in model.functions}
    if outside:
        raise DataError(f"{name} needs operators from outside ({', '.join(sorted(outside))}) and is not opened.")
    if any(tensor.external_data for tensor in tensors):
        raise DataError(f"{name} keeps its numbers in other files and is not opened; save it as a single file.")


def cached_session(make: Callable[[], bytes], target: Path | None, accepts: Callable[[Any], bool]) -> Any:
    """A session of a converted network, from ``target`` if that computes what it should, else converted anew.

    Args:
        make: the bytes of the ONNX file.
        target: where they are kept; None for nowhere.
        accepts: whether a session computes what it should; a file whose session does not is replaced.
    """
    if target is not None and target.is_file():
        with suppress(DataError):
            session = open_session(target)
            if accepts(session):
                return session
    data = make()
    session = open_session(data)
    if not accepts(session):
        raise DataError("The converted network differs from the original; report this with your versions of onnx.")
    if target is not None:
        with suppress(OSError):  # a cache that cannot be written costs a second next time
            write_whole(target, data)
    return session


@prefix("onnx")
class OnnxEmbedder(Embedder):
    """An ONNX file of the user: one input ``(n, 3, H, W)`` of pixels in [−1, 1], one output with a row per image.

    Where the height of the input is fixed, pictures are brought to that size, else to 224. The output may have more
    axes, which are averaged over (the positions of a feature map).
    """

    kind, parallel = IMAGE, True

    def __init__(self, file: str) -> None:
        path = Path(file)
        data = _read(path)
        self._session = open_session(data)
        wanted = self._session.get_inputs()
        if len(wanted) != 1 or len(wanted[0].shape) != 4:
            raise DataError(f"{path} must have one input of shape (n, 3, height, width); it has {len(wanted)}.")
        height = wanted[0].shape[2]
        self._name, self._size = wanted[0].name, height if isinstance(height, int) else 224
        self.fingerprint = f"onnx-{hashlib.sha256(data).hexdigest()[:16]}-1"
        self.dim = self._run(np.zeros((1, 3, self._size, self._size), np.float32)).shape[1]

    def rows(self, items: Sequence[Any]) -> FloatRows:
        """One row per picture."""
        return self._run(np.stack([network_input(item, self._size) for item in items]))

    def _run(self, x: FloatRows) -> FloatRows:
        found = np.asarray(self._session.run(None, {self._name: x})[0], dtype=np.float32)
        return found if found.ndim == 2 else found.reshape(*found.shape[:2], -1).mean(-1)

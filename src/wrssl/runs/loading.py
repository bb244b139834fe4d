"""Reading a finished run back from its directory.

Nothing in the files is executed, and no size that they state is trusted: a network is made of the tensors that are
there, so that a size in ``config.json`` allocates no memory. Damaged files raise one ``DataError``.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from wrssl.api import DataError, OptionError, WRSSLError
from wrssl.config import OWN_MODULE
from wrssl.evaluate import NewSampleJudge
from wrssl.models import outline_model
from wrssl.norm import convert_batchnorm
from wrssl.runs.directory import CONFIG, HISTORY, JUDGE, METRICS, MODEL, PAGE, SKIPPED, STATE, VERDICTS
from wrssl.runs.files import read_json
from wrssl.runs.result import Result

if TYPE_CHECKING:
    import pandas as pd


def load(directory: str | os.PathLike[str], model: nn.Module | None = None, embedder: Any = None) -> Result:
    """Read a finished run back.

    Args:
        directory: a run directory.
        model: a module of the same structure, where the run was made with your own module; built-in models are rebuilt
            from their name.
        embedder: what makes rows of new items, where the run was made with an embedder of yours; others are found by
            their name.
    """
    folder = Path(directory)
    if not (folder / CONFIG).is_file():
        raise DataError(f"{folder} holds no run (there is no {CONFIG}); give the folder that fit wrote with out=.")
    if not (folder / METRICS).is_file():
        raise DataError(f"The run in {folder} is not finished; finish it with: wrssl fit --resume {folder}")
    with damage_named(folder):
        result = _read(folder, model)
    if embedder is not None:
        from wrssl.embedding import find_embedder

        result.embedder = find_embedder(embedder)
    return result


@contextmanager
def damage_named(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Files that are not as they were written become one ``DataError``."""
    try:
        yield
    except WRSSLError:
        raise
    except Exception as error:  # damaged files fail in many ways
        reason = (str(error).splitlines() or [""])[0][:120]
        raise DataError(
            f"The run in {folder} is damaged ({type(error).__name__}: {reason}); take a copy of it, or fit again."
        ) from error


def _read(folder: Path, model: nn.Module | None) -> Result:
    import pandas as pd
    from safetensors.torch import load_file

    config = read_json(folder / CONFIG)
    tensors = load_file(folder / MODEL)
    if model is None:
        if config["model"] == OWN_MODULE:
            raise OptionError("This run was made with your own module; pass one of the same structure as model=.")
        model = convert_batchnorm(outline_model(config["model"], config["input_shape"], config["num_classes"]))
        model.load_state_dict(tensors, assign=True)
    else:
        model = convert_batchnorm(model)
        model.load_state_dict(tensors)
    if any(tensor.is_floating_point() and not bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise ValueError(f"{MODEL} holds NaN or an infinite value")
    classes = np.asarray(config["classes"])
    if classes.shape != (config["num_classes"],):
        raise ValueError(f"{CONFIG} does not name {config['num_classes']} classes")
    if not _is_embedding(config.get("embedding")):
        raise ValueError(f"{CONFIG} does not say in which embedding the run is")
    verdicts = _verdicts(folder / VERDICTS, classes.dtype.kind == "U")
    judge, page = folder / STATE / JUDGE, folder / STATE / PAGE
    return Result(
        model.eval(),
        verdicts["weight"].to_numpy(dtype=np.float64),
        verdicts,
        pd.read_csv(folder / HISTORY, **_exact()),
        read_json(folder / METRICS),
        config,
        classes,
        NewSampleJudge.load(judge) if judge.is_file() else None,
        _skipped(folder / SKIPPED),
        read_json(page) if page.is_file() else None,
    )


def _is_embedding(value: Any) -> bool:
    """Whether this is what ``wrssl.data.Embedding`` stores; runs on pixels and tables have none."""
    if not isinstance(value, dict):
        return value is None
    words = all(isinstance(value.get(name), str) for name in ("name", "fingerprint", "why"))
    return words and value.get("kind", 0) in (None, "image", "text")


def _exact() -> dict[str, Any]:
    """How pandas reads a number as the one that was written; from version 3 on it always does."""
    import pandas as pd

    return {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}


def _verdicts(path: Path, words: bool) -> pd.DataFrame:
    """The table; a file or a class that is called NA is not a missing value, an empty cell is.

    Args:
        path: of the file.
        words: the classes have names, which may look like numbers.
    """
    import pandas as pd

    return pd.read_csv(
        path,
        keep_default_na=False,
        na_values={"is_ood": [""], "cluster": [""]},
        dtype={"pseudo_label": str} if words else None,
        **_exact(),
    )


def _skipped(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["id"], row["reason"]) for row in csv.DictReader(file)]


def load_page(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """What the report of a finished run shows; the model is not needed for it."""
    page = Path(directory) / STATE / PAGE
    if not page.is_file():
        raise DataError(f"{directory} holds no finished run with a report; give the folder of one that fit wrote.")
    with damage_named(directory):
        found: dict[str, Any] = read_json(page)
    return found

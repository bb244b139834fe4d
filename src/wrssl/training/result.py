"""What ``wrssl.fit`` returns, and how it is stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from wrssl.api import DataError, OptionError
from wrssl.data.convert import to_rows
from wrssl.evaluate.infer import logits_of
from wrssl.models import build_model
from wrssl.norm import convert_batchnorm
from wrssl.training.files import read_json, write_atomically, write_json

if TYPE_CHECKING:
    import pandas as pd

CONFIG, METRICS, HISTORY, VERDICTS, SKIPPED, MODEL, STATE = (
    "config.json",
    "metrics.json",
    "history.csv",
    "verdicts.csv",
    "skipped.csv",
    "model.safetensors",
    "state",
)

OWN_MODULE, ARRAY = "own module", "array"  # what config.json says of things that only the caller has


class Result:
    """A trained model and everything that is known about the run.

    Attributes:
        model: the selected checkpoint.
        weights: one value in [0, 1] per pool member, in pool order.
        verdicts: a data frame with one row per pool member (see ``evaluate/verdicts.py``).
        history: a data frame with one row per evaluation.
        metrics: accuracies and scores as fractions, counts and times.
        config: the settings that repeat the run.
        classes: the names of the classes.
    """

    def __init__(
        self,
        model: nn.Module,
        weights: NDArray[np.float64],
        verdicts: pd.DataFrame,
        history: pd.DataFrame,
        metrics: dict[str, Any],
        config: dict[str, Any],
        classes: NDArray[Any],
    ) -> None:
        self.model, self.weights, self.verdicts, self.history = model, weights, verdicts, history
        self.metrics, self.config, self.classes = metrics, config, classes

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        """The probability of each class, (N, C), columns in the order of ``classes``."""
        rows = to_rows(x, "new")
        if list(rows.shape[1:]) != list(self.config["input_shape"]):
            raise DataError(
                f"The model was trained on examples of shape {tuple(self.config['input_shape'])}, "
                f"not {tuple(rows.shape[1:])}; bring the new ones to that shape."
            )
        p: NDArray[np.float64] = logits_of(self.model, rows).double().softmax(1).numpy()
        return p

    def predict(self, x: Any) -> NDArray[Any]:
        """The most probable class of each example, as it was named in the labels."""
        best: NDArray[Any] = np.asarray(self.classes)[self.predict_proba(x).argmax(1)]
        return best

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the run directory; a directory that holds a run already is refused."""
        folder = claim(directory)
        write_json(folder / CONFIG, self.config)
        self.write_outputs(folder)

    def write_outputs(self, folder: Path) -> None:
        """Everything but ``config.json``, which is written before the training starts."""
        from safetensors.torch import save_file

        tensors = {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        write_atomically(folder / MODEL, lambda p: save_file(tensors, p))
        write_atomically(folder / HISTORY, lambda p: self.history.to_csv(p, index=False))
        write_atomically(folder / VERDICTS, lambda p: self.verdicts.to_csv(p, index=False))
        write_atomically(folder / SKIPPED, lambda p: p.write_text("id,reason\n", encoding="utf-8"))
        write_json(folder / METRICS, self.metrics)  # last: its presence says that the run is complete

    def __repr__(self) -> str:
        accuracy = self.metrics.get("test_accuracy")
        shown = "unknown" if accuracy is None else f"{100 * accuracy:.2f} %"
        return f"Result({self.config['method']}, weights={self.config['weights']}, test accuracy {shown})"


def claim(directory: str | os.PathLike[str]) -> Path:
    """Create a run directory; one that is not empty is never touched."""
    folder = Path(directory)
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"{folder} is a file; choose another name for the run directory.")
    if folder.is_dir() and any(folder.iterdir()):
        raise OptionError(f"{folder} is not empty; choose another run directory, or resume the run that it holds.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(
            f"The run directory {folder} cannot be created ({error.strerror}); choose another."
        ) from error
    return folder


def load(directory: str | os.PathLike[str], model: nn.Module | None = None) -> Result:
    """Read a finished run back.

    Args:
        directory: a run directory.
        model: a module of the same structure, where the run was made with your own module; built-in models are rebuilt
            from their name.
    """
    import pandas as pd
    from safetensors.torch import load_file

    folder = Path(directory)
    if not (folder / CONFIG).is_file():
        raise DataError(f"{folder} holds no run (there is no {CONFIG}); give the folder that fit wrote with out=.")
    if not (folder / METRICS).is_file():
        raise DataError(f"The run in {folder} is not finished; finish it with: wrssl fit --resume {folder}")
    config = read_json(folder / CONFIG)
    if model is None:
        if config["model"] == OWN_MODULE:
            raise OptionError("This run was made with your own module; pass one of the same structure as model=.")
        generator = torch.Generator().manual_seed(0)
        model = build_model(config["model"], config["input_shape"], config["num_classes"], generator)
    model = convert_batchnorm(model)
    model.load_state_dict(load_file(folder / MODEL))
    verdicts = pd.read_csv(folder / VERDICTS)
    weights = verdicts["weight"].to_numpy(dtype=np.float64)
    classes = np.asarray(config["classes"])
    history = pd.read_csv(folder / HISTORY)
    return Result(model.eval(), weights, verdicts, history, read_json(folder / METRICS), config, classes)

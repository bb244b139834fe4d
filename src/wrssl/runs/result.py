"""What ``wrssl.fit`` returns, and how it is stored."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from wrssl import progress
from wrssl.api import DataError, OptionError
from wrssl.data import TEXT, FrameEncoder, ImageReader, Scenario, are_items, image_files, is_frame, printable, to_rows
from wrssl.evaluate import logits_of
from wrssl.runs.directory import HISTORY, JUDGE, METRICS, MODEL, PAGE, REPORT, SKIPPED, STATE, VERDICTS, new_run
from wrssl.runs.files import make_folder, storing, write_atomically, write_json, write_tensors

if TYPE_CHECKING:
    import pandas as pd

    from wrssl.embedding import Embedder
    from wrssl.evaluate import NewSampleJudge


@dataclass(frozen=True)
class ReportSource:
    """What the report shows and a result does not hold itself; gathered when a report is wanted.

    Attributes:
        scenario: the data.
        weight_rows: the distribution of the weights at each evaluation.
        test_logits: the model's output for the test set, where there is one.
    """

    scenario: Scenario
    weight_rows: list[dict[str, Any]]
    test_logits: Tensor | None

    def collect(self, result: Result) -> dict[str, Any]:
        """What ``wrssl.evaluate.report.render`` shows."""
        from wrssl.evaluate.report import collect

        with progress.note("collecting the report"):
            return collect(
                self.scenario, result.model, result.verdicts, result.history, result.metrics, result.config,
                result.classes.tolist(), self.weight_rows, test_logits=self.test_logits,
            )  # fmt: skip


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
        new_samples: judges examples that were not in the pool.
        skipped: files that could not be read, and why.
        embedder: what makes rows of new items, where the run is on an embedding; None until it is needed.

    What ``report.html`` shows is collected when it is first wanted; until then the result refers to the data.
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
        new_samples: NewSampleJudge | None = None,
        skipped: Sequence[tuple[str, str]] = (),
        page: dict[str, Any] | ReportSource | None = None,
    ) -> None:
        self.model, self.weights, self.verdicts, self.history = model, weights, verdicts, history
        self.metrics, self.config, self.classes = metrics, config, classes
        self.new_samples, self.skipped, self._page = new_samples, list(skipped), page
        self.embedder: Embedder | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the data and the embedder, which is found by its name: a pickle of them would surprise."""
        return {**vars(self), "_page": self._page if isinstance(self._page, dict) else None, "embedder": None}

    @property
    def page(self) -> dict[str, Any]:
        """What the report shows."""
        if self._page is None:
            raise DataError("This result was stored without what the report shows; fit it again.")
        if not isinstance(self._page, dict):
            self._page = self._page.collect(self)
        return self._page

    def predict_proba(self, x: Any) -> NDArray[np.float64]:
        """The probability of each class, (N, C), columns in the order of ``classes``."""
        p: NDArray[np.float64] = logits_of(self.model, self._rows(x)).double().softmax(1).numpy()
        return p

    def predict(self, x: Any) -> NDArray[Any]:
        """The most probable class of each example, as it was named in the labels."""
        best: NDArray[Any] = np.asarray(self.classes)[self.predict_proba(x).argmax(1)]
        return best

    def judge(self, x: Any, ids: Sequence[Any] | None = None) -> pd.DataFrame:
        """Label, confidence, ood_score and verdict of examples that were not in the pool, one row each.

        Args:
            x: the examples, in the form in which the pool was given.
            ids: a name for each; default the row numbers.
        """
        if self.new_samples is None:
            raise DataError("This run was stored without what is needed to judge new examples; fit it again.")
        rows = self._rows(x)
        return self.new_samples(ids, rows, logits_of(self.model, rows), np.asarray(self.classes))

    def judge_files(self, paths: Sequence[Path]) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
        """The table of ``judge`` for image files and folders of them, with paths as ids; files not read, and why."""
        stored, embedding = self.config.get("reader"), self.config.get("embedding")
        if stored is None and (embedding is None or embedding.get("kind") is None):
            raise DataError("This run was not trained on files; use wrssl.load(RUN).judge(X) from Python.")
        kind = "image" if embedding is None else embedding["kind"]
        files = [file for path in paths for file in image_files(path, kind)]
        if not files:
            raise DataError(f"There is no {kind} file in what was named; name {kind} files, or folders that hold some.")
        if stored is not None:
            rows, kept, skipped = ImageReader.from_json(stored).read(files)
        else:
            rows, kept, skipped = self._embedded_files(files, kind)
        if not len(kept):
            raise DataError(f"None of the {len(files)} files could be read as {kind} ({skipped[0][1]}); check them.")
        return self.judge(rows, [printable(path.as_posix()) for path in kept]), skipped

    def _embedded_files(self, files: Sequence[Path], kind: str) -> tuple[Any, list[Path], list[tuple[str, str]]]:
        """Rows of these files in the run's embedding, the files that could be read, and why the others could not."""
        from wrssl.data.images import Unreadable, read_text
        from wrssl.embedding import cache_root, embed_items

        items: list[Any] = list(files)
        if kind == TEXT:
            items = [read_text(file) for file in files]
        bad = {number: item.reason for number, item in enumerate(items) if isinstance(item, Unreadable)}
        good = [number for number in range(len(items)) if number not in bad]
        found = embed_items([items[number] for number in good], self._found_embedder(), cache=cache_root())
        bad |= {good[number]: reason for number, reason in found.reasons.items()}
        kept = [file for number, file in enumerate(files) if number not in bad]
        return found.rows[0], kept, [(printable(str(files[number])), bad[number]) for number in sorted(bad)]

    def _found_embedder(self) -> Embedder:
        """That of the run; refused where it is not there, or gives other rows by now."""
        embedding = self.config["embedding"]
        if self.embedder is None:
            from wrssl.embedding import OWN_EMBEDDER, find_embedder

            if embedding["name"] == OWN_EMBEDDER:
                raise OptionError("This run used an embedder of yours; give it again: wrssl.load(RUN, embedder=...).")
            self.embedder = find_embedder(embedding["name"])
        if self.embedder.fingerprint != embedding["fingerprint"]:
            raise OptionError(
                f"This run is in the embedding {embedding['fingerprint']}, and {embedding['name']} is "
                f"{self.embedder.fingerprint} here; install the version that the run was made with, or fit again."
            )
        return self.embedder

    def _rows(self, x: Any) -> Tensor:
        embedding = self.config.get("embedding")
        if embedding is not None and embedding.get("kind") is not None and not is_rows(x, self.config["input_shape"]):
            from wrssl.embedding import cache_root, embed_all

            x = embed_all(x, self._found_embedder(), cache_root())[0]
        encoder = self.config.get("encoder")
        if encoder is not None and is_frame(x):
            x = FrameEncoder.from_json(encoder).transform(x)
        rows = to_rows(x, "new")
        if list(rows.shape[1:]) != list(self.config["input_shape"]):
            raise DataError(
                f"The model was trained on examples of shape {tuple(self.config['input_shape'])}, "
                f"not {tuple(rows.shape[1:])}; bring the new ones to that shape."
            )
        return rows

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the run as one HTML page that needs nothing else; an existing file is not overwritten."""
        target = Path(path)
        if target.exists():
            raise DataError(f"{target} exists already; choose another name for the report.")
        write_page(self.page, target)
        return target

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the run directory; a directory that holds a run already is refused."""
        folder = Path(directory)
        with new_run(folder, self.config), storing(f"The result in {folder}", "save it again elsewhere."):
            self.write_outputs(folder)

    def write_outputs(self, folder: Path) -> None:
        """Everything but ``config.json``, which is written before the training starts."""
        tensors = {k: v.detach().cpu().contiguous().clone() for k, v in self.model.state_dict().items()}
        write_atomically(folder / MODEL, lambda p: write_tensors(tensors, p))
        write_atomically(folder / HISTORY, lambda p: self.history.to_csv(p, index=False))
        write_atomically(folder / VERDICTS, lambda p: self.verdicts.to_csv(p, index=False))
        write_atomically(folder / SKIPPED, self._write_skipped)
        make_folder(folder / STATE)
        if self.new_samples is not None:
            write_atomically(folder / STATE / JUDGE, self.new_samples.save)
        if self._page is not None:
            write_json(folder / STATE / PAGE, self.page)
            write_page(self.page, folder / REPORT)
        write_json(folder / METRICS, self.metrics)  # last: its presence says that the run is complete

    def _write_skipped(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("id", "reason"), *self.skipped])

    def __repr__(self) -> str:
        accuracy = self.metrics.get("test_accuracy")
        shown = "unknown" if accuracy is None else f"{100 * accuracy:.2f} %"
        return f"Result({self.config['method']}, weights={self.config['weights']}, test accuracy {shown})"


def is_rows(x: Any, shape: Sequence[int]) -> bool:
    """Whether these are rows of an embedding already: numbers (N, d)."""
    if are_items(x):
        return False
    given = getattr(x, "shape", None)
    return given is not None and list(given[1:]) == list(shape)


def write_page(page: dict[str, Any], path: Path) -> None:
    """``report.html`` of what was collected: all of it or, where that fails, none of it."""
    from wrssl.evaluate.report import render

    html = render(page)
    write_atomically(path, lambda p: p.write_text(html, encoding="utf-8"))

"""``WRSSLClassifier``: the whole package behind scikit-learn's fit and predict."""

from __future__ import annotations

import copy
import inspect
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from wrssl.config import FitConfig, left_out, parameters
from wrssl.data import Scenario
from wrssl.estimator.inputs import Encoder, check_new, check_training, encode, fit_encoder
from wrssl.estimator.labels import LabelError, Labels, classes_of, is_labeled
from wrssl.evaluate import logits_of
from wrssl.runs import Result
from wrssl.training import fit_with_config

if TYPE_CHECKING:
    import pandas as pd


OWN_NAMES = (
    "method",
    "weights",
    "bn",
    "model",
    "steps",
    "device",
)  # options of ``FitConfig`` that are written out below
MORE = parameters([*left_out("estimator"), *OWN_NAMES])  # its other options


def _with_more(init: Any) -> inspect.Signature:
    """The signature of ``init`` with the names of all options in place of its ``**options``."""
    signature = inspect.signature(init)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    return signature.replace(parameters=[*own, *(p.replace(kind=p.KEYWORD_ONLY) for p in MORE)])


class WRSSLClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn carries no annotations
    """A classifier for few labels and many rows without, some of which may not belong to any class.

    Rows with ``y == -1`` are the pool. Names of classes beside −1 need an array of objects:
    ``np.array(["cat", "dog", -1], dtype=object)``. Without any such row it is trained on the labels alone.

    X may be an array ``(N, F)`` or a data frame, which are scaled and encoded (see ``wrssl.data.frames``), or an array
    of images ``(N, C, H, W)``, which are taken as they are (``uint8``: from [0, 255] to [−1, 1]). All labels are used
    for training: none are held out, and the weights of the pool are driven by cross-fitting.

    Args:
        method: a name from ``wrssl.list_methods()``.
        weights: a name from ``wrssl.list_weightings()``.
        bn: which statistics the passes over the pool use: ``batch``, ``frozen``, ``eval``, ``weighted``.
        model: as for ``wrssl.fit``.
        steps: optimizer steps; ``"auto"`` follows from the size of the pool, 200 to 2,000, at most two minutes.
        random_state: a number repeats the same fit; a ``RandomState`` or None draw a new one for each.
        device: for example ``"cuda"``; None takes a GPU where there is one.
        verbose: above 0 shows a progress bar on standard error.
        options: the other options of ``wrssl.fit``, such as ``lr``, ``batch_size`` or ``method_options``.

    Attributes:
        classes_: the classes, sorted.
        weights_: does it help? One value in [0, 1] per unlabeled row, in their order.
        verdicts_: a data frame with a row per unlabeled row; ``id`` is its number in X.
        transduction_: the label of every row of X: the given one, or the predicted one.
        result_: what ``wrssl.fit`` returned; it works on encoded rows.
        encoder_: a ``FrameEncoder`` for data frames, a ``TableScale`` for arrays, None for images.
        n_features_in_: columns of X; for images the number of values of one.
        feature_names_in_: the names of the columns of a data frame, where all of them are text.
    """

    classes_: Labels
    weights_: NDArray[np.float64]
    verdicts_: pd.DataFrame
    transduction_: Labels
    result_: Result
    encoder_: Encoder
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        method: str = "vat",
        weights: str = "wr",
        bn: str = "weighted",
        model: str | torch.nn.Module = "auto",
        steps: int | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        device: str | torch.device | None = None,
        verbose: int = 0,
        **options: Any,
    ) -> None:
        self.method, self.weights, self.bn, self.model, self.steps = method, weights, bn, model, steps
        self.random_state, self.device, self.verbose = random_state, device, verbose
        for parameter in MORE:
            setattr(self, parameter.name, options.pop(parameter.name, parameter.default))
        if options:
            raise TypeError(f"WRSSLClassifier() got an unexpected keyword argument {next(iter(options))!r}")

    __init__.__signature__ = _with_more(__init__)  # type: ignore[attr-defined]  # where scikit-learn reads the options

    def fit(self, X: Any, y: Any) -> WRSSLClassifier:
        """Train.

        Args:
            X: all rows, labeled or not.
            y: a label per row; −1, as a number, for rows without.
        """
        X, y = check_training(self, X, y)
        known = is_labeled(y)
        self.classes_ = classes_of(y[known])
        self.encoder_ = fit_encoder(X, known)
        rows = encode(self.encoder_, X)
        self.result_ = self._train(rows, y, known)
        self.weights_, self.verdicts_ = self.result_.weights, self.result_.verdicts
        guess = self.classes_[probabilities(self.result_, rows).argmax(1)]
        self.transduction_ = np.where(known, y, guess).astype(self.classes_.dtype)
        return self

    def _train(self, rows: NDArray[Any], y: Labels, known: NDArray[np.bool_]) -> Result:
        """``wrssl.fit`` on encoded rows; where every row has a label, on the labels alone.

        Args:
            rows: all of them, encoded.
            y: their labels.
            known: which rows have one.
        """
        labeled, pool = (rows[known], y[known]), np.flatnonzero(~known)
        some = len(pool) > 0
        # A scenario has a pool; without one the labeled rows take its place, and nothing is reported about them.
        scenario = Scenario(labeled, rows[pool], ids=pool.tolist()) if some else Scenario(labeled, rows)
        options = {name: getattr(self, name) for name in (*OWN_NAMES, *(parameter.name for parameter in MORE))}
        if not some:
            options |= {"method": "supervised", "weights": "none", "method_options": None, "weight_options": None}
        seed, progress = draw_seed(self.random_state), self.verbose > 0
        result = fit_with_config(scenario, FitConfig(**options, seed=seed, progress=progress))
        if not some:
            result.weights, result.verdicts = result.weights[:0], result.verdicts.iloc[:0]
        return result

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probability of each class, ``(N, C)``, columns in the order of ``classes_``."""
        check_is_fitted(self)
        return probabilities(self.result_, encode(self.encoder_, check_new(self, X)))

    def predict(self, X: Any) -> Labels:
        """The most probable class of each row."""
        p = self.predict_proba(X)
        best: Labels = self.classes_[p.argmax(1)]
        return best

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of correct predictions among the rows that have a label; the others are ignored."""
        labels = np.array(column_or_1d(y))
        known = is_labeled(labels)
        if not known.any():
            raise LabelError("No row has a label to compare with (y is -1 everywhere); score other rows.")
        chosen = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(labels[known], self.predict(X)[known], sample_weight=chosen))


def draw_seed(random_state: Any) -> int:
    """A number is the seed itself; a ``RandomState``, or None for numpy's global one, is asked for a new one."""
    source = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(source.randint(np.iinfo(np.int32).max))


def probabilities(result: Result, rows: NDArray[Any]) -> NDArray[np.float64]:
    """Of each class, ``(N, C)``.

    In float64 for tables: sums in float32 differ with the number of rows, and a row should get the same answer
    whatever else is asked about.
    """
    if rows.ndim == 4:
        return result.predict_proba(rows)
    model = copy.deepcopy(result.model).double()
    p: NDArray[np.float64] = logits_of(model, torch.from_numpy(rows).double()).double().softmax(1).numpy()
    return p

"""From what a scikit-learn user passes as X to rows for a network: arrays, data frames, or images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, validate_data

from wrssl.api import DataError
from wrssl.data import FrameEncoder, TableScale, is_frame
from wrssl.estimator.labels import Labels, check_labels

if TYPE_CHECKING:
    from wrssl.estimator.classifier import WRSSLClassifier

Encoder: TypeAlias = FrameEncoder | TableScale | None


class ImageError(DataError, ValueError):
    """Images that do not fit; a ValueError too, since that is what scikit-learn's users and tools expect."""


def is_images(X: Any) -> bool:
    """Four axes (N, C, H, W) are images; lists are never taken for them."""
    return getattr(X, "ndim", 0) == 4


def check_training(estimator: WRSSLClassifier, X: Any, y: Any) -> tuple[Any, Labels]:
    """X as a frame or an array, and y; sets ``n_features_in_`` and ``feature_names_in_``."""
    if is_images(X):
        X = np.asarray(X)
        estimator.n_features_in_ = math.prod(X.shape[1:])
        y = check_labels(y)
    elif is_frame(X):
        X, y = validate_data(estimator, X, y, skip_check_array=True)
        y = check_labels(y)
    else:
        X, y = validate_data(estimator, X, y, dtype=np.float64)
        y = check_labels(y)
    check_consistent_length(X, y)
    return X, y


def fit_encoder(X: Any, labeled: NDArray[np.bool_]) -> Encoder:
    """How rows of this kind become numbers of about the same size; images are taken as they are."""
    if is_frame(X):
        return FrameEncoder.fit(X[labeled], X[~labeled])
    return None if X.ndim == 4 else TableScale.fit(X[labeled], X[~labeled])


def encode(encoder: Encoder, X: Any) -> NDArray[Any]:
    """The rows for the network."""
    rows: NDArray[Any] = X if encoder is None else encoder.transform(X)
    return rows


def check_new(estimator: WRSSLClassifier, X: Any) -> Any:
    """X for a prediction, as a frame or an array of the kind that the estimator was fitted to."""
    if estimator.encoder_ is None:
        X, shape = np.asarray(X), tuple(estimator.result_.config["input_shape"])
        if X.shape[1:] != shape:
            raise ImageError(f"The images of the training had the shape {shape}, not {X.shape[1:]}; bring them to it.")
        return X
    if not isinstance(estimator.encoder_, FrameEncoder):
        return validate_data(estimator, X, reset=False, dtype=np.float64)
    if is_frame(X):
        return validate_data(estimator, X, reset=False, skip_check_array=True)
    import pandas as pd

    cells = validate_data(estimator, X, reset=False, dtype=None, ensure_all_finite=False)
    return pd.DataFrame(cells, columns=[column.name for column in estimator.encoder_.columns])

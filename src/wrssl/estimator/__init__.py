"""The scikit-learn classifier."""

from __future__ import annotations

from wrssl.estimator.classifier import WRSSLClassifier

__all__ = ["WRSSLClassifier"]

"""What scikit-learn asks of a classifier."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_classifiers_classes, parametrize_with_checks

from wrssl.estimator import WRSSLClassifier

EXPECTED = {"check_classifiers_classes": "-1 is used as a class there, and here it marks rows without a label"}


@parametrize_with_checks([WRSSLClassifier()], expected_failed_checks=lambda estimator: EXPECTED)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_the_one_check_that_fails_does_so_for_that_reason():
    with pytest.raises(ValueError, match="only one class, 1"):
        check_classifiers_classes("WRSSLClassifier", WRSSLClassifier(steps=30))


def test_it_passes_as_scikit_learns_own_semi_supervised_classifiers_do():
    check_classifiers_classes("SelfTrainingClassifier", WRSSLClassifier())

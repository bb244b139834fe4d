"""Priors: the weight of a pool member before training, from a comparison of the pool with the labels.

``fit.py`` is where to begin: rows are drawn and divided into folds (``samples.py``), kinds are fitted to them
(``kinds/``) without one fold each (``crossfit.py``), their scores are compared within classes (``classes.py``), stacked
(``stack.py``) and calibrated (``calibrate.py``); ``new_samples.py`` scores examples outside of the pool. Rows of an
embedding have a prior of their own, ``one_class.py``, which is a story by itself. Importing this
package registers the built-in kinds in ``wrssl.registry.PRIORS``.
"""

import wrssl.priors.kinds.logistic
import wrssl.priors.kinds.others  # noqa: F401  (registers kinds)
from wrssl.priors.calibrate import WeightCurve, conformal_p, smooth_p, weight_curve
from wrssl.priors.crossfit import Comparison
from wrssl.priors.fit import Index, Prior, fit_prior
from wrssl.priors.kinds import DEFAULT, Context, Kind, Labels, Matrix, Score
from wrssl.priors.new_samples import PriorScorer, names_of_tensor, scorer_from_state, scorer_of, tensor_of_names
from wrssl.priors.one_class import KINDS as ONE_CLASS
from wrssl.priors.one_class import OneClass, OneClassScorer, fit_one_class
from wrssl.priors.samples import KNOWN_ROWS, POOL_ROWS, Samples
from wrssl.registry import PRIORS, register_prior

__all__ = [
    "DEFAULT",
    "KNOWN_ROWS",
    "ONE_CLASS",
    "POOL_ROWS",
    "PRIORS",
    "Comparison",
    "Context",
    "Index",
    "Kind",
    "Labels",
    "Matrix",
    "OneClass",
    "OneClassScorer",
    "Prior",
    "PriorScorer",
    "Samples",
    "Score",
    "WeightCurve",
    "conformal_p",
    "fit_one_class",
    "fit_prior",
    "names_of_tensor",
    "register_prior",
    "scorer_from_state",
    "scorer_of",
    "smooth_p",
    "tensor_of_names",
    "weight_curve",
]

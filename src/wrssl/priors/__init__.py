"""Priors: the weight of a pool member before training, from a comparison of the pool with the labels.

``fit.py`` is where to begin: rows are drawn and divided into folds (``samples.py``), kinds are fitted to them
(``kinds/``) without one fold each (``crossfit.py``), their scores are compared within classes (``classes.py``), stacked
(``stack.py``) and calibrated (``calibrate.py``); ``new_samples.py`` scores examples outside of the pool. Importing this
package registers the built-in kinds in ``wrssl.registry.PRIORS``.
"""

import wrssl.priors.kinds.logistic
import wrssl.priors.kinds.others  # noqa: F401  (registers kinds)
from wrssl.priors.calibrate import WeightCurve, conformal_p, smooth_p, weight_curve
from wrssl.priors.crossfit import Comparison
from wrssl.priors.fit import Index, Prior, fit_prior
from wrssl.priors.kinds import DEFAULT, Context, Kind, Labels, Matrix, Score
from wrssl.priors.new_samples import PriorScorer, names_of_tensor, tensor_of_names
from wrssl.priors.samples import KNOWN_ROWS, POOL_ROWS, Samples
from wrssl.registry import PRIORS, register_prior

__all__ = [
    "DEFAULT",
    "KNOWN_ROWS",
    "POOL_ROWS",
    "PRIORS",
    "Comparison",
    "Context",
    "Index",
    "Kind",
    "Labels",
    "Matrix",
    "Prior",
    "PriorScorer",
    "Samples",
    "Score",
    "WeightCurve",
    "conformal_p",
    "fit_prior",
    "names_of_tensor",
    "register_prior",
    "smooth_p",
    "tensor_of_names",
    "weight_curve",
]

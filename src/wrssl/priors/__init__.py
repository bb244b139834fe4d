"""Priors: what a pool member weighs before training, from a comparison of the pool with the labels."""

from wrssl.priors.calibrate import conformal_p
from wrssl.priors.fit import Prior, fit_prior
from wrssl.priors.kinds import DEFAULT, KINDS

__all__ = ["DEFAULT", "KINDS", "Prior", "conformal_p", "fit_prior"]

"""The answer of an audit, in words that follow from its numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wrssl.evaluate import Interval

SUPERVISED, PLAIN, ROBUST = "supervised", "plain", "robust"
MATTERS = 0.01  # a difference below a point makes no practical difference


@dataclass(frozen=True)
class Audit:
    """The answer and what it rests on.

    Attributes:
        answer: ``helps``, ``hurts`` or ``neutral``: plain training on the pool against the labels alone.
        difference: of the two accuracies, with its confidence interval.
        robust: robust training against the labels alone.
        accuracies: of each of the three, one per repetition.
        foreign_share: how much of the pool looks foreign; None where it cannot be told.
        advice: what to do.
        steps: of every training.
    """

    answer: str
    difference: Interval
    robust: Interval
    accuracies: dict[str, list[float]]
    foreign_share: float | None
    advice: str
    steps: int
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        says = {
            "helps": "This pool helps: plain training gains",
            "hurts": "This pool hurts: plain training loses",
            "neutral": "No difference can be shown: plain training changes accuracy by",
        }[self.answer]
        gap = self.difference
        amount = _points(gap.mean) if self.answer == "neutral" else _points(abs(gap.mean)).lstrip("+")
        share = "how much of it is foreign cannot be told"
        if self.foreign_share is not None:
            share = f"about {100 * self.foreign_share:.0f} % of it looks foreign"
        return (
            f"{says} {amount} points against the labels alone (95 % interval {_points(gap.low)} to "
            f"{_points(gap.high)}), robust training {_points(self.robust.mean)} ({_points(self.robust.low)} to "
            f"{_points(self.robust.high)}), and {share}; {self.advice}"
        )

    def to_json(self) -> dict[str, Any]:
        """One flat object."""
        return {
            "answer": self.answer,
            "difference": self.difference.mean,
            "ci_low": self.difference.low,
            "ci_high": self.difference.high,
            "foreign_share": self.foreign_share,
            "advice": self.advice,
            "sentence": self.sentence,
            "robust_difference": self.robust.mean,
            "robust_ci_low": self.robust.low,
            "robust_ci_high": self.robust.high,
            **{f"{name}_accuracy": float(np.mean(values)) for name, values in self.accuracies.items()},
            "accuracies": self.accuracies,
            "repeats": len(self.accuracies[PLAIN]),
            "steps": self.steps,
            "notes": self.notes,
        }


def _points(share: float) -> str:
    """A share in points, with its sign; nothing is +0.0."""
    return f"{round(100 * share, 1) + 0.0:+.1f}"


def advice_for(plain: Interval, robust: Interval) -> str:
    """What follows from the two differences; nothing that they do not show."""
    if robust.low > 0 and robust.mean >= plain.mean:
        return "use it, with robust training (wrssl fit)."
    if plain.low > 0:
        return (
            "use it; robust training is not needed for it, and does no harm." if robust.low > 0 else "use it as it is."
        )
    if max(plain.high, robust.high) < 0:
        return "leave it out, or clean it by the verdicts of wrssl fit."
    if plain.high < 0:
        return "never train on it without weights; wrssl fit protects you, the labels alone do as well."
    if max(abs(plain.low), abs(plain.high)) < MATTERS:
        return "it does not matter; spend your time on labels instead."
    return "more labels, or more repeats, would narrow the interval."

"""Judging a result: inference, metrics, the truth about the pool, verdicts."""

"""Readers of the official file forms; they check what a header claims before they believe it."""

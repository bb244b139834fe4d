"""Readers of the official file formats; they check what a header claims before they rely on it."""

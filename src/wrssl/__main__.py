"""``python -m wrssl``."""

from __future__ import annotations

from wrssl.cli import main

main()

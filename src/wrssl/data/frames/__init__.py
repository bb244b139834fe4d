"""Tables as pandas data frames: columns of any kind become numbers that a network can take."""

from __future__ import annotations

from wrssl.data.frames.encoder import FrameEncoder, TableScale, encode_parts, is_frame

__all__ = ["FrameEncoder", "TableScale", "encode_parts", "is_frame"]

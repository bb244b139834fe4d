"""Data: scenarios made from the user's own rows or files, or from named data sets mixed with foreign rows.

The names below are all that other rooms use. What reads image files is loaded when it is first asked for, as Pillow
takes its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wrssl.data import sources  # registers them
from wrssl.data.augment.stored import StoredViews
from wrssl.data.convert import LABELED, POOL, TEST, VALIDATION, to_rows
from wrssl.data.download import take_from_zip
from wrssl.data.frames import FrameEncoder, TableScale, is_frame
from wrssl.data.inputs import CHUNK, Directions, Projection, prepare, raw_rows, transform_from_state, unit_rows
from wrssl.data.items import IMAGE, TEXT, Embedded, Embedding, Items, Unread, are_items, kind_of
from wrssl.data.load import find_scenario, list_scenarios, load_scenario
from wrssl.data.pairs import different_pairs, pairs_of_taken
from wrssl.data.scenario import Origin, Scenario
from wrssl.data.source import Foreign, Parts, Request, foreign_classes, register_foreign, stored
from wrssl.data.splits import divide, random_order, split_classes, spread_over_folds, without_copies
from wrssl.data.streams import check_seed, numpy_stream, stream_seed, torch_stream

if TYPE_CHECKING:
    from wrssl.data.images import ImageReader, image_files, printable

__all__ = [
    "CHUNK",
    "IMAGE",
    "LABELED",
    "POOL",
    "TEST",
    "TEXT",
    "VALIDATION",
    "Directions",
    "Embedded",
    "Embedding",
    "Foreign",
    "FrameEncoder",
    "ImageReader",
    "Items",
    "Origin",
    "Parts",
    "Projection",
    "Request",
    "Scenario",
    "StoredViews",
    "TableScale",
    "Unread",
    "are_items",
    "check_seed",
    "different_pairs",
    "divide",
    "find_scenario",
    "foreign_classes",
    "image_files",
    "is_frame",
    "kind_of",
    "list_scenarios",
    "load_scenario",
    "numpy_stream",
    "pairs_of_taken",
    "prepare",
    "printable",
    "random_order",
    "raw_rows",
    "register_foreign",
    "sources",
    "split_classes",
    "spread_over_folds",
    "stored",
    "stream_seed",
    "take_from_zip",
    "to_rows",
    "torch_stream",
    "transform_from_state",
    "unit_rows",
    "without_copies",
]


def __getattr__(name: str) -> Any:
    if name not in ("ImageReader", "image_files", "printable"):
        raise AttributeError(f"module 'wrssl.data' has no attribute {name!r}")
    from wrssl.data import images

    return getattr(images, name)

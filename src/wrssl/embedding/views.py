"""Augmented versions of a photograph: what a camera could have shown instead, so that the class stays the same.

A view is a crop of 50 to 100 % of the area (3/4 to 4/3 of its proportions), mirrored or not, with brightness, contrast
and saturation changed by up to a third. It follows from the content of the picture and the number of the view alone, so
a view is the same in every run.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageEnhance

from wrssl.embedding.embedder import Picture

AREA = 0.5, 1.0
PROPORTION = 3 / 4, 4 / 3
STRENGTH = 1 / 3


def augmented(picture: Picture, generator: np.random.Generator) -> Picture:
    """One view of a picture ``(H, W, 3)``; its size differs from the original's."""
    height, width = picture.shape[:2]
    area = height * width * generator.uniform(*AREA)
    stretch = math.exp(generator.uniform(math.log(PROPORTION[0]), math.log(PROPORTION[1])))
    w = min(width, max(1, round(math.sqrt(area * stretch))))
    h = min(height, max(1, round(math.sqrt(area / stretch))))
    left, top = int(generator.integers(width - w + 1)), int(generator.integers(height - h + 1))
    part = picture[top : top + h, left : left + w]
    image = Image.fromarray(part[:, ::-1] if generator.random() < 0.5 else part)
    for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = change(image).enhance(1 + generator.uniform(-STRENGTH, STRENGTH))
    return np.asarray(image)

"""Augmentation first, then noise, each from the generator of the step, and nothing where nothing is prescribed."""

from __future__ import annotations

import pytest
import torch

from wrssl.methods.augmentations import strong, weak, with_noise

AUGMENT = 101  # the seed of the context's generator


@pytest.mark.parametrize("view", [weak, strong, with_noise])
def test_without_augmentation_a_view_is_the_noise_alone(view, ref, x, make_context):
    assert view(x, make_context()) is x
    context = make_context(noise=0.3)
    for n in ref.noise(x.shape, AUGMENT, 2):
        ref.close(view(x, context), x.numpy() + 0.3 * n, tolerance=0)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_augmentation_then_noise(noise, ref, x, make_context, shaky):
    context = make_context(noise=noise, augmentation=shaky)
    views = [view(x, context) for view in (weak, strong, strong, weak)]
    for got, want in zip(views, ref.augmented(x.numpy(), AUGMENT, noise, "wssw"), strict=True):
        ref.close(got, want)
    assert torch.equal(context.attack.get_state(), make_context().attack.get_state())


def test_noise_alone_leaves_the_augmentation_out(ref, x, make_context, shaky):
    assert with_noise(x, make_context(augmentation=shaky)) is x

"""Sources of data, and kinds of foreign rows, from outside the package."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import wrssl
from wrssl.data import (
    Foreign,
    Parts,
    Request,
    different_pairs,
    divide,
    find_scenario,
    foreign_classes,
    list_scenarios,
    numpy_stream,
    random_order,
    register_foreign,
    stored,
)
from wrssl.errors import DataError, OptionError
from wrssl.registry import SOURCES, load_plugin, register_source


@pytest.fixture(autouse=True)
def isolated():
    with SOURCES.isolated():
        yield


def rings(request: Request) -> Parts:
    """Two rings in the plane; foreign rows far away, or in the middle."""
    random = numpy_stream(request.seed, "rings")
    labels = np.arange(260) % 2
    angle, radius = random.uniform(0, 2 * np.pi, 260), 1 + labels + random.normal(0, 0.1, 260)
    rows = (radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)).astype(np.float32)
    order = random_order(labels, 40, request.seed, "rings split")
    labeled, validation, pool = divide(rows[order], labels[order], 40, 10, request)
    far = request.ood == "far"
    foreign = random.normal(9 if far else 0, 0.01, (500, 2)).astype(np.float32)
    return Parts(labeled, *pool, validation, foreign=(stored(request.ood, foreign),))


def register_rings(**facts) -> None:
    register_source("rings", **{"kinds": ("far", "middle")} | facts)(rings)


def test_a_source_of_ones_own_is_mixed_like_those_of_the_package():
    register_rings()
    scn = wrssl.load_scenario("rings", ratio=0.3, seed=4)
    assert list_scenarios()["rings"] == ("far", "middle")
    assert (len(scn.labeled[0]), len(scn.validation[0]), len(scn.unlabeled), scn.test) == (20, 40, 200, None)
    assert torch.equal(scn._is_ood, scn.unlabeled.mean(1) > 8)
    assert int(scn._is_ood.sum()) == 60
    assert (scn.name, scn.augment, scn.noise) == ("rings/far", "table", 0.15)
    assert torch.equal(wrssl.load_scenario(**scn.recipe).unlabeled, scn.unlabeled)
    middle = wrssl.load_scenario("rings", "middle", ratio=0.3, seed=4)
    assert float(middle.unlabeled[middle._is_ood].abs().max()) < 0.1


def test_a_source_in_a_file_of_ones_own(tmp_path):
    file = tmp_path / "my_source.py"
    file.write_text(
        "import numpy as np\n"
        "from wrssl.data import Parts, stored\n"
        "from wrssl.registry import register_source\n"
        "@register_source('mine')\n"
        "def load(request):\n"
        "    rows = np.arange(80, dtype=np.float32).reshape(40, 2)\n"
        "    labels = np.arange(40) % 2\n"
        "    return Parts((rows[:8], labels[:8]), rows[8:], labels[8:], foreign=(stored('far', rows + 1000),))\n"
    )
    load_plugin(file)
    scn = wrssl.load_scenario("mine", ratio=0.25)
    assert (scn.name, len(scn.unlabeled), int(scn._is_ood.sum())) == ("mine/foreign", 32, 8)


def test_unknown_names_list_those_that_exist():
    register_rings()
    with pytest.raises(OptionError, match=r"There is no scenario 'ring'; choose one of moons, .*svhn, rings"):
        wrssl.load_scenario("ring")
    with pytest.raises(OptionError, match="rings has no foreign rows 'near'; choose ood from far, middle"):
        wrssl.load_scenario("rings", "near")
    with pytest.raises(OptionError, match="rings has no foreign rows 'near'; choose ood from far, middle"):
        find_scenario("rings", "near")


def test_find_is_asked_before_anything_is_read():
    def find(request: Request) -> None:
        raise DataError(f"rings/{request.ood}.bin is missing")

    find_scenario("moons")  # needs no files
    register_rings(find=find)
    register_foreign("rings", "line", like="middle")(lambda request, parts: pytest.fail("made"))
    for ood, place in ((None, "far"), ("middle", "middle"), ("line", "middle")):
        with pytest.raises(DataError, match=f"rings/{place}.bin is missing"):
            find_scenario("rings", ood)


def test_a_source_that_gives_something_else_is_named():
    register_source("odd")(lambda request: [1, 2])
    with pytest.raises(DataError, match=r"The source 'odd' returned list; its function must return wrssl\.data\.Parts"):
        wrssl.load_scenario("odd")


def test_parts_that_do_not_fit_together():
    rows, labels = np.zeros((4, 2), np.float32), np.zeros(4, np.int64)
    with pytest.raises(DataError, match="4 pool rows and 3 labels"):
        Parts((rows, labels), rows, labels[:3])
    with pytest.raises(DataError, match="type float64; make them uint8 or float32"):
        Parts((rows, labels), rows.astype(np.float64), labels)
    with pytest.raises(AssertionError):
        foreign_classes(rows, labels[:3])


def noise(request: Request, parts: Parts) -> Foreign:
    random = numpy_stream(request.seed, "digits noise")
    return stored("noise", random.integers(0, 256, (500, *parts.pool.shape[1:]), dtype=np.uint8))


def test_one_more_kind_of_foreign_rows_for_a_source_of_the_package():
    register_foreign("digits", "noise")(noise)
    assert list_scenarios()["digits"] == ("patches", "mean", "classes", "mixed", "noise")
    base, scn = wrssl.load_scenario("digits", "patches", 0.5), wrssl.load_scenario("digits", "noise", 0.5)
    assert scn.name == "digits/noise"
    assert int(scn._is_ood.sum()) == 250
    made = stored("noise", numpy_stream(0, "digits noise").integers(0, 256, (500, 1, 8, 8), dtype=np.uint8)).draw
    expected = {row.tobytes() for row in made(250, None, None)}
    assert {row.tobytes() for row in scn.unlabeled[scn._is_ood].numpy()} == expected
    for part in ("labeled", "validation", "test"):
        assert all(torch.equal(a, b) for a, b in zip(getattr(base, part), getattr(scn, part), strict=True))
    assert torch.equal(wrssl.load_scenario(**scn.recipe).unlabeled, scn.unlabeled)


def test_a_kind_may_be_made_of_rows_that_are_taken_out_of_the_pool():
    @register_foreign("digits", "first-of-two", like="mean")
    def first_of_two(request: Request, parts: Parts) -> Foreign:
        def draw(number, taken, labels):
            return 255 - taken[[a for a, _ in different_pairs(labels, number, request.seed)]]

        return Foreign(request.ood, None, draw)

    scn, mean = (wrssl.load_scenario("digits", ood, 0.5) for ood in ("first-of-two", "mean"))
    assert torch.equal(scn.unlabeled[~scn._is_ood], mean.unlabeled[~mean._is_ood])
    own = {row.tobytes() for row in scn.unlabeled[~scn._is_ood].numpy()}
    assert not own & {(255 - row).tobytes() for row in scn.unlabeled[scn._is_ood].numpy()}


def test_kinds_that_cannot_be_added():
    register_foreign("digits", "noise")(noise)
    register_foreign("digits", "noise")(noise)  # the same again: a notebook cell run twice
    with pytest.raises(OptionError, match="digits has foreign rows 'noise' already"):
        register_foreign("digits", "noise")(lambda request, parts: None)
    with pytest.raises(OptionError, match="digits has foreign rows 'mean' already"):
        register_foreign("digits", "mean")(noise)
    with pytest.raises(OptionError, match="digits has no foreign rows 'fashion'; choose like from patches, mean"):
        register_foreign("digits", "more", like="fashion")(noise)
    with pytest.raises(OptionError, match="There is no scenario 'imagenet'"):
        register_foreign("imagenet", "noise")(noise)


def test_mean_wrapped_can_live_outside_of_the_package(small_mnist):
    """What ``sources/mean_wrapped.py`` does, by public names only."""
    inside = wrssl.load_scenario("mnist", "mean-wrapped", 0.5, data_dir=small_mnist)

    @register_foreign("mnist", "outside", like="mean")
    def outside(request: Request, parts: Parts) -> Foreign:
        return wrssl.data.pairs_of_taken("outside", request.seed, lambda first, second: (first + second) // 2)

    scn = wrssl.load_scenario("mnist", "outside", 0.5, data_dir=small_mnist)
    assert torch.equal(scn.unlabeled, inside.unlabeled)
    assert torch.equal(scn._is_ood, inside._is_ood)

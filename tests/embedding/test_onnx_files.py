"""ONNX files of the user: what they may be, and what is refused before the runtime sees it."""

from __future__ import annotations

import numpy as np
import pytest

from wrssl.api import DataError
from wrssl.embedding import embed, find_embedder
from wrssl.embedding.onnx_files import check_harmless

onnx = pytest.importorskip("onnx", reason="the extra 'photos' is not installed")
pytest.importorskip("onnxruntime", reason="the extra 'photos' is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402


def model(kind="GlobalAveragePool", domain="", external=False, height="h"):
    """The mean color of a picture, by the operator ``kind``."""
    constant = numpy_helper.from_array(np.ones(3, np.float32).reshape(1, 3, 1, 1), "one")
    if external:
        constant.data_location = TensorProto.EXTERNAL
        entry = constant.external_data.add()
        entry.key, entry.value = "location", "../../etc/passwd"
    nodes = [
        helper.make_node(kind, ["x"], ["mean"], domain=domain),
        helper.make_node("Mul", ["mean", "one"], ["y"]),
    ]
    shapes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, height, height])]
    rows = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3, 1, 1])]
    imports = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    graph = helper.make_graph(nodes, "g", shapes, rows, [constant])
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


@pytest.mark.parametrize("height", ["h", 8])
def test_a_file_with_one_picture_in_and_a_row_out(tmp_path, cache, height):
    file = tmp_path / "mean.onnx"
    file.write_bytes(model(height=height))
    flat = [np.full((20, 20, 3), value, np.uint8) for value in (0, 255, 51)]
    rows = embed(flat, f"onnx:{file}")
    assert np.allclose(rows, [[-1] * 3, [1] * 3, [-0.6] * 3], atol=1e-3)


def test_the_fingerprint_follows_the_content(tmp_path):
    one, two = tmp_path / "a.onnx", tmp_path / "b.onnx"
    one.write_bytes(model())
    two.write_bytes(model(height=8))
    assert find_embedder(f"onnx:{one}").fingerprint != find_embedder(f"onnx:{two}").fingerprint
    two.write_bytes(model())
    assert find_embedder(f"onnx:{one}").fingerprint == find_embedder(f"onnx:{two}").fingerprint


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"no ONNX file|one input"),
        (b"garbage \xff" * 30, "no ONNX file"),
        (model("Run", "com.evil"), r"operators from outside \(com.evil\)"),
        (model(external=True), "numbers in other files"),
    ],
)
def test_a_file_that_asks_for_code_or_other_files_is_refused(tmp_path, data, message):
    file = tmp_path / "bad.onnx"
    file.write_bytes(data)
    with pytest.raises(DataError, match=message):
        find_embedder(f"onnx:{file}")


def test_operators_are_found_inside_of_branches_too():
    inner = helper.make_graph(
        [helper.make_node("Run", [], ["z"], domain="com.evil")], "inner", [],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("c", TensorProto.BOOL, [1])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    with pytest.raises(DataError, match=r"com\.evil"):
        check_harmless(data, "it")


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(DataError, match=r"cannot be read .* give the path of an ONNX file"):
        find_embedder(f"onnx:{tmp_path / 'none.onnx'}")

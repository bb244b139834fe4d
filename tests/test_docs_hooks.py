"""What turns pages into the site: formulas become MathML, links to files outside docs/ become paths."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOOKS = ROOT / "docs" / "hooks"


def hook(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_hook_{name}", HOOKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TEX, LINKS, OPTIONS = hook("tex"), hook("links"), hook("options")


def drawn(tex: str) -> str:
    """The MathML within <math>, checked to be well-formed."""
    element = ElementTree.fromstring(TEX.to_mathml(tex, block=False))
    assert element.get("alttext") == " ".join(tex.split())
    assert len(element) == 1
    return ElementTree.tostring(element[0], encoding="unicode")


@pytest.mark.parametrize(
    ("tex", "mathml"),
    [
        ("x", "<mi>x</mi>"),
        ("12.5", "<mn>12.5</mn>"),
        (r"\theta_j", "<msub><mi>θ</mi><mi>j</mi></msub>"),
        ("x'_j", "<msubsup><mi>x</mi><mi>j</mi><mrow><mo>′</mo></mrow></msubsup>"),
        ("x^{10}", "<msup><mi>x</mi><mrow><mn>10</mn></mrow></msup>"),
        (r"\tfrac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\frac1C", "<mfrac><mn>1</mn><mi>C</mi></mfrac>"),
        (r"\frac{a}{b}", "<mfrac><mi>a</mi><mi>b</mi></mfrac>"),
        (r"\sqrt a", "<msqrt><mi>a</mi></msqrt>"),
        (r"\sum_i", '<munder><mo movablelimits="true">∑</mo><mi>i</mi></munder>'),
        (r"\sum^P", '<mover><mo movablelimits="true">∑</mo><mrow><mi>P</mi></mrow></mover>'),
        (r"\text{of the}", "<mtext>of\xa0the</mtext>"),
        ("<", '<mo stretchy="false">&lt;</mo>'),
        (r"\left[ a \right)", '<mrow><mo stretchy="true">[</mo><mi>a</mi><mo stretchy="true">)</mo></mrow>'),
    ],
)
def test_formula(tex, mathml):
    assert drawn(tex) == mathml


def test_tables_have_rows_and_cells():
    rows = ElementTree.fromstring(drawn(r"\begin{cases} a & b \\ c & d \end{cases}")).findall("mtable/mtr")
    assert [[cell[0].text for cell in row] for row in rows] == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("tex", [r"\unheardof", "{a", r"\begin{matrix} a", r"\left( a"])
def test_a_formula_that_cannot_be_read_is_an_error(tex):
    with pytest.raises(ValueError, match=r"is not known here|is missing"):
        TEX.to_mathml(tex, block=True)


def test_the_build_is_warned_of_such_a_formula(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tex", TEX)
    page = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"))
    html = r'<span class="arithmatex">\(\unheardof\)</span> <div class="arithmatex">\[a &lt; b\]</div>'
    done = hook("formulas").on_page_content(html, page=page)
    assert "page.md" in caplog.text
    assert r"\(\unheardof\)" in done
    assert '<math alttext="a &lt; b" display="block">' in done


@pytest.mark.parametrize(
    ("link", "on_the_site"),
    [
        ("[CONTRIBUTING.md](../../CONTRIBUTING.md)", "`CONTRIBUTING.md`"),
        ("[sizes](../../CONTRIBUTING.md#style)", "sizes (`CONTRIBUTING.md`)"),
        ("[a page](../concepts/default.md)", "[a page](../concepts/default.md)"),
        ("[nothing](../../no-such-file.md)", "[nothing](../../no-such-file.md)"),
        ("![picture](../../README.md)", "![picture](../../README.md)"),
        ("[far away](https://example.org/x)", "[far away](https://example.org/x)"),
    ],
)
def test_link(link, on_the_site):
    page, config = SimpleNamespace(file=SimpleNamespace(src_uri="guides/x.md")), SimpleNamespace(docs_dir=ROOT / "docs")
    assert LINKS.on_page_markdown(link, page=page, config=config) == on_the_site


def test_the_table_of_options_has_every_option_of_fit_with_its_default():
    import wrssl

    page = OPTIONS.on_page_markdown(f"before\n\n{OPTIONS.MARK}\n")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    signature = inspect.signature(wrssl.fit).parameters
    expected = [(f"`{name}`", f"`{p.default!r}`") for name, p in signature.items() if name != "scenario"]
    assert [(name.removeprefix("| "), default) for name, default, *_ in rows] == expected
    assert all(len(row) == 3 for row in rows)
    without = {name.strip("| `") for name, _, words in rows if "Not in `audit`" in words}
    assert without == set(signature) - set(inspect.signature(wrssl.audit).parameters)


def test_a_page_without_the_mark_stays_as_it_is():
    assert OPTIONS.on_page_markdown("text") == "text"


def test_the_reference_has_the_mark():
    assert (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8").count(OPTIONS.MARK) == 1

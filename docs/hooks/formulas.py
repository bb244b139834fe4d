"""Formulas as MathML, which browsers draw themselves: no script, and nothing to load from elsewhere.

A formula that ``tex.py`` cannot read is a warning, and thus the end of a strict build.
"""

from __future__ import annotations

import html
import logging
import re
from typing import Any

from tex import to_mathml  # mkdocs looks for modules beside this one

log = logging.getLogger("mkdocs.plugins.formulas")
MARKED = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Called by mkdocs with the HTML of every page, in which the extension arithmatex has marked the formulas."""

    def replaced(marked: re.Match[str]) -> str:
        tex = html.unescape(marked[3])
        try:
            return to_mathml(tex, marked[2] == "[")
        except (ValueError, IndexError) as error:
            log.warning("The formula %s in %s: %s", tex, page.file.src_uri, error)
            return marked[0]

    return MARKED.sub(replaced, content)

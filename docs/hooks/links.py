"""Links from a page to files of the repository that are not part of the site, such as CONTRIBUTING.md or an example.

In the repository they are links. On the site there is nothing to link to, so they become the text and the path. A link
to a file that does not exist is left alone, and the strict build complains about it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\.?/[^)#\s]+)(?:#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Called by mkdocs with the text of every page."""
    docs = Path(config.docs_dir).resolve()
    folder = (docs / page.file.src_uri).parent

    def replaced(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        if target.is_relative_to(docs) or not target.is_relative_to(docs.parent) or not target.exists():
            return link[0]
        path, text = target.relative_to(docs.parent).as_posix(), link[1]
        return f"`{path}`" if text.strip("`") in (path, target.name) else f"{text} (`{path}`)"

    return LINK.sub(replaced, markdown)

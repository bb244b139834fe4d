"""Whatever text stands anywhere in a stored report, it reaches the page as text."""

from __future__ import annotations

import copy
from html.parser import HTMLParser

import pytest

from wrssl.evaluate import render

HOSTILE = "</script></style></title><script>broken()</script><q onclick=broken()>\"'><q>"


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found, self.scripts = set(), 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found |= {tag, *(name for name, _ in attrs)}
        self.scripts += tag == "script"


def places(value, path=()):
    """Where a text stands in nested lists and dictionaries; one place of every list is enough."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:1]):
            yield from places(inner, (*path, number))
    elif isinstance(value, str):
        yield path


def replaced(data, path):
    data = copy.deepcopy(data)
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = HOSTILE
    return data


def test_every_text_of_the_stored_report_is_escaped(data):
    scripts, seen = Tags(render(data)).scripts, 0
    for path in places(data):
        try:
            html = render(replaced(data, path))
        except Exception:  # some have a known form, such as the picture and packed numbers; the command names the run
            continue
        tags = Tags(html)
        assert "<script>broken" not in html, path
        assert not {"q", "onclick"} & tags.found, path
        assert tags.scripts == scripts, path
        seen += 1
    assert seen > 15


@pytest.mark.parametrize("name", ["model", "method", "weights", "any setting"])
def test_a_setting_is_shown_as_text(data, name):
    config = {**data["config"], name: HOSTILE}
    tags = Tags(render({**data, "config": config}))
    assert not {"q", "onclick"} & tags.found

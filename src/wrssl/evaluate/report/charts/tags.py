"""Elements of SVG as text; every attribute and every text is escaped."""

from __future__ import annotations

from markupsafe import Markup, escape


def tag(kind: str, *children: str, **attributes: object) -> Markup:
    """An element; ``class_`` becomes ``class``, ``stroke_width`` becomes ``stroke-width``, None is left out.

    A child that is no ``Markup`` is text.
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(name.rstrip("_").replace("_", "-"), _number(value))
        for name, value in attributes.items()
        if value is not None
    )
    name = Markup(kind)  # a word of ours  # nosec B704
    return Markup("<{}{}>{}</{}>").format(name, written, Markup("").join(escape(c) for c in children), name)


def label(content: str, x: float, y: float, anchor: str = "middle", class_: str = "tick") -> Markup:
    """A short text."""
    return tag("text", content, x=x, y=y, text_anchor=anchor, class_=class_)


def chart(title: str, description: str, width: int, height: int, *children: str) -> Markup:
    """A whole picture; what it shows is said in words too, for those who cannot see it."""
    said = f"{title}. {description}"
    # viewBox keeps its capital letter: SVG distinguishes, and so does the XML that a page may be stored as.
    return tag("svg", tag("title", said), *children, viewBox=f"0 0 {width} {height}", role="img", class_="chart")


def _number(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value

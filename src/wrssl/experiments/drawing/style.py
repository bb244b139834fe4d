"""Colours, markers and lines that tell curves apart without colour too (Okabe and Ito's palette)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from wrssl.experiments.catalogue.cells import CLEAN, DEFAULT, LEARNER, ORACLE, PAPERS, PLAIN, SUPERVISED

ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#E69F00", "#56B4E9", "#009E73", "#B8A800", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
BLACK, GREY = "#000000", "#777777"


@dataclass(frozen=True)
class Style:
    """How a curve is drawn."""

    colour: str
    marker: str = "o"
    line: str = "-"
    filled: bool = True


ADDED = ", added"  # the end of a curve's name: the same with foreign data added, drawn with open marks
KNOWN = {
    PLAIN: Style(RED, "s"), "SSL-BN": Style(RED, "s"), "SSL-NBN": Style(PURPLE, "D"), "SSL-FBN": Style(ORANGE, "^"),
    "skyline (clean pool, BN)": Style(BLACK, "p"), "skyline without BN (clean pool)": Style(GREY, "p"),
    f"{PAPERS} without CRW": Style(SKY, "h"), PAPERS: Style(BLUE), "WR-SSL": Style(BLUE), "all of it": Style(BLUE),
    DEFAULT: Style(GREEN, "*"),
    "UASD": Style(ORANGE, "^"), "DS3L": Style(PURPLE, "D"), "L2RW": Style(SKY, "v"), "MWN": Style(YELLOW, "P"),
    "last layer": Style(BLUE), "whole network": Style(ORANGE, "s"),
    SUPERVISED: Style(GREY, "x", ":"), LEARNER: Style(GREY, "+", "-."), CLEAN: Style(BLACK, "_", "--"),
    ORACLE: Style(BLACK, "1", ":"),
}  # fmt: skip
REST = [Style(colour, marker, "--") for marker in "hX<>" for colour in (SKY, YELLOW, PURPLE, ORANGE, GREY)]


def styles(curves: list[str]) -> dict[str, Style]:
    """A style for each curve; those that are known look alike in every figure."""
    rest = iter(REST)
    found: dict[str, Style] = {}
    for curve in curves:
        base = curve.removesuffix(ADDED)
        style = KNOWN[base] if base in KNOWN else next(rest)
        found[curve] = style if base == curve else replace(style, line=":", filled=False)
    return found


def ordered(curves: list[str]) -> list[str]:
    """Controls last."""
    return sorted(curves, key=lambda curve: curve in (CLEAN, ORACLE, SUPERVISED, LEARNER))

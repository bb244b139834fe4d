"""From TeX to MathML, for the part of TeX that the pages use."""

from __future__ import annotations

import html
import re

TOKEN = re.compile(
    r"\\(?:text|mathrm|operatorname)\s*\{[^{}]*\}|\\(?:begin|end)\{\w+\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S"
)
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "varepsilon": "ε", "eta": "η", "theta": "θ", "lambda": "λ",
    "mu": "μ", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "varsigma": "ς", "tau": "τ", "omega": "ω", "Delta": "Δ",
    "Phi": "Φ",
}  # fmt: skip
LETTERS = {**GREEK, "ell": "ℓ", "partial": "∂", "nabla": "∇", "top": "⊤", "#": "#", "%": "%", "_": "_", "dots": "…"}
SIGNS = {
    "ge": "≥", "le": "≤", "in": "∈", "cdot": "⋅", "circ": "∘", "times": "×", "leftarrow": "←", "approx": "≈",
    "sim": "∼", "mid": "∣", "mp": "∓", "langle": "⟨", "rangle": "⟩", "|": "‖", "Vert": "‖", "lVert": "‖", "rVert": "‖",
    "{": "{", "}": "}",
}  # fmt: skip
FUNCTIONS = ("log", "exp", "ln", "arg")
LIMITS = {"sum": "∑", "min": "min", "max": "max"}  # what is written below them in a line of its own
SPACES = {",": 0.17, ";": 0.28, "quad": 1, "qquad": 2}
ACCENTS = {"hat": "^", "tilde": "~", "bar": "¯"}
SIZES = {"big": 1.2, "bigl": 1.2, "bigr": 1.2, "Bigl": 1.8, "Bigr": 1.8}
PLAIN = {"-": "−", "*": "∗"}


class Reader:
    """Reads a formula from left to right; every method consumes what it returns."""

    def __init__(self, tex: str) -> None:
        self.tokens = TOKEN.findall(tex)[::-1]

    def row(self, *ends: str) -> str:
        """Everything up to one of the ends, which stays, or up to the end of the formula."""
        found = []
        while self.tokens and self.tokens[-1] not in ends:
            found.append(self.scripted())
        if ends and not self.tokens:
            raise ValueError(f"{ends[0]} is missing")
        return found[0] if len(found) == 1 else f"<mrow>{''.join(found)}</mrow>"

    def scripted(self) -> str:
        """An atom with what is below and above it."""
        limits = self.tokens[-1] in [f"\\{name}" for name in LIMITS]
        base, below, above = self.atom(), "", ""
        while self.tokens and self.tokens[-1] in ("_", "^", "'"):
            sign = self.tokens.pop()
            if sign == "_":
                below = self.argument()
            else:
                above += "<mo>′</mo>" if sign == "'" else self.argument()
        if not below and not above:
            return base
        names = ("under", "over") if limits else ("sub", "sup")
        name = "m" + names[0] * bool(below) + names[1] * bool(above)
        return f"<{name}>{base}{below}{f'<mrow>{above}</mrow>' if above else ''}</{name}>"

    def argument(self) -> str:
        """A group or a single sign, as TeX reads it: one digit of a number."""
        if len(self.tokens[-1]) > 1 and self.tokens[-1].isdigit():
            digits = self.tokens.pop()
            self.tokens.append(digits[1:])
            return f"<mn>{digits[0]}</mn>"
        return self.atom()

    def until(self, end: str) -> str:
        """A row and its end."""
        row = self.row(end)
        self.tokens.pop()
        return row

    def atom(self) -> str:
        """One thing, without its scripts."""
        token = self.tokens.pop()
        if token == "{":
            return self.until("}")
        if token[0] == "\\":
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return _sign(PLAIN.get(token, html.escape(token)))

    def command(self, name: str) -> str:
        """What a backslash begins."""
        if word := re.match(r"(text|mathrm|operatorname)\s*\{(.*)\}", name):
            return f"<mtext>{html.escape(word[2]).replace(' ', '&#160;')}</mtext>"
        if environment := re.match(r"begin\{(\w+)\}", name):
            return self.table(environment[1])
        if name in ("frac", "tfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in ACCENTS:
            return f'<mover accent="true">{self.argument()}<mo stretchy="false">{ACCENTS[name]}</mo></mover>'
        if name == "mathbf":
            return f'<mrow style="font-weight: bold">{self.argument()}</mrow>'
        if name == "boxed":
            return f'<mrow style="border: 1px solid; padding: 0.4em">{self.argument()}</mrow>'
        if name == "left":
            opening, inside = self.tokens.pop(), self.row(r"\right")
            self.tokens.pop()
            return f"<mrow>{_sign(opening, True)}{inside}{_sign(self.tokens.pop(), True)}</mrow>"
        if name in SIZES:
            size = f"{SIZES[name]}em"
            return f'<mo stretchy="true" minsize="{size}" maxsize="{size}">{self.tokens.pop()}</mo>'
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}em"></mspace>'
        if name in LIMITS:
            return f'<mo movablelimits="true">{LIMITS[name]}</mo>'
        if name in FUNCTIONS:
            return f"<mi>{name}</mi>"
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>"
        if name in SIGNS:
            return _sign(SIGNS[name])
        raise ValueError(f"\\{name} is not known here; write it otherwise, or add it to docs/hooks/tex.py")

    def table(self, kind: str) -> str:
        """``aligned`` or ``cases``."""
        end, rows = f"\\end{{{kind}}}", [""]
        while True:
            cell = self.row("&", r"\\", end)
            side = "right" if kind == "aligned" and not rows[-1] else "left"
            rows[-1] += f'<mtd style="text-align: {side}">{cell}</mtd>'
            token = self.tokens.pop()
            if token == end:
                break
            if token == r"\\":
                rows.append("")
        body = "".join(f"<mtr>{row}</mtr>" for row in rows)
        before = _sign("{", True) if kind == "cases" else ""
        return f'<mrow>{before}<mtable displaystyle="{str(kind == "aligned").lower()}">{body}</mtable></mrow>'


def _sign(text: str, stretchy: bool = False) -> str:
    return f'<mo stretchy="{str(stretchy).lower()}">{text}</mo>'


def to_mathml(tex: str, block: bool) -> str:
    """The formula as an element that a browser draws; a ``ValueError`` says what it cannot read."""
    display = ' display="block"' if block else ""
    return f'<math alttext="{html.escape(" ".join(tex.split()))}"{display}>{Reader(tex).row()}</math>'

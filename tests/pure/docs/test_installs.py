"""Each page that shows code says what to install for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
CODE = re.compile(r"^```python.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IMPORTED = re.compile(r"^\s*(?:from|import) ([\w.]+)", re.MULTILINE)
INSTALLED = re.compile(r"pip install ([^`\n]+)")
NEEDS = {  # what an import needs; one of its words must be in a line of pip
    "wakeloop": ["wakeloop", "."],
    "wakeloop.bench": ["bench"],
    "wakeloop.display": ["cli", "bench"],
    "wakeloop.middleware": ["langchain"],
    "wakeloop.sessions": ["sessions"],
    "langgraph.checkpoint.sqlite": ["cli", "sessions", "bench", "langgraph-checkpoint-sqlite"],
    "langchain": ["langchain"],
    "langchain_openai": ["openai"],
    "langmem": ["langmem"],
    "openinference": ["openinference-instrumentation-langchain"],
    "opentelemetry": ["opentelemetry-sdk"],
}
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if CODE.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_with_code_says_what_to_install(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    imported = {name for code in CODE.findall(text) for name in IMPORTED.findall(code)}
    installed = {word for line in INSTALLED.findall(text) for word in re.split(r"[\s\"'\[\],]+", line)}
    wanted = {need for need in NEEDS for name in imported | {"wakeloop"} if f"{name}.".startswith(f"{need}.")}
    assert [need for need in sorted(wanted) if not installed & {*NEEDS[need]}] == []

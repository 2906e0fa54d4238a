"""Saved outputs in Chromium: light, dark, narrow, without styles, and hostile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import PROGRAM, WITHOUT, unreadable
from langgraph.checkpoint.memory import InMemorySaver
from on_github import allowed, page_of

from wakeloop import create_todo_agent
from wakeloop.display import TodoPanel, show
from wakeloop.testing import ScriptedModel, calls, says

nbformat = pytest.importorskip("nbformat")
FOLDER = Path(__file__).parents[3] / "notebooks"
NOTEBOOK = FOLDER / "04_watch_and_compare.ipynb"
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>\x1b[2J"
THEMES = {"light": ("#ffffff", "rgb(0, 0, 0)"), "dark": ("#111111", "rgb(230, 230, 230)")}
WHOLE = "() => document.documentElement.scrollWidth <= window.innerWidth"

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=WITHOUT)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page()
    opened.asked, opened.alerts = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("dialog", lambda dialog: (opened.alerts.append(dialog.message), dialog.dismiss()))
    yield opened
    assert (opened.asked, opened.alerts) == ([], [])
    opened.close()


def outputs(mime: str) -> list[str]:
    """The notebook's outputs of one type, cell by cell."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    kept = [output for cell in cells for output in cell.get("outputs", []) if "data" in output]
    return [output.data[mime] for output in kept if mime in output.data]


def framed(html: str, theme: str) -> str:
    ground, ink = THEMES[theme]
    links = "<style>a { color: inherit }</style>"
    return (
        f'<body style="margin:8px;background:{ground};color:{ink};font:14px sans-serif">{links}{html}</body>'
    )


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_the_saved_outputs_use_the_pages_colours_and_fit_a_narrow_page(page: Any, theme: str) -> None:
    page.set_viewport_size({"width": 420, "height": 900})
    page.set_content(framed("".join(outputs("text/html")[:4]), theme))
    colours = page.eval_on_selector_all(
        "td, th, p, pre, summary", "all => all.map(e => getComputedStyle(e).color)"
    )
    assert set(colours) == {THEMES[theme][1]}
    assert page.evaluate(WHOLE)
    assert page.locator("details").count() == 2
    assert not page.locator("details pre").first.is_visible()
    page.locator("summary").first.click()
    assert page.locator("details pre").first.is_visible()


def test_github_shows_the_same(page: Any) -> None:
    pytest.importorskip("bleach")
    kept = "".join(outputs("text/html"))
    page.set_content(framed(kept, "light"))
    told = page.inner_text("body")
    clean = allowed(kept)
    assert "style" in kept
    assert "style" not in clean
    page.set_content(framed(clean, "light"))
    assert page.inner_text("body") == told
    assert "▰▰▰▰▰▰▰▰▰▰ 4/4 closed" in told


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_on_github_every_notebook_can_be_read(page: Any, notebook: Path) -> None:
    pytest.importorskip("nbconvert")
    html = page_of(notebook)
    for theme in THEMES:
        page.set_content(framed(html, theme))
        assert unreadable(page) == {}
    sizes = page.locator("img").evaluate_all("all => all.map(drawn => drawn.naturalWidth)")
    assert sizes == ([830, 800] if notebook == NOTEBOOK else [])
    page.asked = [url for url in page.asked if not url.startswith("data:")]


@pytest.mark.parametrize("theme", THEMES)
def test_the_graph_is_drawn_and_its_words_stay_inside(page: Any, theme: str) -> None:
    (graph,) = outputs("image/svg+xml")
    page.set_viewport_size({"width": 900, "height": 900})
    page.set_content(framed(graph, theme))
    assert unreadable(page, "svg") == {}
    inside = """all => all.filter(e => {
        const r = e.getBoundingClientRect(), s = e.ownerSVGElement.getBoundingClientRect();
        return !r.width || r.left < s.left || r.right > s.right || r.top < s.top || r.bottom > s.bottom })
        .map(e => e.textContent)"""
    assert page.eval_on_selector_all("svg text", inside) == []
    assert page.locator("svg").first.locator("rect").count() == 11


def test_hostile_strings_stay_text(page: Any) -> None:
    replies = [
        calls(("todo_write", {"items": [EVIL]})),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": EVIL})),
        says(EVIL),
    ]
    at = {"configurable": {"thread_id": "t"}}
    agent = create_todo_agent(ScriptedModel(replies), name=EVIL, checkpointer=InMemorySaver())
    panel = TodoPanel(agent, at, title=EVIL)
    panel.run({"messages": [("user", EVIL)], "todo_goal": EVIL})
    picture = agent._repr_mimebundle_()["image/svg+xml"]
    page.set_content(panel._repr_html_() + show(agent.get_state(at)).html + picture)
    assert page.locator("img, script").count() == 0
    page.locator("summary").click()
    assert page.inner_text("body").count("<img src=x onerror=alert(1)><script>alert(2)</script>") == 8

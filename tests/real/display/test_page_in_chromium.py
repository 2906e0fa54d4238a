"""The report in a real browser: looks, keys, search, and no requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from chromium import PROGRAM, THEMES, WITHOUT, page, page_of, unreadable
from pictures import ANEW, apart
from screenshots import audit, taken

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=WITHOUT)
SIZES = (400, 1400)


@dataclass
class Watched:
    """A page, with its console messages and requests."""

    tab: Any
    told: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def focused(self) -> str:
        """Return the focused element's id, or its tag and its label."""
        told: str = self.tab.evaluate(
            """() => { const e = document.activeElement;
            const said = (e.getAttribute("aria-label") || e.textContent).trim().slice(0, 40);
            return e.id || `${e.tagName.toLowerCase()}:${said}`; }"""
        )
        return told

    def walk(self, *keys: str) -> list[str]:
        """Press keys one by one, and return the focused element after each."""
        found = []
        for key in keys:
            self.tab.keyboard.press(key)
            found.append(self.focused())
        return found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("page") / "report.html"
    made.write_text(page(), encoding="utf-8")
    return made


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Any]:
    tabs = []

    def open_page(width: int = 1400, theme: str = "light", file: Path = file, **more: Any) -> Watched:
        tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme, **more)
        watched = Watched(tab)
        tab.on("console", lambda message: watched.told.append(message.text))
        tab.on("pageerror", lambda error: watched.told.append(str(error)))
        tab.on("request", lambda request: watched.asked.append(request.url))
        tab.goto(file.as_uri())
        tabs.append(tab)
        return watched

    yield open_page
    for tab in tabs:
        tab.close()


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", SIZES)
def test_it_fits_is_readable_and_loads_nothing(opened: Any, file: Path, width: int, theme: str) -> None:
    watched = opened(width, theme)
    tab = watched.tab
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    assert unreadable(tab) == {}
    bright = sum(tab.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"))
    assert (bright > 600) == (theme == "light")
    picture, talk = (tab.locator(f"#{name}").bounding_box() for name in ("picture", "talk"))
    beside = width == 1400
    assert (talk["x"] >= picture["x"] + picture["width"]) == beside
    assert (talk["y"] >= picture["y"] + picture["height"]) == (not beside)
    assert watched.told == []
    assert watched.asked == [file.as_uri()]


def test_a_number_and_its_unit_share_a_row(opened: Any) -> None:
    broken = opened(400).tab.evaluate(
        """() => {
        const torn = new Set()
        for (let width = 260; width < 400; width += 5) {
            document.querySelector(".talk").style.maxWidth = width + "px"
            for (const one of document.querySelectorAll(".who :is(time, span)"))
                if (one.getClientRects().length > 1) torn.add(one.textContent)
        }
        return [...torn]
        }"""
    )
    assert broken == []


def test_the_policy_holds_against_injected_content(opened: Any) -> None:
    watched = opened()
    watched.tab.evaluate(
        """() => document.body.insertAdjacentHTML("beforeend",
        '<img src="https://example.org/x.png">'
        + '<p id="styled" style="color: red" onclick="window.ran = 1">x</p>')"""
    )
    watched.tab.locator("#styled").click()
    assert watched.tab.evaluate("window.ran") is None
    assert watched.tab.evaluate("getComputedStyle(styled).color") != "rgb(255, 0, 0)"
    for _ in range(100):  # the browser reports it asynchronously
        if len(watched.told) < 3:
            watched.tab.wait_for_timeout(20)
    assert sorted(text.split()[0] for text in watched.told) == ["Applying", "Executing", "Loading"]
    assert all("Content Security Policy" in text for text in watched.told)


def test_all_of_it_is_reached_with_the_keyboard(opened: Any) -> None:
    watched = opened()
    assert watched.walk(*["Tab"] * 6) == [
        "a:Skip to the conversation",
        "q",
        "graph",
        "results",
        "unfold",
        "lanes",
    ]
    tab = watched.tab
    moments = tab.locator(".moments a")
    moments.first.focus()
    first, second, third = (moments.nth(place).get_attribute("aria-label")[:40] for place in range(3))
    assert watched.walk("ArrowRight", "ArrowRight", "ArrowLeft", "Home") == [
        f"a:{second}",
        f"a:{third}",
        f"a:{second}",
        f"a:{first}",
    ]
    watched.walk("Tab")
    assert tab.evaluate("document.activeElement.closest('.lane') !== null")  # one stop, whatever their number
    moments.nth(2).focus()
    assert watched.walk("Enter") == [moments.nth(2).get_attribute("href")[1:]]
    assert watched.walk("/") == ["q"]
    tab.evaluate("dispatchEvent(new HashChangeEvent('hashchange'))")  # like one that comes late
    assert (watched.focused(), watched.told) == ("q", [])


@pytest.mark.slow
def test_the_search_finds_marks_and_steps_through_matches(opened: Any) -> None:
    watched = opened()
    tab = watched.tab
    visible = lambda: tab.locator(".talk .said:visible").count()  # noqa: E731
    everything = visible()
    tab.keyboard.press("/")
    tab.keyboard.type("ships")
    assert tab.locator("#found").inner_text() == f"{visible()} messages, 1 item"
    assert 0 < visible() < everything
    assert tab.evaluate(
        "[...CSS.highlights.get('found')].every((one) => one.toString().toLowerCase() === 'ships')"
    )
    assert tab.evaluate("CSS.highlights.get('found').size") >= visible()
    count = visible()
    tab.keyboard.press("Enter")
    assert tab.locator("#found").inner_text() == f"message 1 of {count}"
    tab.keyboard.press("Shift+Enter")
    assert tab.locator("#found").inner_text() == f"message {count} of {count}"
    tab.keyboard.press("Escape")
    assert visible() == everything
    assert tab.locator(".said.graph:visible").count() > 0
    tab.locator("#graph").uncheck()
    assert tab.locator(".said.graph:visible").count() == 0
    tab.locator("#results").uncheck()
    assert tab.locator(":is(.said.tool, .said.failed):visible").count() == 0


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A conversation of 120 messages with a unique last one."""
    made = tmp_path_factory.mktemp("page") / "long.html"
    made.write_text(page_of([f"number {n}\n" * 10 for n in range(119)], "the needle"), encoding="utf-8")
    return made


@pytest.mark.slow
def test_a_long_conversation_is_laid_out_where_it_is_looked_at(opened: Any, long_file: Path) -> None:
    tab = opened(file=long_file).tab
    parts = tab.locator(".talk ol")
    named = "parts => parts.map((one) => one.getAttribute('aria-label'))"
    assert parts.evaluate_all(named) == ["Messages 1 to 50", "Messages 51 to 100", "Messages 101 to 120"]
    laid_out = "one => one.checkVisibility({ contentVisibilityAuto: true })"
    last = tab.locator(".said").last
    assert (tab.locator(".said").first.evaluate(laid_out), last.evaluate(laid_out)) == (True, False)
    tab.evaluate("location.hash = 'm120'")
    for _ in range(250):  # it is laid out in one frame and scrolled to in a later one
        if not last.evaluate(laid_out) or last.bounding_box()["y"] >= 900:
            tab.wait_for_timeout(20)
    assert last.evaluate(laid_out)
    assert last.bounding_box()["y"] < 900


def test_a_match_far_down_is_shown_at_the_top_without_a_gap(opened: Any, long_file: Path) -> None:
    tab = opened(file=long_file).tab
    tab.locator("#q").fill("needle")
    assert tab.locator("#found").inner_text() == "1 message, 0 items"
    assert tab.locator(".talk ol:visible").count() == 1
    top, found = tab.locator(".talk").bounding_box(), tab.locator(".said:visible").bounding_box()
    assert 0 <= found["y"] - top["y"] < 10
    assert top["height"] < 200
    tab.locator("#q").fill("")
    assert tab.locator(".talk ol:visible").count() == 3


def test_a_link_into_something_hidden_and_folded_shows_it(opened: Any) -> None:
    tab = opened().tab
    long = tab.locator(".said.tool:has(details)").first
    tab.locator("#results").uncheck()
    assert not long.is_visible()
    tab.evaluate("(one) => { location.hash = one.id }", long.element_handle())
    long.wait_for(state="visible")
    assert long.locator("details").get_attribute("open") is not None


def test_a_screen_reader_reads_the_same(opened: Any) -> None:
    tab = opened().tab
    assert tab.locator("main").count() == tab.locator("header").count() == tab.locator("search").count() == 1
    assert tab.locator("h1").inner_text() == "Summarise the harbour's records of 1902."
    assert (
        tab.locator(".lane th[scope=row]").count()
        == tab.locator(".lane td > svg[role=img][aria-label]").count()
        == 5
    )
    assert tab.get_by_role("searchbox", name="Search").count() == 1
    unnamed = "e => e.filter((one) => !(one.getAttribute('aria-label') || one.textContent.trim())).length"
    assert tab.locator("a, button, summary").evaluate_all(unnamed) == 0
    story = tab.locator(".lane").nth(2).locator("td > svg").get_attribute("aria-label")
    assert [part.split()[0] for part in story.split(", ")] == ["open", "blocked"]
    tab.locator("details.table summary").click()
    rows = tab.locator("details.table table").first.locator("tbody tr")
    assert rows.count() == tab.locator(".moments > .sign").count()


@pytest.mark.slow
def test_it_moves_only_for_those_who_want_it_and_prints_completely(opened: Any) -> None:
    scrolls = "getComputedStyle(document.documentElement).scrollBehavior"
    assert opened(reduced_motion="reduce").tab.evaluate(scrolls) == "auto"
    assert opened(reduced_motion="no-preference").tab.evaluate(scrolls) == "smooth"
    tab = opened(theme="dark").tab
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not tab.locator("search").is_visible()
    assert tab.evaluate("getComputedStyle(document.querySelector('.lanes')).overflowY") == "visible"
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details[open]").count() == 0


def test_without_scripts_the_picture_and_the_words_are_there(opened: Any) -> None:
    tab = opened(java_script_enabled=False).tab
    assert tab.locator(".lane:visible").count() == 5
    assert tab.locator(".said:visible").count() == tab.locator(".said").count()


@pytest.mark.slow
def test_the_picture_in_the_docs_is_what_the_demo_writes(browser: Any, tmp_path: Path) -> None:
    written = audit(tmp_path)
    for theme in THEMES:
        assert apart(taken(browser, written, theme)) < 4, ANEW

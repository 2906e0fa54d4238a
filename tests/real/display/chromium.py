"""Chromium, and a thread that uses everything a report can show."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import create_todo_agent, preset, update_todos
from wakeloop.display import thread_report
from wakeloop.testing import ScriptedModel, calls, says

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WITHOUT = "There is no Chromium on this machine: apt-get install chromium."
ALONE = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
ARGUMENTS = [*ALONE.split(), "--disable-component-update", "--disable-sync"]
THEMES = ("light", "dark")
CONTRAST = 4.5  # of text, WCAG 2.2 AA
PRICES = {"default": {"input": 1.25, "cached": 0.125, "output": 10.0}}

READABLE = """(where) => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => {
    const [r, g, b] = c.map((one) => one / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const under = (one) => {  // of a drawing's words: the last filled shape that was drawn there before
    const at = one.getBoundingClientRect(), x = at.x + at.width / 2, y = at.y + at.height / 2;
    const holds = (box) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;
    return [...one.ownerSVGElement.querySelectorAll("rect, path, circle")]
      .filter((shape) => shape.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING)
      .filter((shape) => getComputedStyle(shape).fill !== "none" && holds(shape.getBoundingClientRect()))
      .map((shape) => rgb(getComputedStyle(shape).fill))
      .findLast((colour) => colour[3] === 255);
  };
  const behind = (one) => {
    const drawn = one.ownerSVGElement && under(one);
    if (drawn) return drawn;
    for (let at = one; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const found = {};
  for (const part of document.querySelectorAll(where)) {
    const walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const one = walk.currentNode.parentElement;
      if (!walk.currentNode.data.trim() || one.closest("script, style, .unseen, title")) continue;
      const style = getComputedStyle(one);
      const front = rgb(one instanceof SVGElement ? style.fill : style.color), back = behind(one);
      const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
      const key = `${one.tagName}.${one.className.baseVal ?? one.className}`;
      found[key] = Math.min(found[key] ?? 99, (a + 0.05) / (b + 0.05));
    }
  }
  return found;
}"""


def unreadable(tab: Any, where: str = "body") -> dict[str, float]:
    """Return strings with too little contrast: the least contrast of each kind."""
    found: dict[str, float] = tab.evaluate(READABLE, where)
    assert found, f"nothing to read in {where}"
    return {kind: round(contrast, 2) for kind, contrast in found.items() if contrast < CONTRAST}


@contextmanager
def chromium() -> Iterator[Any]:
    """Start the machine's own Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
        yield browser
        browser.close()


def look(path: str) -> str:
    """Look at a file."""
    time.sleep(0.03)
    if path == "harbour/1902.csv":
        raise FileNotFoundError("no such file: harbour/1902.csv")
    return "\n".join(f"{path}, line {number}" for number in range(30 if path.endswith("txt") else 3))


def reply(message: AIMessage, read: int, written: int) -> AIMessage:
    """Return a reply with its tokens."""
    usage = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
    cached = {"input_token_details": {"cache_read": read // 2}}
    return message.model_copy(
        update={"usage_metadata": usage | cached, "response_metadata": {"model_name": "m-1"}}
    )


def harbour() -> Iterator[AIMessage]:
    """A model that works, forgets its list, is reminded and woken, and stops with an item open."""
    items = ["Read the letters of 1902", "Count the ships", "Ask the archive for page 7", "Write the summary"]
    yield reply(calls(("todo_write", {"items": items})), 900, 160)
    yield reply(
        calls(("todo_update", {"id": 1, "status": "in_progress"}), ("look", {"path": "letters.txt"})),
        1100,
        90,
    )
    yield reply(
        says("The letters name **four** ships:\n\n1. *Anna*\n2. *Maria*\n\nMore is in the harbour's list."),
        1500,
        130,
    )
    yield reply(
        calls(
            ("todo_update", {"id": 1, "status": "done"}), ("todo_update", {"id": 2, "status": "in_progress"})
        ),
        1600,
        90,
    )
    yield reply(calls(("look", {"path": "harbour/1902.csv"})), 1700, 60)
    for number in range(12):
        yield reply(calls(("look", {"path": f"harbour/1902-{number + 1}.csv"})), 1800 + 90 * number, 60)
    blocked = {"id": 3, "status": "blocked", "reason": "the archive answers on Mondays"}
    yield reply(calls(("todo_update", {"id": 2, "status": "done"}), ("todo_update", blocked)), 3100, 110)
    yield reply(says("I have counted the ships."), 3200, 30)
    yield reply(
        calls(("todo_update", {"id": 4, "status": "in_progress"}), ("look", {"path": "draft.csv"})), 3300, 70
    )
    for number in range(7):
        yield reply(says("The summary is nearly there."), 3400 + 50 * number, 30)


def page_of(asked: list[str], said: str) -> str:
    """Return the report of a thread with all these messages."""
    agent = create_todo_agent(ScriptedModel([says(said)]), checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "long"}}
    agent.invoke({"messages": [("user", text) for text in asked]}, thread)
    return thread_report(agent, thread)


def page() -> str:
    """The page of that thread."""
    settings = preset("wakeloop").model_copy(update={"prices": PRICES})
    model = ScriptedModel(harbour())
    agent = create_todo_agent(model, tools=[look], checkpointer=InMemorySaver(), settings=settings)
    thread: Any = {"configurable": {"thread_id": "harbour-1902"}}
    agent.invoke({"messages": [("user", "Summarise the harbour's records of 1902.")]}, thread)
    update_todos(agent, thread, add=["Send it to <b>Anna</b>"])
    return thread_report(agent, thread)

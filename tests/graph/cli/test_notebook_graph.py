"""A cell that ends in an agent: a picture drawn here, without a network."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from wakeloop import build_todo_graph, create_todo_agent
from wakeloop.testing import ScriptedModel

DisplayFormatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter
pretty = pytest.importorskip("IPython.lib.pretty").pretty
NODES = "activate, call_model, run_tools, review_calls, validate_todos, nag, finalization_guard, wake"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_agent_is_shown_as_its_picture() -> None:
    agent = create_todo_agent(ScriptedModel([]), name="<b>")
    shown, _ = DisplayFormatter().format(agent)  # sockets are blocked
    assert shown.keys() == {"text/plain", "image/svg+xml"}
    first, *ways = shown["text/plain"].splitlines()
    assert first == pretty(agent) == f"<CheckedGraph '<b>': {NODES}>"
    assert ways[:3] == [
        "  __start__ → activate",
        "  activate → call_model: something to answer",
        "  activate → finalization_guard: nothing to answer",
    ]
    assert len(ways) == 27
    picture = ET.fromstring(shown["image/svg+xml"])
    texts = [found.text for found in picture.iter(f"{SVG}text")]
    words = ["something to answer", "nothing to answer", "stop", "ask again", "open, within budget"]
    words += [
        *3 * ["reminder due", "continue", "run ends"],
        *2 * ["items to judge"],
        "calls approved",
        "calls need approval",
        "plan approved",
        "plan or items to judge",
    ]
    assert sorted(map(str, texts)) == sorted([*NODES.split(", "), "start", "end", *words])
    assert (picture.findtext(f"{SVG}title"), len(list(picture.iter(f"{SVG}path")))) == ("<b>", 27 + 1)


def test_a_graph_with_a_custom_node() -> None:
    graph = build_todo_graph(ScriptedModel([]))
    graph.add_node("mine", lambda state: state)
    graph.add_edge("mine", "activate")
    shown, _ = DisplayFormatter().format(graph.compile())
    assert ">mine</text>" in shown["image/svg+xml"]
    assert shown["text/plain"].splitlines()[0] == f"<CheckedGraph 'LangGraph': {NODES}, mine>"

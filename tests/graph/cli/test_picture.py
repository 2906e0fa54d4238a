"""The graph as an SVG and as plain text, drawn without a network."""

from __future__ import annotations

import re
import webbrowser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from langchain_core.runnables.graph import Graph
from processes import wakeloop

from wakeloop import create_todo_agent
from wakeloop.testing import ScriptedModel
from wakeloop.text.drawing import LETTER, TEXT_HEIGHT, draw_svg, draw_text, graph_edges

TEXT = """\
__start__
  -> activate
activate
  -> call_model          something to answer
  -> finalization_guard  nothing to answer
call_model
  -> finalization_guard
  -> review_calls
  -> run_tools
  -> validate_todos
run_tools
  -> call_model          continue
  -> finalization_guard  run ends
  -> nag                 reminder due
  -> validate_todos      items to judge
review_calls
  -> call_model          continue
  -> finalization_guard  run ends
  -> nag                 reminder due
  -> run_tools           calls approved
  -> validate_todos      items to judge
validate_todos
  -> call_model          continue
  -> finalization_guard  run ends
  -> nag                 reminder due
  -> review_calls        calls need approval
  -> run_tools           plan approved
  -> validate_todos      plan or items to judge
nag
  -> call_model
finalization_guard
  -> __end__             stop
  -> call_model          ask again
  -> wake                open, within budget
wake
  -> call_model
__end__
"""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return create_todo_agent(ScriptedModel([])).get_graph()


def test_as_text(graph: Graph) -> None:
    assert list(draw_text([*graph.nodes], graph_edges(graph))) == TEXT.splitlines()


def test_as_an_svg_that_loads_nothing(graph: Graph) -> None:
    picture = draw_svg("a", graph.nodes, graph_edges(graph))
    root = ET.fromstring(picture)
    kinds = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert (kinds.count("path"), kinds.count("rect")) == (len(graph.edges) + 1, len(graph.nodes) + 1)
    told = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert set(told) >= {node.strip("_") for node in graph.nodes}
    assert {edge.data for edge in graph.edges if edge.data} <= {*told, *graph.nodes}
    assert re.findall(r"(?:href|src|url)\W*[\w:/.]+", picture.replace("url(#tip)", "")) == []
    assert "<script" not in picture


def test_no_two_boxes_touch_and_nothing_is_cut_off(graph: Graph) -> None:
    """Also with a caller's own nodes."""
    for more in range(5):
        drawn = Graph(nodes=dict(graph.nodes), edges=list(graph.edges))
        for number in range(more):
            drawn.add_node(drawn.nodes["nag"], id=f"own<{number}>")
        root = ET.fromstring(draw_svg("a", drawn.nodes, graph_edges(drawn)))
        width, height = int(root.get("width", 0)), int(root.get("height", 0))
        rects = [element.attrib for element in root.iter() if element.tag.endswith("rect")]
        boxes = [
            [float(rect[key]) for key in ("x", "y", "width", "height")] for rect in rects[1:]
        ]  # the first is their background
        assert len(boxes) == 10 + more
        for x, y, wide, high in boxes:
            assert 0 < x < x + wide < width
            assert 0 < y < y + high < height
        assert len({(x, y) for x, y, _, _ in boxes}) == len(boxes)


def test_no_words_are_drawn_over_others(graph: Graph) -> None:
    root = ET.fromstring(draw_svg("a", graph.nodes, graph_edges(graph)))
    areas = []
    for one in root.iter("{http://www.w3.org/2000/svg}text"):
        wide, x, y = LETTER * len(one.text or ""), float(one.get("x", 0)), float(one.get("y", 0))
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[one.get("text-anchor", "start")]
        areas.append((left, y, left + wide))
        assert 0 < left < left + wide < int(root.get("width", 0))
    for place, (left, y, right) in enumerate(areas):
        for begin, at, end in areas[:place]:
            assert abs(y - at) >= TEXT_HEIGHT or right <= begin or end <= left


def test_the_command_prints_writes_and_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    assert wakeloop("graph", "--ascii") == (0, TEXT, "")
    assert wakeloop("graph")[1].startswith("---\nconfig:")
    drawn, text = tmp_path / "a.svg", tmp_path / "a.txt"
    assert wakeloop("graph", "-o", str(drawn), "--open") == (0, f"{drawn}\n", "")
    assert opened == [drawn.as_uri()]
    assert drawn.read_text().startswith("<svg ")
    assert wakeloop("graph", "-o", str(text))[0] == 0
    assert text.read_text() == TEXT
    assert wakeloop("graph", "-o", str(text)) == (
        2,
        "",
        f"wakeloop: The file {str(text)!r} already exists. Name another one with -o, or add --force.\n",
    )
    text.write_text("mine")
    assert wakeloop("graph", "--ascii", "-o", str(text), "--force") == (0, f"{text}\n", "")
    assert text.read_text() == TEXT
    assert wakeloop("graph", "-o", "-") == wakeloop("graph")
    told = "wakeloop: Cannot draw the graph as 'a.png'. Suffixes: .svg, .mmd, .txt.\n"
    assert wakeloop("graph", "-o", str(tmp_path / "a.png")) == (2, "", told)
    code, out, _ = wakeloop("graph", "--open")
    assert (code, opened[1:]) == (0, [Path(out.strip()).as_uri()])

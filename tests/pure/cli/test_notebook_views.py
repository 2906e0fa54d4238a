"""How a notebook shows settings, and the plain HTML and SVG beneath: exact, and escaped."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

import pytest

from wakeloop import LoopSettings, preset
from wakeloop.presets import PRESETS
from wakeloop.settings import AgentFileSettings
from wakeloop.text.drawing import PLACES, draw_svg
from wakeloop.text.plain_html import escape_html, html_table

HOSTILE = "<script>alert('x')</script>&\"\x1b[31m\u202e\x00"
SAFE = "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;&quot;\\x1b[31m\\u202e\\x00"
PRICES = {"x": {"input": 1.0, "cached": None, "output": 2.0}}
LEFT, RIGHT = 'style="text-align:left"', 'style="text-align:right"'


class Printer:
    """The part of IPython's printer that `_repr_pretty_` uses."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, more: str) -> None:
        self.said += more


def pretty(shown: Any) -> str:
    printer = Printer()
    shown._repr_pretty_(printer, False)
    return printer.said


def test_a_string_is_escaped_and_shown_whole() -> None:
    assert escape_html(HOSTILE) == SAFE
    assert escape_html("a\nb") == "a\nb"


def test_a_table() -> None:
    assert html_table(("a", "b"), [(HOSTILE, 2), ("", 0.5)]) == (
        f"<table>\n<thead><tr><th {LEFT}>a</th><th {LEFT}>b</th></tr></thead>\n<tbody>\n"
        f"<tr><td {LEFT}>{SAFE}</td><td {RIGHT}>2</td></tr>\n"
        f"<tr><td {LEFT}></td><td {RIGHT}>0.5</td></tr>\n</tbody>\n</table>"
    )


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_shown_by_its_name(name: str) -> None:
    assert pretty(preset(name)) == f"preset({name!r})"
    assert preset(name)._repr_html_() == f"<p>LoopSettings: preset <code>{name}</code></p>"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (LoopSettings(max_items=3), "preset('wakeloop').model_copy(update={'max_items': 3})"),
        (
            preset("loki").model_copy(update={"auto_continue": True, "nag_after": 7}),
            "preset('loki').model_copy(update={'auto_continue': True, 'nag_after': 7})",
        ),
        (
            LoopSettings.model_validate({"prices": {"x": {"input": 1, "output": 2}}, "nag_after": 0}),
            f"preset('wakeloop').model_copy(update={{'nag_after': 0, 'prices': {PRICES}}})",
        ),
    ],
)
def test_other_settings_are_shown_by_their_differences_and_can_be_read_back(
    settings: LoopSettings, told: str
) -> None:
    assert pretty(settings) == told
    assert eval(told, {"preset": preset}) == settings


def test_settings_as_a_table_of_differences() -> None:
    varied = preset("cubepi").model_copy(update={"continuation_prompt": HOSTILE})
    shown = varied._repr_html_()
    assert shown.partition("\n")[0] == "<p>LoopSettings: preset <code>cubepi</code>, 1 changed</p>"
    assert shown.partition("\n")[2] == html_table(
        ("setting", "here", "in cubepi"), [("continuation_prompt", repr(HOSTILE), "None")]
    )
    assert "<script" not in shown


def test_settings_of_an_agent_file_are_shown_under_their_own_name() -> None:
    assert AgentFileSettings()._repr_html_() == "<p>AgentFileSettings: preset <code>wakeloop</code></p>"


def test_without_presets_in_use_the_built_in_values_are_the_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopSettings, "known_presets", {})
    assert pretty(LoopSettings(nag_after=2)) == "preset('wakeloop').model_copy(update={'nag_after': 2})"


# -- the drawing -----------------------------------------------------------------------------------------


def parse_svg(*given: Any) -> ET.Element:
    return ET.fromstring(draw_svg(*given))


def texts(picture: ET.Element) -> list[str]:
    return [found.text or "" for found in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_a_small_graph_is_drawn_exactly() -> None:
    assert draw_svg("x", ["activate", "call_model"], [("activate", "call_model", "go")]) == (
        '<svg xmlns="http://www.w3.org/2000/svg" width="830" height="260" viewBox="0 0 830 260"'
        ' font-family="sans-serif" font-size="13" role="img">\n<title>x</title>\n'
        '<rect width="100%" height="100%" rx="8" fill="#ffffff"/>\n'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
        ' orient="auto"><path d="M0 0L8 4L0 8z" fill="#595959"/></marker></defs>\n'
        '<path d="M416.1 116.0Q404.0 165.0 416.1 214.0" fill="none" stroke="#595959" marker-end="url(#tip)"/>'
        "\n"
        '<text x="410.0" y="169.0" text-anchor="middle" fill="#595959" stroke="#ffffff" stroke-width="4"'
        ' paint-order="stroke">go</text>\n'
        '<rect x="378" y="84" width="84" height="32" rx="5" fill="#eceafd" stroke="#8b82d8"/>'
        '<text x="420" y="104" text-anchor="middle" fill="#1f1f33">activate</text>\n'
        '<rect x="370" y="214" width="100" height="32" rx="5" fill="#eceafd" stroke="#8b82d8"/>'
        '<text x="420" y="234" text-anchor="middle" fill="#1f1f33">call_model</text>\n</svg>'
    )


def test_hostile_names_stay_text() -> None:
    picture = parse_svg(HOSTILE, [HOSTILE, "wake"], [("wake", HOSTILE, HOSTILE)])
    plain = HOSTILE[:-7] + "\\x1b[31m\\u202e\\x00"
    assert texts(picture) == [plain, "wake", plain]
    assert [found.tag.rpartition("}")[2] for found in picture] == [
        "title", "rect", "defs", "path", "text", "rect", "text", "rect", "text",
    ]  # fmt: skip


def test_nodes_of_the_callers_own_come_in_rows_beneath() -> None:
    more = [f"n{number}" for number in range(6)]
    picture = parse_svg("x", [*PLACES, *more], [("n0", "n0", "again"), ("n0", "n0", "")])
    boxes = [(float(box.get("x", 0)), float(box.get("y", 0))) for box in picture.findall("{*}rect")[1:]]
    assert len(set(boxes)) == len(PLACES) + 6
    assert boxes[-6:] == [(92, 674), (242, 674), (392, 674), (542, 674), (692, 674), (92, 734)]
    assert (picture.get("height"), texts(picture)[0]) == ("780", "again")
    assert [way.get("d") for way in picture.findall("{*}path")] == ["M92.0 706.0Q110.0 770.0 128.0 706.0"]

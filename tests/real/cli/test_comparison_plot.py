"""The plot of a comparison: made by matplotlib, which starts a process for its fonts."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from base64 import b64decode
from typing import Any

import pytest

from wakeloop.display import Comparison

EVIL = "<b>$x$"


def row(name: str, **values: Any) -> Any:
    return {"preset": name, "items": 0, "closed": 0, "requests": 0, "tokens": 0, **values}


def test_the_plot_tells_names_and_numbers_and_is_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    rows = [
        row(EVIL, items=2, closed=1, requests=6, tokens=7200),
        row("lesson", items=1, requests=2, tokens=24),
    ]
    shown = Comparison("", rows).plot()._repr_mimebundle_()
    assert shown.keys() == {"text/plain", "image/svg+xml", "image/png"}
    assert b64decode(shown["image/png"])[:4] == b"\x89PNG"
    picture = ET.fromstring(shown["image/svg+xml"])
    texts = [found.text for found in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"closed, %", "requests", "tokens", EVIL, "lesson", "50", "7,200", "24"} <= set(texts)
    assert Comparison("", rows).plot()._repr_mimebundle_() == shown


def test_nothing_was_compared() -> None:
    pytest.importorskip("matplotlib")
    assert "<svg" in Comparison("", [row("lesson")]).plot().svg

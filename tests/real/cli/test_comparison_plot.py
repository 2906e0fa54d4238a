"""The plot of a comparison: made by matplotlib, which starts a process for its fonts."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from wakeloop.display import Comparison

EVIL = "<b>$x$"


def row(name: str, **values: Any) -> Any:
    return {"preset": name, "items": 0, "closed": 0, "requests": 0, "tokens": 0, **values}


def test_the_plot_shows_names_and_numbers_and_is_always_the_same() -> None:
    pytest.importorskip("matplotlib")
    rows = [
        row(EVIL, items=2, closed=1, requests=6, tokens=7200),
        row("lesson", items=1, requests=2, tokens=24),
    ]
    plot = Comparison("", rows).plot()
    shown = plot._repr_mimebundle_()
    assert shown.keys() == {"text/plain", "image/png"}  # SVG is painted black where styles are dropped
    assert b64decode(shown["image/png"])[:4] == b"\x89PNG"
    axes = plot.figure.axes
    assert [one.get_title() for one in axes] == ["closed, %", "requests", "tokens"]
    assert [[text.get_text() for text in one.texts] for one in axes] == [
        ["50", "0"],
        ["6", "2"],
        ["7,200", "24"],
    ]
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names == [EVIL.replace("$", r"\$"), "lesson"]
    assert Comparison("", rows).plot()._repr_mimebundle_() == shown


def test_nothing_was_compared() -> None:
    pytest.importorskip("matplotlib")
    plot = Comparison("", [row("lesson")]).plot()
    assert [[text.get_text() for text in one.texts] for one in plot.figure.axes] == [["0"], ["0"], ["0"]]

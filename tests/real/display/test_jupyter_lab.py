"""Cells in a real JupyterLab: during a run, after an edit, reopened by somebody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import watched
from chromium import PROGRAM, THEMES, WITHOUT, unreadable
from lab import Lab
from pictures import ANEW, apart, timeless, words_of
from screenshots import compared, laboratory, running

for needed in ("jupyterlab", "PIL"):
    pytest.importorskip(needed)
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=WITHOUT),
    pytest.mark.loopback,
    pytest.mark.slow,
    pytest.mark.large,
]
OUTPUTS = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-OutputArea-output"
ENDED = """\
The harbour in …

▰▰▰▰▰▰▰▰▰▰ 2/2 closed

id	item	status
1	Read the letters	✔ completed
2	Count the ships	✔ completed

Settled: nothing on the list is open. 1 wake, 7 requests, about … tokens, 1% of max_requests, … s

8 events"""


def test_in_a_real_jupyter_lab(browser: Any, tmp_path: Path) -> None:
    """One server and one page for all tests, since they are slow to start."""
    with laboratory(browser, tmp_path) as (lab, folder):
        as_kept(lab, running(lab, folder))
        it_changes_in_its_place(lab, folder)
        it_follows_an_edit(lab)
        it_runs_under_the_running_loop(lab, folder)
        nothing_is_loaded_from_the_network(lab)
        somebody_else_reads_the_same(lab, folder)
        as_kept(lab, compared(lab))


def as_kept(lab: Lab, pictures: Any) -> None:
    for picture in pictures:
        kept, now = words_of(picture)
        assert now == kept, ANEW
        assert apart(picture) < 4, ANEW
        assert unreadable(lab.tab, OUTPUTS) == {}


def it_changes_in_its_place(lab: Lab, folder: Path) -> None:
    (shown,) = lab.outputs(watched.RUN)
    assert "▰▰▰▰▰▱▱▱▱▱ 1/2 closed" in shown
    watched.let_continue(folder, "ships")
    lab.over()
    shown, answer = lab.outputs(watched.RUN)
    assert timeless(shown) == ENDED
    assert answer == "'Four ships, and one of them twice.'"


def it_follows_an_edit(lab: Lab) -> None:
    (edited,) = lab.ran(watched.EDIT)
    above, _ = lab.outputs(watched.RUN)
    assert edited.startswith("2/3 closed\n")
    assert edited.endswith("3\tTell Ada\t○ pending")
    title, _, rest = above.partition("▰▰▰▰▰▰▱▱▱▱ ")
    assert title == "The harbour in 1902\n\n"
    assert rest == f"{edited}\n\nEdited by hand since the last run.\n\n8 events"


def it_runs_under_the_running_loop(lab: Lab, folder: Path) -> None:
    lab.begin(watched.ASYNC)
    lab.shows(watched.ASYNC, 'tool: read(name="address")')
    (shown,) = lab.outputs(watched.ASYNC)
    assert "▰▰▰▰▰▰▱▱▱▱ 2/3 closed" in shown
    watched.let_continue(folder, "address")
    lab.over()
    shown, answer = lab.outputs(watched.ASYNC)
    assert "▰▰▰▰▰▰▰▰▰▰ 3/3 closed" in shown
    assert answer == "'Ada knows.'"

    lab.begin(watched.OWN)
    lab.shows(watched.OWN, "▰▰▰▰▰▰▰▱▱▱ 3/4 closed")
    watched.let_continue(folder, "bed")
    lab.over()
    (shown,) = lab.outputs(watched.OWN)
    assert "▰▰▰▰▰▰▰▰▰▰ 4/4 closed" in shown
    ending = "Settled: nothing on the list is open. 0 wakes, 4 requests, about … tokens, … s"
    assert timeless(shown).endswith(f"\n\n{ending}\n\n3 events")


def nothing_is_loaded_from_the_network(lab: Lab) -> None:
    """A cell that ends with an agent draws its graph, in the kernel and on the page."""
    assert lab.ran(watched.AGENT) == [""]
    assert lab.cell(watched.AGENT).locator("img").evaluate("(drawn) => drawn.naturalWidth") == 830
    assert lab.ran(watched.SETTINGS)[0].startswith("LoopSettings: preset wakeloop, 1 changed\n")
    assert lab.ran(watched.SHOWN)[0].endswith("\n\nAda knows.")
    assert lab.ran(watched.ALONE) == ["[]"]
    home = lab.url.partition("/lab")[0]
    assert [asked for asked in lab.asked if not asked.startswith((home, "data:", "blob:"))] == []


def somebody_else_reads_the_same(lab: Lab, folder: Path) -> None:
    """Without a kernel, from an untrusted file: the drawing is described in words."""
    lab.does("docmanager:save")
    ours = [lab.outputs(cell) for cell in range(len(watched.CELLS))]
    kept = json.loads((folder / "watch.ipynb").read_text())
    kept["cells"][0]["source"] += "# theirs"
    (folder / "theirs.ipynb").write_text(json.dumps(kept))
    lab.open("theirs.ipynb", kernel=False)
    lab.shows(watched.ALONE, "[]")
    theirs = [lab.outputs(cell) for cell in range(len(watched.CELLS))]
    assert lab.tab.locator(OUTPUTS).locator("svg, img, script").count() == 0
    (ways,) = theirs.pop(watched.AGENT)
    assert ways.startswith("<CheckedGraph 'wakeloop': activate, call_model")
    assert "finalization_guard → wake: open, within budget" in ways
    assert ours.pop(watched.AGENT) == [""]
    assert theirs == ours
    for theme in THEMES:
        lab.themed(theme)
        assert unreadable(lab.tab, OUTPUTS) == {}

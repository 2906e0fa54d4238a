"""Rule 28 in sessions: a thread outlives its context window, from turn to turn."""

from typing import Any

import pytest
from host_stage import Stage
from langchain_core.exceptions import ContextOverflowError
from rig import write
from small_windows import RESULT, TOOLS, WINDOW, count_tokens

from wakeloop import answer_of
from wakeloop.testing import calls

pytestmark = pytest.mark.slow

LOOKS = [calls(("look", {"path": f"f{number}.md"})) for number in range(12)]
CLOSE = calls(("todo_update", {"id": 1, "status": "done"}))


def results_in(host: Stage) -> list[str]:
    """Return the results of `look` in the last request, each by its beginning."""
    begun = [text.partition(": ")[0] for text in host.read("ada")]
    return [word for word in begun if word == "cleared" or word.endswith(".md")]


def test_a_session_outlives_its_window(host: Stage) -> None:
    first, second = [write("read"), *LOOKS[:6], CLOSE, "Six."], [*LOOKS[6:], "Twelve."]
    host.agent("ada", *first, *second, tools=TOOLS, max_context=WINDOW)
    host.say("ada", "Read six files.")
    assert results_in(host) == ["cleared"] * 4 + ["f4.md", "f5.md"]
    host.send("ada", {"kind": "cron", "id": "c", "text": "Read six more."})
    host.settle()
    assert (host.ending("ada"), answer_of(host.values("ada"))) == (("dormant", "answered"), "Twelve.")
    assert (host.asked("ada"), host.failures) == (len(first + second), [])
    assert max(count_tokens([], request) for request in host.models["ada"].requests) < 0.8 * WINDOW
    assert results_in(host) == ["cleared"] * 8 + ["f8.md", "f9.md", "f10.md", "f11.md"]
    whole = [m for m in host.values("ada")["messages"] if m.type == "tool" and len(m.text) >= RESULT]
    assert len(whole) == 12
    host.done()


def test_a_session_that_died_of_its_length_is_healed_by_the_next_event(host: Stage) -> None:
    dead: Any = ContextOverflowError("prompt is too long: 16,000 tokens > 15,000 maximum")
    host.agent("ada", *LOOKS[:8], dead, tools=TOOLS, max_context=0)
    host.say("ada", "Read the files.")
    assert [why.partition(":")[0] for why in host.failures] == ["ContextOverflowError"]
    host.agent("ada", dead, "All read.", tools=TOOLS)
    host.send("ada", {"kind": "cron", "id": "c", "text": "It is nine."})
    host.settle()
    assert (host.ending("ada"), answer_of(host.values("ada"))) == (("dormant", "answered"), "All read.")
    assert (host.asked("ada"), results_in(host)) == (2, ["cleared"] * 6 + ["f6.md", "f7.md"])
    host.done()

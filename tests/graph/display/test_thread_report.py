"""Reports of threads that a graph has run: finished, unfinished, forked, damaged."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any, ClassVar

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from wakeloop import ArgumentError, DamagedError, create_todo_agent, update_todos
from wakeloop.display import athread_report, thread_report
from wakeloop.display.checkpoint_history import read_history
from wakeloop.display.timeline import Timeline
from wakeloop.testing import ScriptedModel, calls, says

THREAD: Any = {"configurable": {"thread_id": "t"}}


def look(path: str) -> str:
    """Look at a file."""
    if path == "nowhere":
        raise ValueError(path)
    return f"contents of {path}"


def ask(what: str) -> str:
    """Ask the person."""
    return str(interrupt({"question": what}))


def agent_of(*steps: Any, saver: Any = None) -> Any:
    return create_todo_agent(ScriptedModel(steps), tools=[look, ask], checkpointer=saver or InMemorySaver())


WORK = (
    calls(("todo_write", {"items": ["a", "b"]}), ("look", {"path": "nowhere"})),
    says("Later."),
    calls(("todo_update", {"id": 1, "status": "in_progress"})),
    calls(
        ("todo_update", {"id": 1, "status": "done"}),
        ("todo_update", {"id": 2, "status": "blocked", "reason": "no"}),
    ),
    says("Done."),
)


def worked() -> Any:
    agent = agent_of(*WORK)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    return agent


def summarize(agent: Any, config: Any = THREAD) -> tuple[dict[Any, list[str]], list[str], list[str]]:
    """Return lanes, moments and messages."""
    shown = Timeline(read_history(agent, config))
    return (
        {lane.todo["content"]: [span.status for span in lane.spans] for lane in shown.lanes},
        [one.kind for one in shown.moments],
        [one.message.text for one in shown.said],
    )


def test_a_run_is_shown_as_it_was() -> None:
    agent = worked()
    update_todos(agent, THREAD, add=["c"])
    lanes, moments, said = summarize(agent)
    assert lanes == {
        "a": ["pending", "in_progress", "completed"],
        "b": ["pending", "blocked"],
        "c": ["pending"],
    }
    assert moments == ["request", "failed", "wake", "end", "hand"]
    assert said == [message.text for message in agent.get_state(THREAD).values["messages"]]


def test_every_time_lies_between_those_of_the_first_and_the_newest_checkpoint() -> None:
    shown = Timeline(read_history(worked(), THREAD))
    times = [
        *(one.at for one in shown.moments),
        *(one.at for one in shown.said),
        *(one.at for one in shown.spends),
    ]
    assert len(shown.spends) == len(WORK)
    assert all(shown.times[0] <= at <= shown.times[-1] for at in times)
    assert [one.at for one in shown.said] == sorted(one.at for one in shown.said)


def test_estimated_tokens_are_not_shown_as_facts() -> None:
    assert ">about " in thread_report(worked(), THREAD)


def test_the_past_takes_a_single_listing_of_the_saver() -> None:
    class Counting(InMemorySaver):
        listed: ClassVar[list[Any]] = []

        def list(self, *args: Any, **kwargs: Any) -> Any:
            self.listed.append(args)
            return super().list(*args, **kwargs)

    saver = Counting()
    agent = agent_of(*WORK, saver=saver)
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    saver.listed.clear()
    thread_report(agent, THREAD)
    assert len(saver.listed) == 1


def test_an_unfinished_thread_and_a_waiting_one() -> None:
    agent = agent_of(calls(("todo_write", {"items": ["a"]})), ConnectionError("down"))
    with pytest.raises(ConnectionError):
        agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert summarize(agent)[:2] == ({"a": ["pending"]}, ["request"])
    assert "Failed with 1 open: ConnectionError: down." in thread_report(agent, THREAD)

    agent = agent_of(calls(("ask", {"what": "May I?"})))
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    assert summarize(agent)[1] == ["request", "question"]
    assert "waits for an answer: May I?" in thread_report(agent, THREAD)


def test_a_fork_shows_its_own_branch_and_a_config_may_name_a_checkpoint() -> None:
    agent = worked()
    history = list(agent.get_state_history(THREAD))
    written = next(one for one in reversed(history) if one.values.get("todos"))
    fork = agent_of(*(says("No.") for _ in range(7)), saver=agent.checkpointer)
    fork.invoke({"messages": [("user", "stop")]}, written.config)
    assert summarize(fork)[0] == {"a": ["pending"], "b": ["pending"]}
    assert summarize(fork)[1][:3] == ["request", "failed", "request"]
    assert summarize(fork, written.config)[:2] == (
        {"a": ["pending"], "b": ["pending"]},
        ["request", "failed"],
    )


def test_an_edit_of_an_older_checkpoint_is_its_own_branch() -> None:
    agent = worked()
    written = next(one for one in reversed(list(agent.get_state_history(THREAD))) if one.values.get("todos"))
    agent.update_state(written.config, {"todos": {"drop": [1]}}, as_node="finalization_guard")
    shown = Timeline(read_history(agent, THREAD))
    assert [(lane.todo["content"], lane.gone is not None) for lane in shown.lanes] == [
        ("a", True),
        ("b", False),
    ]
    assert [one.kind for one in shown.moments] == ["request", "failed", "hand"]
    assert [one.gone for one in shown.said] == [False] * 4


def test_an_edit_next_to_a_finished_call_is_on_the_page() -> None:
    """Its row stores the whole conversation, with the result of that call, and the list as a change."""
    agent = agent_of(calls(("look", {"path": "x"}), ("ask", {"what": "?"})))
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    agent.update_state(THREAD, {"todos": [{"content": "by hand"}]}, as_node="activate")
    lanes, _, said = summarize(agent)
    assert lanes == {"by hand": ["pending"]}
    assert said == [message.text for message in agent.get_state(THREAD).values["messages"]]


class Torn(InMemorySaver):
    """A saver with rows that cannot be read."""

    def tear(self, steps: Iterable[int]) -> None:
        """Damage the checkpoints of these steps, and repair all others."""
        rows, torn = self.storage["t"][""], set(steps)
        for key, (stored, metadata, parent) in rows.items():
            form, data = stored
            data = data.removeprefix(b"\xc1")  # msgpack never uses this byte
            if self.serde.loads_typed(metadata)["step"] in torn:
                data = b"\xc1" + data
            rows[key] = ((form, data), metadata, parent)


@pytest.fixture
def torn() -> Any:
    agent = agent_of(*WORK, says("Yes."), saver=Torn())
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    agent.invoke({"messages": [("user", "more")]}, THREAD)
    return agent


def test_after_an_unreadable_row_the_rest_is_shown(torn: Any) -> None:
    rows = list(torn.checkpointer.list(THREAD))
    second = next(row.metadata["step"] for row in rows if row.metadata["source"] == "input")
    torn.checkpointer.tear([second + 2])
    assert summarize(torn)[1] == ["request", "failed", "wake", "end", "request", "gap", "end"]
    assert "Earlier steps cannot be read." in thread_report(torn, THREAD)

    torn.checkpointer.tear([rows[0].metadata["step"]])
    assert summarize(torn)[1] == ["request", "failed", "wake", "end", "request", "end", "gap"]
    page = thread_report(torn, THREAD)
    assert "The stored thread is damaged." in page

    torn.checkpointer.tear(row.metadata["step"] for row in rows[1:-1])
    assert summarize(torn)[1] == ["request", "gap"]

    torn.checkpointer.tear(row.metadata["step"] for row in rows)
    with pytest.raises(DamagedError):
        thread_report(torn, THREAD)


def test_a_thread_of_which_only_a_subagent_can_be_read_is_damaged(torn: Any) -> None:
    saver = torn.checkpointer
    rows = list(saver.list(THREAD))
    within: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub:1"}}
    saver.put(within, rows[0].checkpoint, rows[0].metadata, {})
    saver.tear(row.metadata["step"] for row in rows)
    with pytest.raises(DamagedError):
        thread_report(torn, THREAD)


@pytest.mark.parametrize("where", ["blobs", "writes"])
def test_a_row_with_a_value_that_cannot_be_read_is_left_out(torn: Any, where: str) -> None:
    saver = torn.checkpointer
    whole = read_history(torn, THREAD)
    if where == "blobs":
        key = max(key for key, value in saver.blobs.items() if value[0] != "empty")
        saver.blobs[key] = ("msgpack", b"\xc1")
    else:
        writes = next(iter(saver.writes.values()))
        task, channel, _, path = writes[key := next(iter(writes))]
        writes[key] = (task, channel, ("msgpack", b"\xc1"), path)
    past = read_history(torn, THREAD)
    assert past.damaged
    assert 0 < len(past.steps) < len(whole.steps)


@pytest.mark.timeout(60)
def test_a_row_with_an_impossible_parent_follows_a_gap(torn: Any) -> None:
    """The parent may be anything, even the row itself or a newer one, which would loop forever."""
    rows = torn.checkpointer.storage["t"][""]
    whole, ids = len(read_history(torn, THREAD).steps), sorted(rows)
    for parent in (b"\xff\x00", 7, ids[2], ids[-1], "\ufffd"):
        stored, metadata, before = rows[ids[2]]
        rows[ids[2]] = (stored, metadata, parent)
        past = read_history(torn, THREAD)
        assert past.damaged or any(step.after_gap for step in past.steps)
        assert len(past.steps) >= whole - 1
        rows[ids[2]] = (stored, metadata, before)


def test_a_row_that_ends_the_listing_hides_the_older_ones() -> None:
    class Ending(InMemorySaver):
        ends: ClassVar[list[int]] = []

        def list(self, *args: Any, **kwargs: Any) -> Any:
            for place, row in enumerate(super().list(*args, **kwargs)):
                if place in self.ends:
                    raise ValueError("not JSON")
                yield row

    agent = agent_of(*WORK, saver=Ending())
    agent.invoke({"messages": [("user", "go")]}, THREAD)
    Ending.ends.append(2)
    past = read_history(agent, THREAD)
    assert (past.damaged, len(past.steps)) == (True, 2)


def test_anything_but_a_thread_is_refused_in_one_sentence() -> None:
    bare = create_todo_agent(ScriptedModel(says("x")))
    with pytest.raises(ArgumentError, match="keeps no threads"):
        thread_report(bare, THREAD)
    with pytest.raises(ArgumentError, match="names no thread"):
        thread_report(agent_of(), {})
    with pytest.raises(ArgumentError, match="Thread 't' does not exist"):
        thread_report(agent_of(), THREAD)


async def test_the_asynchronous_door_gives_the_same_page() -> None:
    agent = worked()
    made = re.compile(r"Made [^<]+ from")
    assert made.sub("", await athread_report(agent, THREAD)) == made.sub("", thread_report(agent, THREAD))


# -- hostile strings ---------------------------------------------------------------------------------------

HOSTILE = (
    '<script>alert(1)</script><img src=x onerror="alert(2)">" onmouseover="alert(3)" \' '
    "</style></title></pre></details><!-- --><svg/onload=alert(4)>{{ 7 * 7 }}{% raw %}\x1b[31m\u202eevil\x00"
)


class Tags(HTMLParser):
    """Collects the elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links |= {str(value) for name, value in attrs if name in ("href", "src", "action")}


def test_hostile_strings_stay_text() -> None:
    call = {"name": "look", "args": {"path": HOSTILE, HOSTILE: HOSTILE}}
    agent = agent_of(
        calls(("todo_write", {"items": [HOSTILE]}), (HOSTILE, {HOSTILE: 1}), ("look", call["args"])),
        calls(("todo_update", {"id": 1, "status": "blocked", "reason": HOSTILE})),
        says(HOSTILE),
    )
    config: Any = {"configurable": {"thread_id": HOSTILE}}
    agent.invoke({"messages": [("user", HOSTILE), ("system", HOSTILE)]}, config)
    page = thread_report(agent, config)
    tags = Tags(page)
    assert [tags.tags.count(tag) for tag in ("script", "style", "img", "iframe", "link")] == [1, 1, 0, 0, 0]
    assert not {name for name in tags.attributes if name.startswith("on") or name == "style"}
    assert all(re.fullmatch(r"#(m\d+|talk)", link) for link in tags.links)
    assert "{{ 7 * 7 }}" in page
    assert not re.search("[\x00\x1b\u202e]", page)
    assert page.count("&lt;script&gt;alert(1)") >= 8


def test_the_policy_names_the_one_style_and_the_one_script_by_their_hashes() -> None:
    page = thread_report(worked(), THREAD)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    named = {part.split()[0]: part.split()[1:] for part in policy[1].split(";")}
    hashes = {}
    for kind in ("style", "script"):
        [text] = re.findall(f"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        hashes[f"{kind}-src"] = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"]
    assert named == {"default-src": ["'none'"], "base-uri": ["'none'"], "form-action": ["'none'"], **hashes}

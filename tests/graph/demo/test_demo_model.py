"""The offline model: its job on the real graph, whole, broken off, and asked for other things."""

import json
import time
from collections import Counter
from unittest.mock import ANY

import pytest
from audited import GO, REPORT, Watched, agent_for, ask, check_reads_nothing_twice, project, values
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from wakeloop import preset, session_of, update_todos
from wakeloop.demo.history import events
from wakeloop.demo.job import demo_tools, request_text
from wakeloop.demo.offline import OfflineAuditor
from wakeloop.demo.report import code, report
from wakeloop.demo.script import ASKS, FILE_TOOLS, NEEDED, next_reply
from wakeloop.demo.vocabulary import Parley, happened, vocabulary_of
from wakeloop.testing import prompt_faults, wire_faults
from wakeloop.testing.todo_tools import CHECKLIST, WRITE_TODOS, LokiTools

SETTLED = {
    "state": "dormant",
    "reason": "settled",
    "open": 0,
    "wakes": 6,
    "budget": 29,
    "list": ANY,
    "items": ANY,
    "spent": ANY,
}


@pytest.fixture
def root(tmp_path):
    return project(tmp_path)


def audit(root, **options):
    """Run an audit; returns the graph and the events that count."""
    graph = agent_for(root, **options)
    told = list(graph.stream(ask(request_text(root)), GO, stream_mode="custom"))
    return graph, Counter(event["type"] for event in told)


def open_items(graph):
    return [t for t in values(graph).get("todos", []) if t["status"] in ("pending", "in_progress")]


def calls_made(messages):
    return [(e.name, e.args.get("path"), e.state) for e in events(messages) if e.kind == "call"]


def replies(messages):
    return [[c["name"] for c in m.tool_calls] or "text" for m in messages if isinstance(m, AIMessage)]


def check_ended(graph, root, *, wakes=6, budget=29):
    assert session_of(graph.get_state(GO)) == SETTLED | {"wakes": wakes, "budget": budget}
    assert (root / REPORT).is_file()
    check_reads_nothing_twice(values(graph)["messages"])


# -- the whole run


def test_the_run_has_six_wakes_one_nag_one_correction(root):
    model = Watched()
    graph, told = audit(root, model=model)
    assert (told["wake"], told["nag"], told["guard"], told["parked"]) == (6, 1, 1, 1)
    check_ended(graph, root)
    state = values(graph)
    assert [(todo["content"], todo["status"]) for todo in state["todos"]] == [
        ("Audit a.py", "completed"),
        ("Audit b.py", "completed"),
        ("Audit docs/c.md", "completed"),
        ("Write wakeloop-report.md", "completed"),
    ]
    assert replies(state["messages"]) == [
        ["list_files"],
        ["todo_write"],
        ["read_file"],
        ["measure_lines"],
        ["measure_longest"],
        ["measure_markers"],
        ["measure_links"],
        ["todo_update"],
        "text",  # stops with open items; the wake goes on
        [*FILE_TOOLS],
        ["todo_update", *FILE_TOOLS],
        ["todo_update", "write_file"],
        "text",  # calls it done, through five wakes
        *["text"] * 5,
        ["todo_update"],  # after the correction
        "text",
    ]
    nagged = [m for m in state["messages"] if m.additional_kwargs.get("wakeloop", {}).get("kind") == "nag"]
    assert [message.name for message in nagged] == ["measure_links"]
    assert wire_faults(model._requests) == []
    assert prompt_faults(model._requests) == []


def test_the_report(root):
    audit(root)
    assert (
        (root / REPORT).read_text()
        == """\
# Audit of this folder

Written by an offline, rule-based stand-in for a model (fixed rules; no language model was asked).

| file | lines | longest part | open markers | dead links |
|---|--:|---|--:|--:|
| `a.py` | 3 | function `f`, 3 lines | 1 | 0 |
| `b.py` | 1 | – | 0 | 0 |
| `docs/c.md` | 3 | section `C`, 3 lines | 0 | 1 |

## Findings

- `a.py:2` open marker: `TODO: x | y`
- `b.py`: it cannot be parsed as Python (line 1)
- `docs/c.md:3` dead link: `gone.md`, no such file or folder

## Totals

Files: 3, lines: 7, open markers: 1, dead links: 1.
No file was left out.
"""
    )


def test_it_says_what_it_is_everywhere(root):
    graph, _ = audit(root)
    texts = [m.text for m in values(graph)["messages"] if isinstance(m, AIMessage)]
    for text in (
        OfflineAuditor().name,
        OfflineAuditor.__doc__,
        texts[0],
        texts[-1],
        (root / REPORT).read_text(),
    ):
        assert "rule-based" in text
        assert "offline" in text


def test_a_single_file_makes_the_same_run(tmp_path):
    (tmp_path / "only.md").write_text("# Only\n")
    graph, told = audit(tmp_path)
    assert (told["wake"], told["nag"], told["guard"]) == (6, 1, 1)
    check_ended(graph, tmp_path, budget=27)


def test_the_number_of_files_is_bounded_and_said(tmp_path):
    for number in range(20):
        (tmp_path / f"{number:02}.py").write_text("x = 1\n")
    (tmp_path / "99\u200b.py").write_text("x = 1\n")
    graph, told = audit(tmp_path)
    assert (told["wake"], told["nag"], told["guard"]) == (6, 1, 1)
    check_ended(graph, tmp_path, budget=38)
    assert len(values(graph)["todos"]) == 13
    why = "8 more files; an audit takes 12 at most, and 1 file with signs in the name that cannot be seen."
    assert f"Files to audit: 12. Left out: {why}" in [m.text for m in values(graph)["messages"]]
    assert f"Left out: {why}" in (tmp_path / REPORT).read_text()
    graph, _ = audit(tmp_path, model=OfflineAuditor(limit=2))
    assert len(values(graph)["todos"]) == 3


async def test_async(root):
    graph = agent_for(root)
    await graph.ainvoke(ask(request_text(root)), GO)
    check_ended(graph, root)


def test_the_graph_streams_its_words(root):
    pieces = [m.text for m, _ in agent_for(root).stream(ask(request_text(root)), GO, stream_mode="messages")]
    assert pieces[:3] == ["I ", "am ", "an "]
    assert "".join(pieces).endswith(f"3 files; the report is in {REPORT}.")


# -- what goes wrong


def unreadable(root, *paths):
    """Tools that list these files, and find them gone afterwards."""
    tools = demo_tools(root)
    listing = next(tool for tool in tools if tool.name == "list_files")
    inner = listing.func

    def vanishing(**args):
        text = inner(**args)
        for path in paths:
            (root / path).unlink()
        return text

    listing.func = vanishing
    return tools


@pytest.mark.parametrize("gone", [["a.py"], ["b.py"], ["docs/c.md"], ["a.py", "b.py", "docs/c.md"]])
def test_a_vanished_file_is_blocked_and_reported(root, gone):
    graph, told = audit(root, tools=unreadable(root, *gone))
    assert (told["wake"], told["nag"], told["guard"]) == (6, 1, 1)
    check_ended(graph, root)
    blocked = [todo for todo in values(graph)["todos"] if todo["status"] == "blocked"]
    assert [todo["content"] for todo in blocked] == [f"Audit {path}" for path in gone]
    assert blocked[0]["reason"].startswith(f"It could not be read: There is no '{gone[0]}' in the folder")
    assert f"- `{gone[0]}`: There is no '{gone[0]}' in the folder" in (root / REPORT).read_text()


def test_a_binary_file_is_blocked(root):
    (root / "a.py").write_bytes(b"\0")
    graph, _ = audit(root)
    check_ended(graph, root)
    assert values(graph)["todos"][0]["reason"] == "It could not be read: 'a.py' is a binary file, not text."


def test_a_report_that_cannot_be_written_is_blocked(root):
    (root / REPORT).mkdir()
    graph, told = audit(root)
    assert (told["wake"], told["nag"], told["guard"]) == (6, 1, 1)
    assert session_of(graph.get_state(GO)) == SETTLED
    last = values(graph)["todos"][-1]
    assert (last["status"], last["reason"]) == (
        "blocked",
        f"'{REPORT}' is a folder, not a file; list_files lists it.",
    )
    assert "no report could be written" in values(graph)["messages"][-1].text


def test_nothing_to_audit(tmp_path):
    graph, told = audit(tmp_path)
    assert told["wake"] == 0
    assert values(graph)["messages"][-1].text.startswith("There is nothing to audit here")


def test_a_list_that_is_too_short_ends_the_audit(root):
    graph, told = audit(root, settings=preset("wakeloop").model_copy(update={"max_items": 2}))
    assert told["wake"] == 0
    assert values(graph)["messages"][-1].text.startswith(
        "The list could not be written, so there is no audit: "
    )


@pytest.mark.parametrize(
    "changed",
    [{"max_idle_wakes": 1}, {"max_wake_cycles": 1}, {"nag_after": 0}, {"nag_after": 1, "nag_every": 1}],
)
def test_other_settings_end_settled_too(root, changed):
    graph, _ = audit(root, settings=preset("wakeloop").model_copy(update=changed))
    assert session_of(graph.get_state(GO))["reason"] == "settled"
    assert (root / REPORT).is_file()


def test_without_wakes_a_message_goes_on(root):
    graph, told = audit(root, settings=preset("wakeloop").model_copy(update={"auto_continue": False}))
    assert told["wake"] == 0
    for _ in range(3):
        graph.invoke(ask("go on"), GO)
    assert session_of(graph.get_state(GO))["state"] == "dormant"
    assert (root / REPORT).is_file()


# -- asked for something else


@pytest.mark.parametrize("text", ["hi", "what does the report say?", "an audit trail", "again"])
def test_anything_else_gets_an_honest_sentence(root, text):
    graph = agent_for(root)
    state = graph.invoke(ask(text), GO)
    assert replies(state["messages"]) == ["text"]
    assert "rule-based" in state["messages"][-1].text


@pytest.mark.parametrize(
    "text", ["Audit the folder 'x'", "please audit this", "Re-audit it", "again: audit everything"]
)
def test_these_ask_for_an_audit(text):
    assert ASKS.search(text)


def test_a_finished_thread_answers_shortly_and_audits_again(root):
    graph, _ = audit(root)
    before = len(values(graph)["messages"])
    graph.invoke(ask("thanks, what now?"), GO)
    messages = values(graph)["messages"]
    assert len(messages) == before + 2
    assert "The audit has ended; the report is in wakeloop-report.md." in messages[-1].text
    (root / "a.py").unlink()
    told = Counter(e["type"] for e in graph.stream(ask("audit again"), GO, stream_mode="custom"))
    assert (told["wake"], told["nag"], told["guard"]) == (6, 1, 1)
    assert session_of(graph.get_state(GO)) == SETTLED | {"budget": 28}
    assert [todo["content"] for todo in values(graph)["todos"]][4:] == [
        "Audit b.py",
        "Audit docs/c.md",
        "Write wakeloop-report.md",
    ]
    assert REPORT + "`" not in (root / REPORT).read_text()


def test_an_item_of_somebody_else_is_blocked(root):
    graph = agent_for(root)
    todos = [{"content": "cook dinner", "status": "pending"}]
    graph.invoke(ask(request_text(root)) | {"todos": todos}, GO)
    check = values(graph)["todos"][0]
    assert (check["status"], check["reason"]) == (
        "blocked",
        "The offline, rule-based auditor can only audit files.",
    )
    assert session_of(graph.get_state(GO))["reason"] == "settled"


def test_edits_by_hand_are_seen(root):
    settings = preset("wakeloop").model_copy(update={"max_wake_cycles": 0, "guard_retries": 0})
    graph, _ = audit(root, settings=settings)
    assert session_of(graph.get_state(GO))["state"] == "idle"
    update_todos(graph, GO, add=["walk the dog"], done=[3], remove=[2])
    graph = agent_for(root, saver=graph.checkpointer)
    graph.invoke(ask("go on"), GO)
    assert session_of(graph.get_state(GO))["reason"] == "settled"
    statuses = {todo["content"]: todo["status"] for todo in values(graph)["todos"]}
    assert statuses["walk the dog"] == "blocked"
    assert "Audit b.py" not in statuses


def test_without_its_tools_it_says_so():
    request = [HumanMessage("audit the folder")]
    assert "without the todo tools" in next_reply(request, [], 12).text
    assert next_reply(request, {"todo_write", "todo_update", *NEEDED} - {"read_file"}, 12).text.endswith(
        "this request came without read_file."
    )


# -- broken off and resumed


def supersteps(root):
    return len(list(agent_for(root).stream(ask(request_text(root)), GO, stream_mode="updates")))


@pytest.mark.parametrize("bound", [12, 3], ids="every {}".format)
@pytest.mark.parametrize("message", [None, "go on", "audit the folder"])
def test_broken_off_anywhere_it_finishes(root, message, bound):
    for broken_after in range(1, supersteps(root), bound):
        (root / REPORT).unlink(missing_ok=True)
        graph = agent_for(root)
        stream = graph.stream(ask(request_text(root)), GO, stream_mode="updates", durability="sync")
        for _ in range(broken_after):
            next(stream)
        stream.close()
        was_open = bool(open_items(graph))
        graph.invoke(None if message is None else ask(message), GO)
        assert session_of(graph.get_state(GO))["reason"] == "settled", broken_after
        assert (root / REPORT).is_file()
        if was_open or message != "audit the folder":  # otherwise this asks for another audit, and gets it
            check_reads_nothing_twice(values(graph)["messages"])
        if message is None:
            check_ended(graph, root)


# -- the parts


def test_it_streams_in_pieces_what_it_would_have_said(root):
    model = OfflineAuditor().bind_tools(
        [*demo_tools(root), {"type": "function", "function": {"name": "todo_write"}}]
    )
    model = model.bind(
        tools=[*model.kwargs["tools"], {"type": "function", "function": {"name": "todo_update"}}]
    )
    request = [HumanMessage("audit this")]
    whole = model.invoke(request)
    pieces = list(model.stream(request))
    assert len(pieces) > 10
    joined = pieces[0]
    for piece in pieces[1:]:
        joined += piece
    assert joined.text == whole.text
    assert joined.tool_calls == whole.tool_calls
    assert [call["name"] for call in whole.tool_calls] == ["list_files"]
    assert joined.usage_metadata == whole.usage_metadata
    assert whole.usage_metadata["input_tokens"] == len("audit this") // 4
    assert (
        joined.response_metadata["finish_reason"] == whole.response_metadata["finish_reason"] == "tool_calls"
    )
    assert "approximate" in whole.response_metadata["usage_note"]


def test_delay_takes_its_time():
    model = OfflineAuditor(delay=0.2)
    started = time.monotonic()
    list(model.stream("hi"))
    assert time.monotonic() - started >= 0.2
    model.invoke("hi")
    assert time.monotonic() - started >= 0.4


def test_events_read_marks_and_not_words():
    told = events(
        [
            HumanMessage("Your turn ended"),
            AIMessage(
                "", tool_calls=[{"name": "f", "args": {}, "id": "1"}, {"name": "g", "args": {}, "id": "2"}]
            ),
            ToolMessage(
                "resultnag", tool_call_id="1", additional_kwargs={"wakeloop": {"kind": "nag", "chars": 3}}
            ),
            ToolMessage(
                "x", tool_call_id="2", status="error", additional_kwargs={"wakeloop": {"kind": "repair"}}
            ),
            AIMessage("closed", additional_kwargs={"wakeloop": {"kind": "repair"}}),
            HumanMessage("hello", additional_kwargs={"wakeloop": {"kind": "wake"}}),
            AIMessage("", tool_calls=[{"name": "h", "args": {}, "id": "3"}]),
        ]
    )
    assert [(e.kind, e.text, e.mark, e.name, e.state) for e in told] == [
        ("person", "Your turn ended", "", "", "ok"),
        ("call", "result", "", "f", "ok"),
        ("call", "x", "", "g", "unanswered"),
        ("graph", "hello", "wake", "", "ok"),
        ("call", "", "", "h", "unanswered"),
    ]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("``", "``` `` ```"),
        ("`a", "`` `a ``"),
        ("a\nb", "`a b`"),
        ("", "(blank)"),
    ],
)
def test_code_spans_hold_any_text(text, span):
    assert code(text) == span


def test_a_table_cell_keeps_its_row():
    assert "| `a\\|b.py` |" in report(["a|b.py"], {}, 0, 12)


# -- other dialects, with a plain loop in the graph's place

VOCABULARY = {
    "loki": (LokiTools(), ["todo__init", "todo__add", "todo__done", "todo__list", "todo__clear"]),
    "checklist": (CHECKLIST, ["todo"]),
    "write_todos": (WRITE_TODOS, ["write_todos"]),
}


@pytest.mark.parametrize("dialect", VOCABULARY)
def test_other_dialects(root, dialect):
    vocabulary, names = VOCABULARY[dialect]
    tools = {tool.name: tool for tool in demo_tools(root)}
    messages = [HumanMessage(request_text(root))]
    texts = 0
    while texts < 6:
        reply = next_reply(messages, [*tools, *names], 12)
        ids = [str(len(messages) + n) for n in range(len(reply.calls))]
        calls = [{"name": n, "args": a, "id": i} for (n, a), i in zip(reply.calls, ids, strict=True)]
        messages.append(AIMessage(reply.text, tool_calls=calls))
        for call in calls:
            text = "ok" if call["name"] in names else tools[call["name"]].invoke(call["args"])
            messages.append(ToolMessage(text, tool_call_id=call["id"]))
        if not calls:
            texts += 1
            kind = "guard" if texts == 5 else "wake"
            messages.append(HumanMessage("…", additional_kwargs={"wakeloop": {"kind": kind}}))
    told = events(messages)
    items = vocabulary.read(happened(told))
    assert [item.text for item in items] == [f"Audit {p}" for p in ("a.py", "b.py", "docs/c.md")] + [
        f"Write {REPORT}"
    ]
    assert not any(item.is_open for item in items)
    assert (root / REPORT).is_file()
    assert Counter(name for name, _, _ in calls_made(messages))["read_file"] == 3
    for row in [row for e in told if e.name in ("todo", "write_todos") for row in [e.args]]:
        statuses = [item["status"] for item in next(iter(row.values()))]
        assert statuses.count("in_progress") == (0 if set(statuses) == {"completed"} else 1)


def test_the_dialect_is_told_by_the_tools():
    assert isinstance(vocabulary_of(["todo_write", "todo_update", "todo_list"]), Parley)
    assert vocabulary_of(["read_file"]) is None
    assert json.loads(json.dumps(Parley().plan(["a"]))) == [["todo_write", {"items": ["a"]}]]

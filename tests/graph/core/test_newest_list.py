"""Rule 23: the model always knows the newest list, whoever wrote it."""

from contextlib import suppress
from dataclasses import make_dataclass
from typing import Annotated, Any, TypedDict

import pytest
from agents import CONFIG, change, done, todo, write
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Overwrite, StateUpdate, interrupt

from wakeloop import InputError, create_todo_agent, join_session, join_todos, session_of, update_todos
from wakeloop.middleware import ChangesState, WakeLoopMiddleware
from wakeloop.presets import PRESETS
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults
from wakeloop.todos.changes import stamp_items

SAYS = "The todo list was changed, and not by you."
QUIET = {"max_wake_cycles": 0, "guard_retries": 0, "auto_continue": True, "on_new_topic": "ignore"}
DOORS = [*PRESETS, "middleware", "middleware, as changes"]
Pair = tuple[str, str]


def send(dialect: str, *items: Pair) -> AIMessage:
    """Return the reply that writes a list with these contents and statuses."""
    if dialect == "write_todos":
        return calls(("write_todos", {"todos": [{"content": text, "status": is_} for text, is_ in items]}))
    if dialect == "checklist":
        return calls(("todo", {"items": [{"text": text, "status": is_} for text, is_ in items]}))
    if dialect == "loki":
        return calls(("todo__init", {"goal": "tidy"}), *(("todo__add", {"task": text}) for text, _ in items))
    return write(*(text for text, _ in items))


PLAN = (("sweep", "in_progress"), ("water", "pending"))


def dialect_of(door: str) -> str:
    return PRESETS["langchain" if door.startswith("middleware") else door].dialect


def make(door: str, *replies: Any, tools: Any = (), saver: Any = None) -> tuple[Any, ScriptedModel, str]:
    """Make an agent through one of the doors; return it with its model and its dialect."""
    settings = PRESETS["langchain" if door.startswith("middleware") else door].model_copy(update=QUIET)
    model = ScriptedModel([send(settings.dialect, *PLAN), "Planned.", *replies])
    saver = saver or InMemorySaver()
    if not door.startswith("middleware"):
        return create_todo_agent(model, tools, settings=settings, checkpointer=saver), model, settings.dialect
    state = ChangesState if door.endswith("changes") else None
    middleware = [WakeLoopMiddleware(settings=settings)]
    agent = create_agent(model, list(tools), middleware=middleware, checkpointer=saver, state_schema=state)
    return agent, model, settings.dialect


def call_of(name: str, call_id: str) -> Any:
    """Return a call of a tool that takes the id of its call."""
    return {"name": name, "args": {"call_id": call_id}, "id": call_id}


def run(agent: Any, text: str) -> Any:
    return agent.invoke({"messages": [("user", text)]}, CONFIG)


def texts(request: list[BaseMessage]) -> str:
    return "\n".join(message.text for message in request)


def sound(model: ScriptedModel) -> bool:
    return wire_faults(model.requests) == prompt_faults(model.requests) == []


@pytest.mark.parametrize("door", DOORS)
def test_c61_an_edit_by_hand_is_shown_once(door: str) -> None:
    agent, model, _ = make(door, "Fine.", "Fine.")
    run(agent, "Tidy up.")
    first, second = (item["id"] for item in agent.get_state(CONFIG).values["todos"])
    update_todos(agent, CONFIG, remove=[second], add=["tell Ada"], done=[first])
    run(agent, "Continue.")
    asked, said = model.requests[-1][-2:]
    assert asked.text == "Continue."
    lines = said.text.removeprefix("(automatic) ").split("\n")
    assert lines[0] == f"{SAYS} Go by what it says now."
    assert lines[1::2] == ["Completed by a person:", "Removed by a person:", "Added by a person:"]
    assert ["sweep" in lines[2], "water" in lines[4], "tell Ada" in lines[6]] == [True] * 3
    run(agent, "Continue.")
    assert [texts(request).count(SAYS) for request in model.requests] == [0, 0, 1, 1]
    assert model.requests[-1][-1].text == "Continue."
    assert len(model.requests) == 4
    assert sound(model)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("by", ["update_state", "changes", "input"])
def test_a_list_from_the_program_is_shown_once(by: str, door: str) -> None:
    agent, model, _ = make(door, "Fine.", "Fine.")
    run(agent, "Tidy up.")
    first, second = agent.get_state(CONFIG).values["todos"]
    todos = [{**first, "status": "completed"}, {**second, "content": "water the plants"}]
    if by != "input":
        agent.update_state(CONFIG, {"todos": {"put": todos} if by == "changes" else todos})
        run(agent, "Continue.")
    else:
        agent.invoke({"messages": [("user", "Continue.")], "todos": todos}, CONFIG)
    said = texts(model.requests[-1][-2:])
    assert said.count("water the plants") == 1
    assert said.count("Completed by the program:") == 1
    run(agent, "Continue.")
    assert [texts(request).count("water the plants") for request in model.requests] == [0, 0, 1, 1]
    assert sound(model)


@pytest.mark.parametrize("door", DOORS)
def test_c62_a_fork_that_writes_the_list_in_mid_run_shows_it(door: str) -> None:
    agent, model, _ = make(door, "Fine.", "Fine.", "Fine.")
    run(agent, "Tidy up.")
    run(agent, "Go on.")
    at = "model" if door.startswith("middleware") else "call_model"
    history = list(agent.get_state_history(CONFIG))
    place = next(snapshot for snapshot in history if snapshot.next == (at,))
    fork = agent.update_state(place.config, {"todos": [todo(9, "tell Ada")]})
    agent.invoke(None, fork)
    said = model.requests[-1][-1].text
    assert said.count("tell Ada") == 1
    assert "[The current todo list:]" in said or SAYS in said
    run(agent, "Continue.")
    assert texts(model.requests[-1]).count("tell Ada") == 1


def test_changes_from_outside_count_as_a_list_from_outside() -> None:
    """They are recorded after a manual edit too, and ids are compared as strings."""
    agent, model, _ = make("wakeloop", "Fine.")
    run(agent, "Tidy up.")
    update_todos(agent, CONFIG, add=["tell Ada"])
    agent.update_state(CONFIG, {"todos": {"drop": ["2"]}})
    run(agent, "Continue.")
    said = model.requests[-1][-1].text
    assert f"{SAYS} Go by what it says now.\nRemoved by the program:\n  [2] water\n\n" in said
    assert said.endswith("\n\n  [1] sweep\n  [3] tell Ada")
    assert sound(model)


def test_an_id_sent_back_as_a_string_is_the_same_id() -> None:
    agent, model, _ = make("wakeloop", "Fine.")
    run(agent, "Tidy up.")
    first, second = agent.get_state(CONFIG).values["todos"]
    agent.update_state(CONFIG, {"todos": [{**first, "id": "1"}, {**second, "id": "2"}]})
    run(agent, "Continue.")
    assert agent.get_state(CONFIG).values["todos"] == [first, second]
    assert model.requests[-1][-1].text == "Continue."


def test_a_list_of_blocked_items_is_shown_in_a_new_thread() -> None:
    agent, model, _ = make("wakeloop")
    todos = [todo(1, "sweep", "blocked", reason="no key")]
    agent.invoke({"messages": [("user", "Go on.")], "todos": todos}, CONFIG)
    lines = model.requests[0][-1].text.split("\n")
    assert lines[0] == "(automatic) [The current todo list:]"
    assert lines[2:] == ["  [1] sweep (blocked: no key)", "Nothing on the list is open."]


def test_a_fork_of_a_fork_is_shown_where_a_wake_showed_the_first(thread: Any) -> None:
    """Both lists are recorded as unknown to the model, but only the first is older than the wake."""
    agent = thread(write("a"), ".", ".", ".", ".", change={**QUIET, "max_wake_cycles": 1}, rewritten=True)
    agent.run("go")
    for number, node, following in ((7, "finalization_guard", "wake"), (8, "wake", "call_model")):
        newest_first = agent.graph.get_state_history(agent.at())
        place = next(snapshot for snapshot in newest_first if snapshot.next == (following,))
        fork = agent.graph.update_state(place.config, {"todos": [todo(number, "b")]}, as_node=node)
        agent.graph.invoke(None, fork)
        assert f"[{number}] b" in agent.model.requests[-1][-1].text


@pytest.mark.parametrize("door", ["wakeloop", "middleware"])
def test_a_fork_right_after_a_given_list_was_shown(door: str) -> None:
    """What the message shows is recorded as unseen until the request; the fork removes it."""
    agent, model, _ = make(door, "Fine.", "Fine.")
    run(agent, "Tidy up.")
    given = [*agent.get_state(CONFIG).values["todos"], {"content": "tell Ada", "status": "pending"}]
    agent.invoke({"messages": [("user", "Go on.")], "todos": given}, CONFIG)
    at, node = ("model", "WakeLoopMiddleware.before_agent") if door == "middleware" else ("call_model", None)
    place = next(one for one in agent.get_state_history(CONFIG) if one.next == (at,))
    fork = agent.update_state(place.config, {"todos": place.values["todos"][:1]}, as_node=node)
    agent.invoke(None, fork)
    last = model.requests[-1][-1].text
    assert "tell Ada" in last
    assert "tell Ada" not in last.partition("[The current todo list:]")[2]
    assert "sweep" in last.partition("[The current todo list:]")[2]


def test_the_stamp_of_four_numbered_items_differs_from_an_empty_lists() -> None:
    """A linear checksum would take this list for an empty one."""
    assert stamp_items([todo(number, f"part {number}") for number in (2, 3, 4, 5)]) != stamp_items([])


def test_an_overwritten_list_is_shown_too() -> None:
    agent, model, _ = make("wakeloop", "Fine.")
    run(agent, "Tidy up.")
    agent.update_state(CONFIG, {"todos": Overwrite([todo(1, "sweep"), todo(3, "tell Ada")])})
    run(agent, "Continue.")
    assert texts(model.requests[-1]).count("tell Ada") == 1


@pytest.mark.parametrize("door", [door for door in DOORS if dialect_of(door) != "parley"])
def test_c61_a_whole_list_that_answers_an_older_request_is_refused_once(door: str) -> None:
    """A stored reply is resumed after somebody has edited the list; what it did not know is not lost."""
    dialect = dialect_of(door)
    again = calls(("todo__clear", {})) if dialect == "loki" else send(dialect, *PLAN)
    agent, model, _ = make(door, again, again, "Planned anew.")
    run(agent, "Tidy up.")
    at, before = "validate_todos", "call_model"
    if door.startswith("middleware"):
        at, before = "WakeLoopMiddleware.after_model", "model"
    agent.invoke({"messages": [("user", "Plan anew.")]}, CONFIG, interrupt_before=[at])
    todos = [*agent.get_state(CONFIG).values["todos"], {"content": "tell Ada", "status": "pending"}]
    agent.update_state(CONFIG, {"todos": todos}, as_node=before)
    agent.invoke(None, CONFIG, interrupt_before=[at])
    refused = model.requests[-1][-1]
    assert isinstance(refused, ToolMessage)
    assert refused.status == "error"
    assert "the list was changed while you wrote this one" in refused.text
    assert refused.text.count("tell Ada") == 1
    assert len(agent.get_state(CONFIG).values["todos"]) == 3
    agent.invoke(None, CONFIG)
    assert agent.get_state(CONFIG).values["todo_session"]["reason"] != "malformed_calls"
    assert "tell Ada" not in str(agent.get_state(CONFIG).values["todos"])  # by a model that has seen it
    assert len(model.requests) == 5
    assert sound(model)


def test_that_refusal_is_neither_malformed_nor_an_idle_round() -> None:
    agent, _, _ = make("langchain", send("write_todos", *PLAN), "Fine.")
    run(agent, "Tidy up.")
    agent.invoke({"messages": [("user", "Plan anew.")]}, CONFIG, interrupt_before=["validate_todos"])
    todos = agent.get_state(CONFIG).values["todos"][:1]
    agent.update_state(CONFIG, {"todos": todos}, as_node="call_model")
    agent.invoke(None, CONFIG)
    ledger = agent.get_state(CONFIG).values["todo_ledger"]
    assert "idle_rounds" not in ledger
    assert "bad_replies" not in ledger


def plan(call_id: str) -> Command[Any]:
    """Write the list."""
    todos = [todo(1, "a", "cancelled"), todo(2, "b", "completed"), {"content": "new"}]
    return Command(update={"todos": todos, "messages": [ToolMessage("ok", tool_call_id=call_id)]})


def test_c62_a_tools_list_next_to_a_todo_call_is_merged_per_item(door: str, thread: Any) -> None:
    both = calls(change(1, "done"), ("plan", {"call_id": "77"}, "77"))
    agent = thread(write("a", "b"), both, "bye", tools=[plan], change=QUIET)
    events = [event for event in agent.events("go") if event["type"] == "todos"]
    assert agent.todos == [todo(1, "a", "completed"), todo(2, "b", "completed"), todo(3, "new")]
    assert [event.get("overruled") for event in events] == [None, None, [1]]
    said = [message for message in agent.model.requests[-1] if message.text.startswith("ok\n\n")]
    lines = said[0].text.split("\n")[3:]
    assert lines == ["Completed by plan:", "  [2] b", "Added by plan:", "  [3] new"]


WHOLE = ["langchain", "middleware", "middleware, as changes"]
KNOWN = (("sweep", "completed"), ("water", "pending"))


def rewrite(*todos: Any, asks: bool = False) -> Any:
    """Return a tool that writes these items once a person has agreed."""

    def edit(call_id: str) -> Command[Any]:
        """Edit the list."""
        if asks:
            interrupt("May I?")
        return Command(update={"todos": list(todos), "messages": [ToolMessage("ok", tool_call_id=call_id)]})

    return edit


@pytest.mark.parametrize("asks", [False, True], ids=["at once", "resumed"])
@pytest.mark.parametrize("door", WHOLE)
def test_c62_no_door_loses_a_todo_call_to_a_tool_next_to_it(door: str, asks: bool) -> None:
    edit = rewrite(
        todo(1, "sweep", "cancelled"), todo(2, "water", "completed"), {"content": "new"}, asks=asks
    )
    both = AIMessage("", tool_calls=[*send("write_todos", *KNOWN).tool_calls, call_of("edit", "77")])
    agent, model, _ = make(door, both, "Fine.", tools=[edit])
    run(agent, "Tidy up.")
    given: Any = {"messages": [("user", "Go on.")]}
    events = list(agent.stream(given, CONFIG, stream_mode="custom"))
    if asks:
        events += agent.stream(Command(resume=True), CONFIG, stream_mode="custom")
    assert agent.get_state(CONFIG).values["todos"] == [
        todo(1, "sweep", "completed"), todo(2, "water", "completed"), todo(3, "new"),
    ]  # fmt: skip
    assert [one["overruled"] for one in events if "overruled" in one] == [[1]]
    said = next(message for message in model.requests[-1] if message.text.startswith("ok\n\n"))
    assert said.text.split("\n")[3:] == [
        "Completed by edit:", "  - [completed] water", "Added by edit:", "  - [pending] new",
    ]  # fmt: skip
    assert sound(model)


@pytest.mark.parametrize("way", ["approved", "planned", "planned, middleware"])
def test_c62_a_tool_that_waited_for_a_person_is_merged_too(way: str) -> None:
    edit = rewrite(todo(1, "a"), todo(2, "b"), {"content": "new"})
    both = calls(("todo_write", {"items": ["x"]}), change(1, "done"), ("edit", {"call_id": "77"}, "77"))
    model = ScriptedModel(write("a", "b"), "Planned.", both, "Fine.")
    plan = {} if way == "approved" else {"approve_plan": "changes"}
    settings, saver = PRESETS["wakeloop"].model_copy(update={**QUIET, **plan}), InMemorySaver()
    agent: Any
    if way.endswith("middleware"):
        layer = WakeLoopMiddleware(settings=settings)
        agent = create_agent(model, [edit], middleware=[layer], checkpointer=saver)
    else:
        asks = {"edit": True} if way == "approved" else None
        agent = create_todo_agent(model, [edit], settings=settings, interrupt_on=asks, checkpointer=saver)
    for text in ("Tidy up.", "Go on."):
        run(agent, text)
        while agent.get_state(CONFIG).interrupts:
            agent.invoke(Command(resume="yes"), CONFIG)
    found = [(item["content"], item["status"]) for item in agent.get_state(CONFIG).values["todos"]]
    assert found == [("a", "completed"), ("b", "pending"), ("x", "pending"), ("new", "pending")]
    assert sound(model)


def test_c62_a_tool_that_waited_for_a_person_is_merged_with_one_that_did_not(thread: Any) -> None:
    edit = rewrite(todo(1, "a"), todo(2, "b"), {"content": "new"})
    tick = rewrite(todo(1, "a", "completed"), todo(2, "b"))
    tick.__name__ = "tick"
    both = calls(("tick", {"call_id": "77"}, "77"), ("edit", {"call_id": "78"}, "78"))
    agent = thread(write("a", "b"), both, ".", tools=[edit, tick], interrupt_on={"edit": True}, change=QUIET)
    agent.run("go")
    agent.run(Command(resume="yes"))
    found = [(item["content"], item["status"]) for item in agent.todos]
    assert found == [("a", "completed"), ("b", "pending"), ("new", "pending")]


@pytest.mark.parametrize("door", WHOLE)
def test_c62_no_door_loses_a_tools_list_to_another_tool(door: str) -> None:
    first = rewrite(todo(1, "sweep", "completed"), todo(2, "water"), {"content": "new"})
    second = rewrite(todo(1, "sweep", "in_progress"), todo(2, "water", "completed"))
    first.__name__, second.__name__ = "first", "second"
    both = AIMessage("", tool_calls=[call_of("first", "77"), call_of("second", "78")])
    agent, model, _ = make(door, both, "Fine.", tools=[first, second])
    run(agent, "Tidy up.")
    run(agent, "Go on.")
    statuses = [(item["content"], item["status"]) for item in agent.get_state(CONFIG).values["todos"]]
    assert statuses == [("sweep", "completed"), ("water", "completed"), ("new", "pending")]
    assert "Completed by first and second:" in texts(model.requests[-1])
    assert sound(model)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "status": ({"todos": [{"content": "a", "status": "half"}]}, "Error: todos item 1 (a) has the status"),
    "ids": ({"todos": [todo(1, "a"), todo(1, "b")]}, "Error: todos has the id '1' twice"),
    "no list": ({"todos": {"put": []}}, "Error: todos must be a list of items with content and status"),
    "notes": ({"todo_ledger": {}}, "Error: a tool may not write 'todo_ledger'"),
}


@pytest.mark.parametrize("form", ["alone", "among others", "an object"])
@pytest.mark.parametrize("door", WHOLE)
@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_list_from_a_tool_is_its_error(name: str, door: str, form: str) -> None:
    update, why = REFUSED[name]

    def edit(call_id: str) -> Any:
        """Edit the list."""
        written: Any = {**update, "messages": [ToolMessage("ok", tool_call_id=call_id)]}
        if form == "an object":
            written = make_dataclass("Update", [(key, Any) for key in written])(**written)
        command: Any = Command(update=written)
        return [command] if form == "among others" else command

    agent, model, _ = make(door, calls(("edit", {"call_id": "77"}, "77")), "Fine.", tools=[edit])
    run(agent, "Tidy up.")
    before = agent.get_state(CONFIG).values["todos"]
    run(agent, "Go on.")
    result = model.requests[-1][-1]
    assert (result.text[: len(why)], result.status) == (why, "error")
    assert agent.get_state(CONFIG).values["todos"] == before
    assert sound(model)


@pytest.mark.parametrize("door", WHOLE)
@pytest.mark.parametrize("written", [{"given": []}, {"put": 5}, [{"content": "a", "status": "half"}]])
def test_an_invalid_list_in_update_state_is_refused_by_the_next_run(written: Any, door: str) -> None:
    agent, model, _ = make(door, "Fine.")
    run(agent, "Tidy up.")
    agent.update_state(CONFIG, {"todos": written})
    with pytest.raises(InputError, match=r"^The input is refused: todos "):
        run(agent, "Go on.")
    run(agent, "Go on.")
    assert [item["content"] for item in agent.get_state(CONFIG).values["todos"]] == ["sweep", "water"]
    assert len(model.requests) == 3


def ask_first(call_id: str) -> str:
    """Ask a person."""
    return str(interrupt("May I?"))


@pytest.mark.parametrize("door", WHOLE)
def test_an_invalid_list_in_mid_run_is_refused_until_a_valid_one_is_written(door: str) -> None:
    agent, model, _ = make(door, calls(("ask_first", {"call_id": "7"}, "7")), "Fine.", tools=[ask_first])
    run(agent, "Tidy up.")
    run(agent, "Go on.")
    before = agent.get_state(CONFIG).values["todos"]
    agent.update_state(CONFIG, {"todos": [{"content": "a", "status": "half"}]})
    with pytest.raises(
        InputError, match=r"^The list that was written during this run is refused: todos item"
    ):
        agent.invoke(Command(resume="yes"), CONFIG)
    assert agent.get_state(CONFIG).values["todos"] == before
    agent.update_state(CONFIG, {"todos": before[:1]})
    agent.invoke(None, CONFIG)
    assert [item["content"] for item in agent.get_state(CONFIG).values["todos"]] == ["sweep"]
    assert len(model.requests) == 4
    assert sound(model)


async def test_an_invalid_list_in_a_fork_is_refused_at_once() -> None:
    agent, model, _ = make("wakeloop", "Fine.")
    run(agent, "Tidy up.")
    place, wrong = [*agent.get_state_history(CONFIG)][1], {"todos": [{"content": "a", "status": "half"}]}
    with pytest.raises(InputError, match=r"^The input is refused: todos item 1 \(a\) has the status 'half'"):
        agent.update_state(place.config, wrong)
    with pytest.raises(InputError, match=r"^The input is refused: todos item 1 "):
        await agent.aupdate_state(place.config, wrong)
    with pytest.raises(InputError, match=r"^The input is refused: todos item 1 "):
        agent.bulk_update_state(place.config, supersteps=[[StateUpdate(wrong)]])
    run(agent, "Go on.")
    assert [item["content"] for item in agent.get_state(CONFIG).values["todos"]] == ["sweep", "water"]
    assert len(model.requests) == 3


@pytest.mark.parametrize("door", ["wakeloop", *WHOLE])
def test_a_list_next_to_an_answer_is_the_programs(door: str) -> None:
    """The tool that asked did not write it, and the program did not write what a todo call next to it did."""
    known = send(dialect_of(door), *KNOWN) if dialect_of(door) == "write_todos" else done(1)
    both = AIMessage("", tool_calls=[*known.tool_calls, call_of("ask_first", "77")])
    agent, model, _ = make(door, both, "Fine.", tools=[ask_first])
    run(agent, "Tidy up.")
    run(agent, "Go on.")
    given = [*agent.get_state(CONFIG).values["todos"], {"content": "tell Ada"}]
    agent.invoke(Command(resume="yes", update={"todos": given}), CONFIG)
    said = model.requests[-1][-1].text.split("\n")
    assert (said[0], len(said[2:]), said[-2]) == ("yes", 3, "Added by the program:")
    statuses = [(item["content"], item["status"]) for item in agent.get_state(CONFIG).values["todos"]]
    assert statuses == [*KNOWN, ("tell Ada", "pending")]
    assert sound(model)


@pytest.mark.parametrize("door", DOORS)
def test_a_tools_list_is_shown_once(door: str) -> None:
    def drop(call_id: str) -> Command[Any]:
        """Leave one item."""
        todos = [todo(7, "tell Ada")]
        return Command(update={"todos": todos, "messages": [ToolMessage("ok", tool_call_id=call_id)]})

    agent, model, _ = make(door, calls(("drop", {"call_id": "77"}, "77")), "Fine.", "Fine.", tools=[drop])
    run(agent, "Tidy up.")
    run(agent, "Continue.")
    result = model.requests[-1][-1].text
    assert result.startswith("ok\n\n")
    assert [result.count(words) for words in ("Removed by drop:", "Added by drop:", "tell Ada")] == [1, 1, 1]
    run(agent, "Continue.")
    assert texts(model.requests[-1]).count("tell Ada") == 1
    assert sound(model)


class Shared(TypedDict):
    messages: Annotated[list[Any], add_messages]
    todos: list[Any]


def test_c62_a_parents_node_that_writes_the_list_is_seen_without_notes() -> None:
    """With the default checkpointer an agent forgets its notes, but the history shows the list."""
    model = ScriptedModel([write("a", "b"), "one", "two", "three"])

    def edit(state: Shared) -> dict[str, Any]:
        if state["messages"][-1].text != "one":
            return {}
        return {"todos": [todo(1, "a", "completed"), todo(2, "b"), todo(3, "tell Ada")]}

    graph = StateGraph(Shared)
    graph.add_node("agent", create_todo_agent(model, settings=PRESETS["wakeloop"].model_copy(update=QUIET)))
    graph.add_node("edit", edit)
    graph.add_edge(START, "agent")
    graph.add_edge("agent", "edit")
    graph.add_edge("edit", END)
    parent = graph.compile(checkpointer=InMemorySaver())
    for text in ("go", "on", "on"):
        parent.invoke({"messages": [("user", text)]}, CONFIG)
    assert [texts(request).count("tell Ada") for request in model.requests] == [0, 0, 1, 1]
    assert sound(model)


class TornSaver(InMemorySaver):
    """Fails once before it stores a checkpoint, as a kill would; the writes are stored."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    def put(self, *given: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise OSError("the disk is gone")
        return super().put(*given)


@pytest.mark.parametrize("door", DOORS)
def test_the_models_own_writes_before_a_crash_are_not_attributed_to_somebody_else(door: str) -> None:
    for fails_at in range(3, 12):
        saver = TornSaver(fails_at)
        agent, model, _ = make(door, "Planned.", saver=saver)
        with suppress(OSError):
            agent.invoke({"messages": [("user", "Tidy up.")]}, CONFIG, durability="sync")
        if saver.left > 0:
            break
        agent.invoke(None, CONFIG)
        assert (fails_at, texts(model.requests[-1]).count(SAYS)) == (fails_at, 0)
        session = session_of(agent.get_state(CONFIG))
        assert (fails_at, session["list"], session["items"]) == (fails_at, 1, 2)
    assert (saver.left > 0, fails_at > 6) == (True, True)


@pytest.mark.parametrize("door", DOORS)
def test_a_list_that_was_there_before_is_a_change_again(door: str) -> None:
    """As when a tool empties each new list, or undoes what a person has changed."""
    lists: list[Any] = [[], []]

    def fill(call_id: str) -> Command[Any]:
        """Write the list."""
        update = {"todos": lists.pop(0), "messages": [ToolMessage("ok", tool_call_id=call_id)]}
        return Command(update=update)

    fills = [calls(("fill", {"call_id": key}, key)) for key in "abc"]
    plan = send(dialect_of(door), *PLAN)
    replies = [fills[0], "Empty.", plan, fills[1], "Empty.", plan, "Fine.", fills[2], "Fine."]
    agent, model, _ = make(door, *replies, tools=[fill])
    for _ in range(4):
        run(agent, "Go on.")
    assert texts(model.requests[-1]).count("Removed by fill:") == 2
    todos = agent.get_state(CONFIG).values["todos"]
    update_todos(agent, CONFIG, cancel=[todos[0]["id"]])
    lists.append(todos)
    run(agent, "Go on.")
    assert texts(model.requests[-2]).count("Cancelled by a person:") == 1
    assert texts(model.requests[-1]).count("Reopened by fill:") == 1
    assert sound(model)


@pytest.mark.parametrize("begun", [False, True])
def test_another_vocabulary_shows_the_whole_list_once(begun: bool) -> None:
    saver = InMemorySaver()
    agent, _, _ = make("langchain", saver=saver)
    if begun:  # the run continues in mid-run under the other preset
        agent.invoke({"messages": [("user", "Tidy up.")]}, CONFIG, interrupt_after=["validate_todos"])
    else:
        run(agent, "Tidy up.")
    settings = PRESETS["wakeloop"].model_copy(update=QUIET)
    model = ScriptedModel(["Fine.", "Fine."])
    other = create_todo_agent(model, settings=settings, checkpointer=saver)
    if begun:
        other.invoke(None, CONFIG)
    else:
        run(other, "Continue.")
    run(other, "Continue.")
    shown = "(automatic) [The current todo list:]\n\n  [1] sweep (in progress)\n  [2] water"
    assert [texts(request).count(shown) for request in model.requests] == [1, 1]


def test_a_nudge_with_the_list_mentions_only_what_the_list_does_not_show(thread: Any) -> None:
    agent = thread(write("a", "b", "c"), ".", ".", change={**QUIET, "nag_after": 0})
    agent.run("go")
    update_todos(agent.graph, agent.at(), done=1, add="tell Ada")
    agent.run({})
    said = agent.model.requests[-1][-1].text
    assert said.startswith(f"(automatic) {SAYS} Go by what it says now.\nCompleted by a person:\n  [1] a\n\n")
    assert "\n  [2] b\n  [3] c\n  [4] tell Ada" in said
    assert said.count("tell Ada") == said.count("(automatic)") == 1


def test_old_items_that_are_still_open_are_named_next_to_others_changes(thread: Any) -> None:
    agent = thread(write("a", "b"), ".", ".", change={**QUIET, "on_new_topic": "say"})
    agent.run("go")
    update_todos(agent.graph, agent.at(), done=1, add="tell Ada")
    agent.run("on")
    said = agent.model.requests[-1][-1].text
    assert said.index("[1] a") < said.index("[3] tell Ada") < said.index("Still open from before:\n\n  [2] b")
    assert [said.count(words) for words in ("tell Ada", "[2] b", "(automatic)")] == [1, 1, 1]


def test_a_wake_without_an_answer_is_left_as_it_was_sent(thread: Any) -> None:
    agent = thread(write("a", "b"), ".", "", done(2), ".", change={**QUIET, "max_wake_cycles": 1})
    agent.run("go", limit=10)  # the empty reply to the wake is not stored, and no steps are left to ask again
    assert agent.session["reason"] == "step_limit"
    update_todos(agent.graph, agent.at(), remove=[1])
    agent.run({})
    asked, said = agent.model.requests[3][-2:]
    assert asked == agent.model.requests[2][-1]
    assert said.text == f"(automatic) {SAYS} Go by what it says now.\nRemoved by a person:\n  [1] a"


def test_an_undone_edit_is_not_mentioned(thread: Any) -> None:
    agent = thread(write("a"), ".", ".", change=QUIET)
    agent.run("go")
    update_todos(agent.graph, agent.at(), edit={1: "A"})
    update_todos(agent.graph, agent.at(), edit={1: "a"})
    agent.run("on")
    assert agent.model.requests[-1][-1].text == "on"


EDITS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "reworded": ({"edit": {1: "A"}}, ["Reworded by a person:", "  [1] A (was: a)"]),
    "blocked": ({"block": {1: "no key"}}, ["Blocked by a person:", "  [1] a (blocked: no key)"]),
    "cancelled": ({"cancel": [1]}, ["Cancelled by a person:", "  [1] a"]),
    "reopened": ({"reopen": [2]}, ["Reopened by a person:", "  [2] b"]),
    "started": ({"start": [1]}, ["Started by a person:", "  [1] a (in progress)"]),
}


@pytest.mark.parametrize("name", EDITS)
def test_the_words_for_each_change(name: str, thread: Any) -> None:
    edits, lines = EDITS[name]
    agent = thread(write("a", "b"), done(2), ".", ".", change=QUIET)
    agent.run("go")
    update_todos(agent.graph, agent.at(), **edits)
    agent.run("on")
    assert agent.model.requests[-1][-1].text.split("\n")[1:] == lines


def test_a_moved_item(thread: Any) -> None:
    def swap(call_id: str) -> Command[Any]:
        """Swap two items."""
        todos = [todo(2, "b"), todo(1, "a")]
        return Command(update={"todos": todos, "messages": [ToolMessage("ok", tool_call_id=call_id)]})

    agent = thread(write("a", "b"), calls(("swap", {"call_id": "77"}, "77")), ".", tools=[swap], change=QUIET)
    agent.run("go")
    said = agent.model.requests[-1][-1].text.split("\n")[3:]
    assert said == ["Moved by swap; the order is now: [2], [1]"]


@pytest.mark.parametrize(("call", "expected"), [("done", "completed"), ("cancelled", "cancelled")])
def test_a_tools_ids_as_strings_are_merged_with_the_lists(call: str, expected: str, thread: Any) -> None:
    def tick(call_id: str) -> Command[Any]:
        """Write the list with ids as strings, as some clients do."""
        todos = [todo("1", "A"), todo("2", "b", "completed")]
        return Command(update={"todos": todos, "messages": [ToolMessage("ok", tool_call_id=call_id)]})

    both = calls(change(1, call, "why"), ("tick", {"call_id": "77"}, "77"))
    agent = thread(write("a", "b"), both, "bye", tools=[tick], change=QUIET)
    agent.run("go")
    assert [(item["id"], item["content"], item["status"]) for item in agent.todos] == [
        (1, "a", expected),
        (2, "b", "completed"),
    ]


class Joined(TypedDict):
    messages: Annotated[list[Any], add_messages]
    todos: Annotated[list[Any], join_todos]
    todo_session: Annotated[Any, join_session]


BASE = [todo(1, "a", "completed"), todo(2, "b")]
BRANCHES: dict[str, tuple[str, AIMessage, list[Any]]] = {
    "reopens": ("parley", calls(change(1, "open")), [todo(1, "a"), todo(2, "b")]),
    "clears": ("loki", calls(("todo__clear", {})), []),
    "replaces": ("write_todos", send("write_todos", ("c", "pending")), [todo(3, "c")]),
    "blocks": (
        "parley", calls(change(2, "blocked", "no key")),
        [todo(1, "a", "completed"), todo(2, "b", "blocked", reason="no key")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", BRANCHES)
def test_c63_one_branchs_work_that_the_other_left_alone_is_kept(name: str, first: bool) -> None:
    dialect, reply, expected = BRANCHES[name]
    settings = {**QUIET, "dialect": dialect, "in_progress": "any"}
    busy = create_todo_agent(ScriptedModel([reply, "Done."]), settings=settings)
    idle = create_todo_agent(ScriptedModel(["Nothing to do."]), settings=settings)
    graph = StateGraph(Joined)
    for node, agent in (("a", busy if first else idle), ("b", idle if first else busy)):
        graph.add_node(node, agent)
        graph.add_edge(START, node)
    parent = graph.compile(checkpointer=InMemorySaver())
    parent.invoke({"messages": [("user", "go")], "todos": BASE}, CONFIG)
    snapshot = parent.get_state(CONFIG)
    assert snapshot.values["todos"] == expected
    session, left = session_of(snapshot), sum(item["status"] == "pending" for item in expected)
    assert (session["open"], session["state"]) == (left, "idle" if left else "dormant")

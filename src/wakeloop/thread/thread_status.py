"""A thread's status and its answer."""

from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage, convert_to_messages

from wakeloop.channels.todo_list import check_channels
from wakeloop.dialects import DIALECTS, find_write_names
from wakeloop.errors import ArgumentError, EditError
from wakeloop.loop.gates import DONE
from wakeloop.loop.goal import is_unmet
from wakeloop.loop.ledger import Ledger, read_notes
from wakeloop.loop.silences import find_question
from wakeloop.loop.spending import report_spent
from wakeloop.loop.waits import read_wait_end
from wakeloop.model.reply_kinds import is_filler
from wakeloop.stream import ActivationSpending, Session
from wakeloop.text.characters import shorten, to_one_line
from wakeloop.text.marks import (
    KIND_KEY,
    activation_messages,
    is_model_reply,
    is_user_message,
    opens_activation,
)
from wakeloop.text.secrets import redact_text
from wakeloop.text.thoughts import answer_text
from wakeloop.text.wording import describe_type
from wakeloop.todos.items import ItemCounts, Todo, count_items, count_open

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot


MAX_FAILURE = 500  # characters of an exception's words
INTERRUPT_KEY = "__interrupt__"  # where LangGraph puts the interrupts of a parked run
STOPPED = ("CancelledError", "KeyboardInterrupt", "SystemExit")
"""What a task raises that was stopped from outside: its thread is to be resumed, so it has not failed."""
LAST_NODE = "finalization_guard"
AFTER_AGENT_SUFFIX = ".after_agent"
ITEM_KEYS = tuple(ItemCounts.__annotations__)
NUMBER_KEYS = (*ITEM_KEYS, "wakes", "budget", "list", "spent", "verified")
SESSION_KEYS = frozenset(Session.__annotations__)


@dataclass(frozen=True)
class ThreadView:
    """The values of an agent's thread, and what is known about its run.

    `parked`: it waits at an interrupt, for a human or an approval (`waiting_on`). `mid_run`: it has
    unfinished tasks. `is_agent`: the values are the agent's own, not those of a parent that shares some.
    `failure`: the words of the exception that a task of its newest run raised. `cancelled`: a server says
    that it cancelled the run.
    """

    values: Mapping[str, Any]
    parked: bool = False
    mid_run: bool = False
    is_agent: bool = True
    waiting_on: str = "human"
    failure: str | None = None
    cancelled: bool = False


def read_thread(given: object) -> ThreadView:
    """Read a result, a state, a snapshot, or a thread or its state as the LangGraph SDK returns them.

    In a parent's snapshot, taken with `subgraphs=True`, find the agent whose run is not over. Raises
    `ArgumentError` for anything else.
    """
    if isinstance(given, ThreadView):
        return given
    from langgraph.types import GraphOutput, StateSnapshot  # slow to import, and not needed to read rows

    if isinstance(given, GraphOutput):
        asked: Any = given.interrupts
        return ThreadView(
            _read_values(given.value), parked=bool(asked), waiting_on=find_interrupt_kind(asked)
        )
    if isinstance(given, StateSnapshot):
        return _read_tasks(given.values, given.tasks)
    if not isinstance(given, Mapping):
        raise make_input_error(given)
    if isinstance(given.get("tasks"), list | tuple) and "values" in given:
        return _read_tasks(given["values"], given["tasks"])
    if "values" in given and "status" in given:
        return _read_sdk_thread(given)
    from wakeloop.state import TodoState

    if given and not given.keys() & {*TodoState.__annotations__, INTERRUPT_KEY}:
        raise make_input_error(given)
    asked = given.get(INTERRUPT_KEY)
    return ThreadView(
        _read_values(given),
        parked=bool(asked),
        is_agent=_has_list(given),
        waiting_on=find_interrupt_kind(asked),
    )


def _read_sdk_thread(thread: Mapping[str, Any]) -> ThreadView:
    """Read what the SDK's `threads.get` returns, where interrupts are listed by task."""
    asked, status, error = thread.get("interrupts"), thread["status"], thread.get("error")
    # A server calls a cancelled run interrupted, too; then nothing is asked. Older ones do not list what is.
    cancelled = status == "interrupted" and isinstance(asked, Mapping) and not asked
    if isinstance(asked, Mapping):
        asked = next(iter(asked.values()), None)
    return ThreadView(
        _read_values(thread["values"]),
        parked=status == "interrupted" and not cancelled,
        mid_run=status in ("busy", "error") or cancelled,
        waiting_on=find_interrupt_kind(asked),
        failure=describe_failure(error or "the server says no more") if status == "error" else None,
        cancelled=cancelled,
    )


def _read_tasks(values: Any, tasks: Any) -> ThreadView:
    """Read a thread with tasks. In a parent's, go down to the agent whose run is not over."""
    asked: list[Any] = []
    for task in tasks or ():
        asked += _get_field(task, "interrupts") or ()
    values, parked, on = _read_values(values), bool(asked), find_interrupt_kind(asked)
    failure = find_failure([_get_field(task, "error") for task in tasks or ()])
    if "todo_ledger" not in values:
        states: list[Any] = []
        agents: list[ThreadView] = []
        for task in tasks or ():
            state = _get_field(task, "state")
            if state is not None:
                states.append(state)
                agents += _find_agents(state)
        if agents:
            return next((one for one in agents if one.parked or one.failure), agents[0])
        if states:  # taken with subgraphs=True, which alone shows what runs inside
            return ThreadView(values, parked, bool(tasks), is_agent=False, waiting_on=on, failure=failure)
    return ThreadView(values, parked, bool(tasks), _has_list(values), on, failure)


def _has_list(values: Mapping[str, Any]) -> bool:
    """Tell whether values may be an agent's own; a parent may share nothing but its messages."""
    return not values or not {"todos", "todo_session"}.isdisjoint(values)


def _find_agents(state: Any) -> Iterator[ThreadView]:
    """Yield the agent in a subgraph's state or below it; a config in place of the state has none."""
    from langgraph.types import StateSnapshot

    if isinstance(state, StateSnapshot) or (isinstance(state, Mapping) and "values" in state):
        found = read_thread(state)
        if "todo_ledger" in found.values:
            yield found


def find_interrupt_kind(interrupts: Any) -> str:
    """Return "approval" if the first interrupt asks for one, else "human"."""
    if not isinstance(interrupts, list | tuple) or not interrupts:
        return "human"
    value = _get_field(interrupts[0], "value")
    return "approval" if isinstance(value, Mapping) and value.get("on") == "approval" else "human"


def find_failure(errors: Iterable[Any]) -> str | None:
    """Return the words of the first exception that a task raised, as a checkpoint or a server has it.

    A task that was cancelled because another one raised does not count, nor one that Ctrl-C cancelled.
    """
    for error in errors:
        name = type(error).__name__ if isinstance(error, BaseException) else str(error).partition("(")[0]
        if error and name not in STOPPED:
            return describe_failure(error)
    return None


def describe_failure(error: object) -> str:
    """Return the words of an exception, which may be stored as its repr, or as a server's mapping."""
    if isinstance(error, BaseException):
        words = f"{type(error).__name__}: {error}".removesuffix(": ")
    elif isinstance(error, Mapping):
        words = f"{error.get('error', 'Error')}: {error.get('message', '')}"
    else:
        words = str(error).removesuffix("()")
        name, _, rest = words.partition("(")
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            told = literal_eval(f"({rest[:-1]},)")  # the arguments of an exception with plain ones
            words = f"{name}: {', '.join(map(str, told))}"
    return shorten(redact_text(to_one_line(words)), MAX_FAILURE)


def _get_field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _read_values(values: object) -> Mapping[str, Any]:
    """Return a thread's values, with messages that JSON holds as dicts converted to messages."""
    if not isinstance(values, Mapping):
        return {}
    check_channels(values)
    messages = values.get("messages") or []
    if any(isinstance(message, Mapping) for message in messages):
        return {**values, "messages": convert_to_messages(messages)}
    return values


def read_messages(given: list[Any]) -> list[Any]:
    """Return a list of messages, converted from JSON if need be. Raises `ArgumentError` for other lists."""
    if all(isinstance(one, BaseMessage) for one in given):
        return given
    try:
        return convert_to_messages(given)
    except Exception:  # noqa: BLE001 - LangChain raises several types for what is not a message
        raise make_input_error(given) from None


def make_input_error(given: object) -> ArgumentError:
    """Return the error for a value that cannot be read as a thread."""
    shown = shorten(repr(given)) if isinstance(given, Mapping | list) else describe_type(given)
    return ArgumentError(
        "Expected a result, a state or a snapshot, as agent.invoke(…) or agent.get_state(config) returns it, "
        f"got {shown}."
    )


def session_of(given: object) -> Session:
    """Return a thread's session: its state, the reason for it, and its counters.

    | the thread | `state` | `reason` |
    |---|---|---|
    | waits at an interrupt | `waiting`; `on` is `human` or `approval` | `interrupted` |
    | raised | `failed`; `error` says what | `failed` |
    | was cancelled, and a server says so | `cancelled` | `cancelled` |
    | is running, or broke off | `running`, without counters | None |
    | has not run, with or without items | `idle` or `dormant` | None |
    | has ended | as the run stored it | why it ended |

    The result of a parked run has only the counters that it shows; a parent's values without a list have
    none.
    If the last input was refused, `error` says why, which helps clients of a server that hides exceptions.
    A value of a type that no run writes is left out, as in a damaged or foreign session.

    Args:
        given: A snapshot, a run's result, a state, or a thread or its state from the LangGraph SDK. If a
            parent graph is parked inside the agent: `parent.get_state(config, subgraphs=True)`.

    Raises:
        ArgumentError: `given` is something else.
        DamagedError: The stored values cannot come from a run of the graph.

    Example:
        >>> from wakeloop import session_of
        >>> session = session_of({"todos": [{"id": 1, "content": "Measure", "status": "pending"}]})
        >>> session["state"], session["open"]
        ('idle', 1)
    """
    if isinstance(given, Mapping) and {"state", "reason"} <= given.keys() <= SESSION_KEYS:
        return cast(Session, drop_misfits(given))  # a session itself
    view = read_thread(given)
    session = cast(dict[str, Any], read_session(view))
    refused = read_notes(view.values).get("refused")
    if refused:
        session["error"] = refused
    dropped: tuple[str, ...] = ()
    if session["state"] == "running" or not view.is_agent:
        dropped = NUMBER_KEYS
    elif session["reason"] == "interrupted" and "todo_ledger" not in view.values:
        dropped = NUMBER_KEYS[1:]  # the counters are in the ledger, which a result leaves out
    return cast(Session, {key: session[key] for key in session if key not in dropped})


def read_session(given: "ThreadView | StateSnapshot") -> Session:
    """Return a thread's session, with its counters even while it is running."""
    view = given if isinstance(given, ThreadView) else read_thread(given)
    todos, ledger = view.values.get("todos") or [], read_notes(view.values)
    stored = drop_misfits(view.values.get("todo_session") or {})
    counts = count_items(todos)
    fresh: Session = {
        "state": "idle" if counts["open"] else "dormant",
        "reason": None,
        **counts,  # type: ignore[typeddict-item]
        "wakes": ledger.get("wake_cycles", 0),
        "budget": ledger.get("budget", 0),
        "list": ledger.get("writes", 0),
        "spent": report_spent(ledger),
    }
    session = fit_to_list(cast(Session, {**fresh, **stored, **counts}), stored.get("open"), ledger)
    refused = ledger.get("refused")  # a refused input leaves the session as it was
    if (view.mid_run and not refused) or session["state"] == "running":
        session = {**fresh, **counts, "state": "running"}
        if view.cancelled:
            session |= {"state": "cancelled", "reason": "cancelled"}
        elif view.failure:
            session |= {"state": "failed", "reason": "failed", "error": view.failure}
    if view.parked:
        session.pop("error", None)
        session |= {"state": "waiting", "reason": "interrupted", "on": view.waiting_on}
    return session


def fit_to_list(session: Session, open_before: int | None, notes: Ledger) -> Session:
    """Return a session whose state fits its list, which others may have changed since the run ended.

    A program, a parent graph, or a join with another agent writes the list and leaves the session as it was.
    Open items, or an unmet goal, make a thread idle. `open_before` counts the items that were open at the
    end of the run: a verdict on the goal holds with as many (rule 24).
    """
    if open_before in (None, session["open"]) or session["state"] not in ("idle", "dormant"):
        return session
    if open_before and session["reason"] in DONE and session["open"] < open_before:
        return session
    session["state"] = "idle" if session["open"] or is_unmet(notes) else "dormant"
    if session["open"] and session["reason"] in DONE:
        session["reason"] = None
    return session


def drop_misfits(session: Mapping[str, Any]) -> dict[str, Any]:
    """Return a session without the values that no run writes: a damaged or foreign one can still be shown."""
    return {key: value for key, value in session.items() if _fits(key, value)}


def _fits(key: str, value: Any) -> bool:
    """Tell whether a session may have this value under this key."""
    if key == "until":
        return read_wait_end({key: value}) is not None
    if key == "spent":
        known = isinstance(value, Mapping) and value.keys() >= ActivationSpending.__annotations__.keys()
        return known and all(isinstance(number, int | float | None) for number in value.values())
    if key in NUMBER_KEYS:
        return isinstance(value, int)
    return isinstance(value, str) or key not in SESSION_KEYS or (key == "reason" and value is None)


def has_only_talked(session: Mapping[str, Any], messages: Sequence[AnyMessage]) -> bool:
    """Tell whether a run answered without a list, and no tool outside the todo tools succeeded in it."""
    if session.get("reason") != "answered" or session.get("items"):
        return False
    if (session.get("spent") or {}).get("requests") == 0:  # a released hold, for example
        return False
    todo_tools = frozenset().union(*(dialect.tool_names for dialect in DIALECTS.values()))
    for message in activation_messages(messages):
        if isinstance(message, ToolMessage) and message.status != "error" and message.name not in todo_tools:
            return False
    return True


def find_last_node(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> tuple[str, Any] | None:
    """Return the name of the node after which a run ends, and the object with its rules; None without one.

    In an agent with the middleware, that is the last of the middleware's hooks.
    """
    for name, spec in graph.builder.nodes.items():
        owner = getattr(getattr(spec.runnable, "func", None), "__self__", spec.runnable)
        if name == LAST_NODE or (name.endswith(AFTER_AGENT_SUFFIX) and hasattr(owner, "dialect")):
            return name, owner
    return None


def find_resting_node(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> str:
    """Return the node after which a run ends. An update attributed to it leaves the thread at rest.

    Raises `EditError` for a graph without one, such as the parent of an agent.
    """
    if (last := find_last_node(graph)) is None:
        raise EditError(
            f"The graph {graph.name!r} is not a todo agent. Pass the agent's own graph, or write a parent's "
            "channel with its update_state."
        )
    return last[0]


def is_unfinished(snapshot: "StateSnapshot") -> bool:
    """Tell whether a thread is in the middle of a run.

    `snapshot.next` is not enough: it leaves out tasks whose results are stored, as after a crash between two
    supersteps.
    """
    return bool(snapshot.tasks)


def answer_of(given: object) -> str:
    """Return the last text with which the model ended a turn in the newest activation, or "".

    Thoughts, structured results and messages that the graph added do not count, nor does a reply that was no
    answer, such as a call written as text. Text next to calls counts only if they closed the list. Where the
    model asked, or answered a new message, and then only said that it is waiting, its question or answer is
    returned.

    Args:
        given: A run's result, a state, a snapshot, a list of messages, or a thread or its state from the SDK.

    Raises:
        ArgumentError: `given` is something else.

    Example:
        >>> from wakeloop import answer_of
        >>> answer_of([("user", "What is 6 times 7?"), ("ai", "42")])
        '42'
    """
    if isinstance(given, list):
        messages: list[AnyMessage] = read_messages(given)
        return find_question(messages) or _find_last_text(messages, ())
    values = read_thread(given).values
    messages, todos = list(values.get("messages") or ()), values.get("todos") or ()
    session: Mapping[str, Any] = values.get("todo_session") or {}
    if session.get("reason") != "waiting":
        return _find_last_text(messages, todos)
    # an event that a waiting thread takes in silence leaves its question unanswered
    return find_question(messages) or _find_last_text(messages, todos) or str(session.get("question", ""))


def _find_last_text(messages: Sequence[AnyMessage], todos: Sequence[Todo]) -> str:
    writes, failed = find_write_names(), set[str | None]()  # of tools; ids of calls
    closing = not count_open(todos)  # whether the next write that is found may have closed the list
    for message in reversed(messages):
        if is_user_message(message) or opens_activation(message):
            return ""
        if isinstance(message, ToolMessage) and message.status == "error":
            failed.add(message.tool_call_id)
        if not (isinstance(message, AIMessage) and is_model_reply(message)):
            continue
        wrote = any(call["name"] in writes and call["id"] not in failed for call in message.tool_calls)
        counts = not message.tool_calls or (closing and wrote)
        closing = closing and not wrote
        if not counts or KIND_KEY in message.response_metadata:
            continue
        text = answer_text(message)
        if text and not is_filler(text, {}):
            return text
    return ""

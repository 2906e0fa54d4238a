"""What a nudge says: replies, subagents, the list."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from wakeloop.dialects.base import Dialect, choose_second_nudge
from wakeloop.loop.before_request import announce
from wakeloop.loop.ledger import Ledger
from wakeloop.loop.list_changes import VERIFIER, drop_changes
from wakeloop.loop.silences import Doubt
from wakeloop.prompts import fill_prompt
from wakeloop.settings import LoopSettings
from wakeloop.text.asked_questions import asks_question
from wakeloop.text.characters import indent_lines, shorten, to_one_line
from wakeloop.text.marks import (
    STAMP_KEY,
    added_length,
    escape_automatic,
    find_list_stamp,
    kind_of,
    make_assistant_message,
    split_result_text,
    text_of,
)
from wakeloop.todos.items import Todo, clip_item, count_open, is_open, open_items

RECENT_MESSAGES = 20  # messages
KEPT_REASON = 200  # characters of what is missing, once the model has read it
DOUBT_PROMPTS: Mapping[Doubt, str] = {"question": "unanswered_question", "topic": "continue_or_stop"}
REASON_PROMPTS = {"reply": "nudge_reply", "subagent": "nudge_subagent", "todos": "nudge"}


def shorten_nudge(
    dialect: Dialect, settings: LoopSettings, messages: Sequence[BaseMessage], todos: Sequence[Todo]
) -> tuple[Dialect, LoopSettings]:
    """Return what a nudge is made with: short, and with few items, if the model has just seen the list."""
    if not dialect.next_items or not count_open(todos):
        return dialect, settings
    is_near = any(_may_show_list(dialect, message) for message in messages[-RECENT_MESSAGES:])
    if not is_near or find_unseen_lines(dialect, messages, todos):  # the history must show every open item
        return dialect, settings
    few = min(dialect.next_items, settings.nudge_items)
    brief = replace(dialect, variant=f"{dialect.variant}/short".strip("/"))
    return brief, settings.model_copy(update={"nudge_items": few})


def find_unseen_lines(
    dialect: Dialect, messages: Sequence[BaseMessage], todos: Sequence[Todo], shown: str = ""
) -> set[str]:
    """Return the lines of open items that a history does not show; the message `shown` shows the list.

    The history is read backwards, since the newest messages usually show every item.
    """
    lines = {(todo["id"], todo["content"]): _plain_line(dialect, todo) for todo in open_items(todos)}
    left, results = set(lines.values()), dict[str, str]()
    for message in reversed(messages):
        if not left:
            break
        text = f"{text_of(message)}\n" if shown and message.id == shown else ""
        if isinstance(message, ToolMessage):
            if _is_todo_result(dialect, message):
                results[message.tool_call_id] = text_of(message)
            else:
                text += _appended_text(message)  # it may say what others changed
        elif isinstance(message, AIMessage):  # a result without its call is not sent, so it shows nothing
            for call in message.tool_calls:
                result = results.pop(call["id"] or "", "")
                for item in _items_of_call(dialect, call, result):
                    left.discard(lines.get(item, ""))
                shown_here = set(dialect.contents_in(call["args"], result))
                left.difference_update(line for (_, content), line in lines.items() if content in shown_here)
                text += f"{result}\n"
        elif _may_show_list(dialect, message):
            text = f"{text_of(message)}\n"
        if text:
            text = escape_automatic(text)
            left.difference_update(text.split("\n"), text.replace(" (in progress)\n", "\n").split("\n"))
    return left


def _appended_text(result: ToolMessage) -> str:
    return f"{split_result_text(result)[1]}\n" if added_length(result) else ""


def _plain_line(dialect: Dialect, todo: Todo) -> str:
    return escape_automatic(dialect.render_item({**clip_item(todo), "status": "pending"}))


def _items_of_call(dialect: Dialect, call: ToolCall, result: str) -> list[tuple[int, str]]:
    """Return the items that a call added, as number and text; its result has only the numbers."""
    numbers = dialect.numbers_in(result)
    found: list[tuple[int, str]] = []
    for values in call["args"].values():
        if isinstance(values, list) and len(values) == len(numbers):
            pairs = zip(numbers, values, strict=True)
            found += [(key, text) for key, text in pairs if isinstance(text, str)]
    return found


def _may_show_list(dialect: Dialect, message: BaseMessage) -> bool:
    """Tell whether a message is the graph's own and may show the list: a user message, or a result."""
    is_shown = STAMP_KEY in message.response_metadata  # it says what others changed
    return is_shown or _is_todo_result(dialect, message) or kind_of(message) in ("wake", "guard", "activate")


def render_given_list(
    dialect: Dialect,
    settings: LoopSettings,
    todos: Sequence[Todo],
    goal: str,
    messages: Sequence[BaseMessage],
) -> str:
    """Return the text that shows a list from outside once; "" if nothing is open.

    A history that came with it may already show a list, which is then not shown again: an agent without a
    thread of its own gets both back with every call.
    """
    results = [message for message in messages if _is_todo_result(dialect, message)]
    is_shown = any(getattr(result, "status", "") == "success" for result in results)
    if is_shown or find_list_stamp(messages) is not None or not count_open(todos):
        return ""
    counts = {"open": count_open(todos), "total": len(todos)}
    listing = dialect.quote_list(todos, goal, settings)
    text = fill_prompt("given_list", dialect.prompt_folder, settings.prompts, list=listing, **counts)
    return announce(text, settings, "given_list")


def _is_todo_result(dialect: Dialect, message: BaseMessage) -> bool:
    return isinstance(message, ToolMessage) and message.name in dialect.tool_names


def close_round(
    messages: Sequence[BaseMessage], dialect: Dialect, settings: LoopSettings
) -> list[BaseMessage]:
    """Return the line of the model that closes a round after which the graph's own user message follows.

    Some providers refuse a user message directly after tool results.
    """
    if not messages or not isinstance(messages[-1], ToolMessage):
        return []
    return [make_assistant_message("repair", fill_prompt("run_interrupted", dialect.name, settings.prompts))]


def build_nudge(
    dialect: Dialect,
    settings: LoopSettings,
    todos: Sequence[Todo],
    goal: str,
    owed: Sequence[Any] = (),
    results: str = "",
    *,
    insists: bool = False,
    doubt: Doubt | None = None,
) -> tuple[str, list[str]]:
    """Return one message for all that asks for a turn, and the reasons: reply, subagent, todos.

    `insists` says that the last such message led to no call. In `doubt` whether to continue at all, the
    message says something else about the list.
    """
    parts: dict[str, str] = {}
    if owed:
        peers = _name_peers(owed, settings.nudge_items)
        parts["reply"] = fill_prompt("nudge_reply", dialect.prompt_folder, settings.prompts, peers=peers)
    if results:
        parts["subagent"] = fill_prompt(
            "nudge_subagent", dialect.prompt_folder, settings.prompts, results=results
        )
    if count_open(todos):
        render = dialect.render_nudge_again if insists else dialect.render_nudge
        parts["todos"] = render(todos, goal, settings)
    if doubt is not None:
        parts["todos"] = fill_prompt(DOUBT_PROMPTS[doubt], dialect.prompt_folder, settings.prompts)
    reasons = list(parts)
    if not reasons:
        return "", reasons
    text = "\n\n".join(parts.values())
    prompt = REASON_PROMPTS[reasons[0]]
    if insists and prompt == "nudge":
        prompt = choose_second_nudge(settings)
    if doubt is not None and reasons[0] == "todos":
        prompt = DOUBT_PROMPTS[doubt]
    return announce(text, settings, prompt), reasons


def render_reopened(dialect: Dialect, settings: LoopSettings, notes: Ledger) -> str:
    """Return what a second look refused, for the message before a request; "" if nothing, or if said."""
    lines = notes.pop("reopened", [])
    if not lines:
        return ""
    drop_changes(notes, VERIFIER)
    text = fill_prompt("second_look", dialect.prompt_folder, settings.prompts, items="\n".join(lines))
    return announce(text, settings, "second_look")


def render_missing(dialect: Dialect, settings: LoopSettings, notes: Ledger, *, insists: bool = False) -> str:
    """Return why the goal is not met, for the message before a request; "" if that is not known.

    Once it is said, the notes keep only its beginning, since they are stored in every row. `insists` says
    that the last such message led to no call.
    """
    if notes.get("goal") != "unmet":
        return ""
    missing = indent_lines(notes["missing"])
    notes["missing"] = shorten(notes["missing"], KEPT_REASON)
    prompt = "nudge_goal_again" if insists and "nudge_goal" not in settings.prompts else "nudge_goal"
    text = fill_prompt(prompt, dialect.prompt_folder, settings.prompts, missing=missing)
    return announce(text, settings, prompt)


def name_old_items(
    dialect: Dialect, settings: LoopSettings, todos: Sequence[Todo], goal: str, then: str = ""
) -> str:
    """Return the words that name the items of an earlier activation; "" without any.

    These are the open ones, and those that are blocked with a question. The prompt `then` follows them.
    """
    left = []
    for todo in todos:
        if is_open(todo) or (todo["status"] == "blocked" and asks_question(todo.get("reason", ""))):
            left.append(todo)
    if not left:
        return ""
    listing = dialect.quote_list(left, goal, settings)
    text = fill_prompt("still_open", dialect.prompt_folder, settings.prompts, list=listing)
    if then:
        text += f"\n\n{fill_prompt(then, dialect.prompt_folder, settings.prompts)}"
    return announce(text, settings, "still_open")


def _name_peers(owed: Sequence[Any], most: int) -> str:
    """Return the senders that wait for a reply, in one line."""
    names = []
    for entry in owed[:most]:
        name = entry.get("sender") or entry.get("id") if isinstance(entry, dict) else entry
        names.append(shorten(to_one_line(str(name))))
    more = f" and {len(owed) - len(names):,} more" if len(owed) > len(names) else ""
    return ", ".join(names) + more

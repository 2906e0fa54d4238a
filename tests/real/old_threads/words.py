"""What earlier releases said in other words, read in today's: figures, and what threads have stored."""

import json
import re
from typing import Any
from unittest.mock import ANY

from wakeloop.prompts import fill

THEN_AND_NOW = (
    (
        r"Your turn ended with (\d+) of (\d+) items still open\.",
        r"Your turn ended, and the list still counts \1 open of \2.",
    ),
    (r"(\d+) of (\d+) items are still to be done\.", r"Still to be done: \1 of \2."),
    (r"(\d+) of (\d+) items are unfinished\.", r"Unfinished: \1 of \2."),
    (
        r"(\d+) rounds without a change to the todo list, and it counts (\d+) open\.",
        r"rounds without a change to the todo list: \1; open: \2.",
    ),
    (
        r"(\d+) rounds without a change to the todo list, and (\d+) tasks are pending\.",
        r"rounds without a change to the todo list: \1; pending: \2.",
    ),
    (
        r"(\d+) rounds without `write_todos`, and (\d+) items are unfinished\.",
        r"rounds without `write_todos`: \1; unfinished: \2.",
    ),
    (r"(\d+) rounds have passed without a call of `todo`\.", r"Rounds without a call of `todo`: \1."),
    (r"The run ends now with (\d+) items not completed\.", r"The run ends now; not completed: \1."),
    (
        r"This run is about to end with (\d+) items not completed\.",
        r"This run is about to end; not completed: \1.",
    ),
    (
        r"The list still has (\d+) unfinished items, and the run ends now\.",
        r"The run ends now; still unfinished in the list: \1.",
    ),
    (
        r"That reads like a final answer, but (\d+) items of the list are unfinished\.",
        r"That reads like a final answer, but the list still counts \1 unfinished.",
    ),
    (r"The run ends now, and (\d+) tasks are pending\.", r"The run ends now; still pending: \1."),
    (
        r"This run is about to end, and (\d+) tasks are pending\.",
        r"This run is about to end; still pending: \1.",
    ),
)

INSTRUCTIONS_THEN = """You keep a todo list with tools. It outlives this conversation's turns, and the person you work \
for reads it.

- Before work that takes more than one step, write the whole plan with `todo_write`, one item a step; each item gets a number.
- Mark an item with `todo_update(id, "in_progress")` when you begin it, one at a time, and with `todo_update(id, "done")` as \
soon as it is finished and you have checked the result.
- What you cannot finish becomes `todo_update(id, "blocked", reason)`; what is no longer wanted becomes `"cancelled"`.
- A reply without a tool call ends your turn. While items are open you are called again with the list, so work on rather than \
announce.
- Answer in plain text when nothing is open. A question that needs no plan needs no list."""  # noqa: E501
OF_ONE_REPLY_AN_ITEM = (  # the preset `wakeloop` alone: agentparley's words are what they were
    (INSTRUCTIONS_THEN, fill("instructions", "parley", {})),
    (
        'calls: `todo_update(id, "done")` when it is finished,',
        'calls: close it with `todo_update(id, "done")` in the reply that begins the one after it, or',
    ),
    ('first: `todo_update(id, "done")` for what is', 'first: `todo_update(ids, "done")` for what is'),
    ('finished, `todo_update(id, "blocked", reason)`', 'finished, `todo_update(ids, "blocked", reason)`'),
)
NUDGE_THEN = re.compile(
    r"Your turn ended, and the list still counts (\d+) open of (\d+)\. Go on with the next one now, "
    r"with tool calls: close it .{1,180}? stops it\.\\n\\n(  \[\d+\] \w+)((?:\\n  \[\d+\] \w+)*)\\n\\n`todo_list` "  # noqa: E501
    r"shows the whole list at any time\."
)
RESULTS_OF_IT = (
    (
        r"(\], \[\"look\", .{1,60}\]\}\], \[\"tool\", \"\[1\] done): a\. 1 of \d+ closed, 1 open\.",
        r"\1, 1 open.",
    ),
    (r"\[1\] done: a\. 1 of \d+ closed, 1 open\.", "[1] done, 1 open. Next: [2] b"),
    (r"\[1\] done: look\. 1 of 2 closed, 1 open\.", "[1] done, 1 open. Next: [2] tell"),
    (r"\[(\d+)\] done: \w+\. \d+ of \d+ closed, 0 open\.", r"[\1] done, 0 open."),
)


def short(nudge: re.Match[str]) -> str:
    """A nudge of then where the model has just seen the list."""
    counted, total, first, rest = nudge.groups()
    more = f"\\n… {rest.count('[')} more: `todo_list`." if rest else ""
    return f"Open: {counted} of {total}. Go on now, with tool calls:\\n\\n{first}{more}"


def in_todays_words(figures: Any, preset: str) -> Any:
    """Return figures of plain JSON with every sentence in the words that a preset has today."""
    text = json.dumps(figures, ensure_ascii=False)
    for then, words in THEN_AND_NOW:
        text = re.sub(then, words, text)
    if preset == "wakeloop":
        for then, words in OF_ONE_REPLY_AN_ITEM:
            text = text.replace(json.dumps(then)[1:-1], json.dumps(words)[1:-1])
        for then, words in RESULTS_OF_IT:
            text = re.sub(then, words, text)
        text = NUDGE_THEN.sub(short, text)
    return in_todays_shape(json.loads(text))


class Bound:
    """All the tools of an agent of these stories: over calls a request that wants no call has them, too."""

    own = "look edit risky ask draft"

    def __eq__(self, other: object) -> bool:
        return other in (f"{self.own} write_todos", f"{self.own} todo_write todo_update todo_list")

    __hash__ = None  # type: ignore[assignment]


BOUND = Bound()
NUMBERS = {"open", "wakes", "budget"}
WHY = {  # an input was refused; by how the thread stood before it
    None: "The setting 'dialect' is fixed when the agent is built; leave it out of todo_settings.",
    "wake_budget": (
        "The input is refused: todos item 1 has no content; every item needs a text that is not blank."
    ),
}


def in_todays_shape(figures: Any) -> Any:
    """Return figures with sessions as they are now: running without numbers, else with the list's."""
    if isinstance(figures, list):
        return [in_todays_shape(part) for part in figures]
    if not isinstance(figures, dict):
        return figures
    if figures.get("tools") == "" and figures["then"][-1][-1].get("kind") in ("guard", "format", "retry"):
        return {**in_todays_shape({**figures, "tools": None}), "tools": BOUND}
    if {"state", "reason", *NUMBERS} <= figures.keys():
        none = not any(figures[key] for key in NUMBERS)
        a_parents = figures["reason"] == "interrupted" and none  # which does not hold the agent
        if figures["state"] == "running" or a_parents:
            return {key: value for key, value in figures.items() if key not in NUMBERS}
        return {"list": ANY, "items": ANY, **figures}
    return {key: in_todays_shape(value) for key, value in figures.items()} | told_since(figures)


def told_since(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what is told today besides: of a refused input, of a thread in full and in the list of them."""
    if figures.get("next") == ["call_model"] and (was := figures["session"])["state"] != "running":
        return {"session": {**in_todays_shape(was), "error": WHY[was["reason"]]}}
    if {"thread", "session", "todos"} <= figures.keys():
        return {"failed_calls": 0, "blocked": 0}
    if {"thread", "changed"} <= figures.keys():
        said = "Nothing more." if figures["thread"] == "ended" else "look around"
        return {"failed_calls": 0, "blocked": 0, "closed": 0, "raise": None, "last": said}
    return {}

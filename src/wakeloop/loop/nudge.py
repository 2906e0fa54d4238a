"""What a nudge says: replies, subagents, the list."""

from collections.abc import Sequence
from typing import Any

from wakeloop.dialects.base import Dialect
from wakeloop.prompts import fill
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import one_line, shorten
from wakeloop.todos.items import Todo, count_open


def nudge(
    dialect: Dialect,
    settings: LoopSettings,
    todos: Sequence[Todo],
    goal: str,
    owed: Sequence[Any] = (),
    results: str = "",
) -> tuple[str, list[str]]:
    """Return one text for all that asks for a turn, and the reasons, in the order reply, subagent, todos."""
    parts: dict[str, str] = {}
    if owed:
        told = owed[: settings.nudge_items]
        names = (str(o.get("sender") or o.get("id")) if isinstance(o, dict) else str(o) for o in told)
        peers = ", ".join(shorten(one_line(name)) for name in names)
        peers += f" and {len(owed) - len(told):,} more" if len(owed) > len(told) else ""
        parts["reply"] = fill("nudge_reply", dialect.texts, settings.prompts, peers=peers)
    if results:
        parts["subagent"] = fill("nudge_subagent", dialect.texts, settings.prompts, results=results)
    if count_open(todos):
        parts["todos"] = dialect.nudge(todos, goal, settings)
    return "\n\n".join(parts.values()), list(parts)

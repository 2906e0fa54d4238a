"""Refuses inputs that drop a question or answer none."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeloop.errors import InputError
from wakeloop.text.characters import shorten

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot


def is_package_request(value: object) -> bool:
    """Tell whether the value of an interrupt is a question of the package, not of somebody's own tool."""
    if not isinstance(value, Mapping) or value.get("on") not in ("approval", "human"):
        return False
    actions = value.get("action_requests", [value] if value.get("type") == "tool_approval" else None)
    return isinstance(actions, list) and all(isinstance(one, Mapping) and "name" in one for one in actions)


def refuse_dropping(asked: Sequence[tuple[str, Any]]) -> None:
    """Refuse an input while a question of the package waits; `asked` has id and value of each interrupt.

    LangGraph would drop the question, and the results of the calls next to it. Raises `InputError`.
    """
    for key, value in asked:
        if not is_package_request(value):
            continue
        names = [str(one["name"]) for one in value.get("action_requests", [value])]
        answers: list[Any] = ["yes", build_refusal(value)]
        if len(asked) > 1:
            answers = [{key: answer} for answer in answers]
        yes, no = (f"agent.invoke(Command(resume={answer!r}), config)" for answer in answers)
        raise InputError(
            f"This thread waits for an answer about {shorten(', '.join(names))}, and this input would drop "
            f"the question. Answer first. To accept: {yes}. To reject: {no}."
        )


def refuse_lost_answer(snapshot: "StateSnapshot") -> None:
    """Refuse `Command(resume=…)` on a thread at rest: LangGraph would lose it. Raises `InputError`."""
    if snapshot.next:
        return
    thread = snapshot.config["configurable"]["thread_id"]
    if snapshot.created_at is None:
        raise InputError(
            f"There is nothing to answer: the thread {thread!r} is empty. Check its name, or send a message."
        )
    raise InputError(
        f"Command(resume=…) answers an interrupt, and the thread {thread!r} waits at none. Send a message."
    )


def build_refusal(value: Mapping[str, Any]) -> Any:
    """Return the answer that runs nothing of what a question asks about."""
    no, answer = {"type": "reject"}, {"type": "respond", "message": "Not now."}
    if value.get("type") == "tool_approval":
        return no if value["on"] == "approval" else answer
    decisions = []
    for config in value.get("review_configs") or ():
        decisions.append(no if "reject" in config["allowed_decisions"] else answer)
    return {"decisions": decisions}

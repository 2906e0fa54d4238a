"""Events that wake a session, and their validation."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args
from urllib.parse import quote, unquote

from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.errors import ArgumentError
from wakeloop.text.characters import shorten

EventKind = Literal["human", "peer_message", "peer_reply", "subagent_done", "cron", "kick"]
STEERING = "wakeloop_steering"  # what the store's namespaces of steered words begin with
EVENT_KINDS: tuple[str, ...] = get_args(EventKind)


class WakeEvent(TypedDict, total=False):
    """An event that wakes a session; only `kind` is required.

    `kind` is human, peer_message, peer_reply, subagent_done, cron or kick. An event whose `id` was seen
    before is a repeat and is ignored. `sender` is the thread that it comes from. A peer's message with a
    `correlation_id` and a sender wants an answer with the same id, of the kind `wants`: peer_reply, or
    subagent_done for a subagent's task. `chain` names the threads that wait for that answer, oldest first.
    `time` is ISO 8601.

    >>> from wakeloop import WakeEvent
    >>> event: WakeEvent = {"kind": "cron", "text": "Good morning."}
    """

    kind: str
    id: str
    text: str
    sender: str
    correlation_id: str
    time: str
    wants: str
    chain: list[str]


def find_event_fault(event: Mapping[str, Any]) -> str | None:
    """Return what is wrong with an event; None for a valid one.

    >>> from wakeloop.sessions import find_event_fault
    >>> find_event_fault({"kind": "human", "text": "Hello."})
    >>> find_event_fault({"kind": "letter"})
    "kind must be one of human, peer_message, peer_reply, subagent_done, cron, kick, not 'letter'"
    """
    keys = WakeEvent.__annotations__
    if unknown := [key for key in event if key not in keys]:
        return f"unknown key {shorten(repr(unknown[0]))}; the keys are {', '.join(keys)}"
    for key in keys:
        if key != "chain" and not isinstance(event.get(key, ""), str):
            return f"{key} must be a string, not {shorten(repr(event[key]))}"
    chain = event.get("chain", [])
    if not isinstance(chain, list) or not all(isinstance(thread, str) for thread in chain):
        return f"chain must be a list of thread ids, not {shorten(repr(chain))}"
    if (kind := event.get("kind")) not in EVENT_KINDS:
        return f"kind must be one of {', '.join(EVENT_KINDS)}, not {shorten(repr(kind))}"
    if (wants := event.get("wants", "peer_reply")) not in ("peer_reply", "subagent_done"):
        return f"wants must be peer_reply or subagent_done, not {shorten(repr(wants))}"
    return None


def build_owed_reply(event: WakeEvent) -> dict[str, Any] | None:
    """Return the entry of `owed_replies` for a message that wants an answer; None for others."""
    asks = event.get("kind") == "peer_message" and event.get("correlation_id") and event.get("sender")
    if not asks:
        return None
    chain = event.get("chain") or [event["sender"]]
    entry = {"id": event["correlation_id"], "sender": event["sender"], "chain": chain}
    return {**entry, "wants": event["wants"]} if event.get("wants") else entry


def find_owed_replies(state: Any) -> list[Any]:
    """Return the replies that are owed. A subagent's task is not one: its last text is the answer."""
    owed = state.get("owed_replies") or ()
    return [o for o in owed if not isinstance(o, dict) or o.get("wants", "peer_reply") == "peer_reply"]


def name_thread(thread_id: object) -> tuple[str, ...]:
    """Return the namespace in which the store keeps what a person steers in; its labels have no dots."""
    if thread_id is None or isinstance(thread_id, Mapping) or not str(thread_id):
        raise ArgumentError(f"`thread_id` must be the id of the thread to steer, got {thread_id!r}.")
    return STEERING, quote(str(thread_id), safe="").replace(".", "%2E")


def read_thread_name(namespace: Sequence[str]) -> str:
    """Return the thread that a namespace of `name_thread` names.

    >>> read_thread_name(name_thread("a.b/c"))
    'a.b/c'
    """
    return unquote(namespace[1])

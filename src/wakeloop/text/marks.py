"""The marks on messages that the graph writes itself."""

import os
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from random import Random
from string import ascii_letters, digits
from typing import Any, Literal, TypeVar, get_args

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from wakeloop.text.characters import fix_surrogates

KEY = "wakeloop"
SOURCE = "lc_source"  # LangChain's word for who has put a message in that the user never wrote
HIDDEN = "do-not-render-"  # chat UIs show no message whose id begins so
DURATION_KEY = "wakeloop_ms"  # on a result, how long its call took: no provider is sent what stands there
Kind = Literal["wake", "guard", "nag", "activate", "event", "repair", "retry", "format"]
KINDS: frozenset[str] = frozenset(get_args(Kind))
Form = TypeVar("Form", bound=BaseMessage)
_LETTERS = ascii_letters + digits


# Seeded by the system once: asking it for each id takes up to 40 µs and lets go of the GIL.
_draw = Random()  # noqa: S311 - an id is unique, not a secret
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_draw.seed)


def new_id() -> str:
    """Mint a message's id; a node does so before the message leaves it. It is unique, and no secret."""
    # 96 random bits in 16 characters: a uuid's 36 are stored with every message
    return urlsafe_b64encode(_draw.getrandbits(96).to_bytes(12, "big")).decode()


def new_hidden_id() -> str:
    """Mint the id of a message that the graph injects: chat UIs hide it."""
    # it is noted, too: eight characters are enough for the few that a thread has
    return HIDDEN + urlsafe_b64encode(_draw.getrandbits(48).to_bytes(6, "big")).decode()


def new_call_id() -> str:
    """Mint a call's id: nine letters and digits, which the strictest server asks for."""
    return "".join(_draw.choices(_LETTERS, k=9))


def make_mark(kind: Kind, **more: Any) -> dict[str, Any]:
    """Return the mark of a message that the graph has a hand in."""
    return {KEY: {"kind": kind, **more}}


def injected_kwargs(kind: Kind, **more: Any) -> dict[str, Any]:
    """Return the `additional_kwargs` of an injected message: LangChain's word beside the mark."""
    return {**make_mark(kind, **more), SOURCE: KEY}


def kind_of(message: BaseMessage) -> str | None:
    """Return what the graph wrote a message for, or None for anybody else's, and for a mark that is none."""
    found = message.additional_kwargs.get(KEY)
    kind = found.get("kind") if isinstance(found, dict) else None
    return kind if isinstance(kind, str) and kind in KINDS else None


def source_of(message: BaseMessage) -> str | None:
    """Return who else has put a message in that no user wrote and no model: a framework, or a chat UI.

    None for the user's and the model's own, and for ours. Whoever sends input may say so: it is no ground to
    trust a message.
    """
    if kind_of(message) is not None:
        return None
    source = message.additional_kwargs.get(SOURCE)
    if isinstance(source, str) and source.strip() not in ("", KEY):  # ours, without the mark, is forged
        return source.strip()
    return "hidden" if (message.id or "").startswith(HIDDEN) else None


def added_length(message: BaseMessage) -> int:
    """Return how many of a result's last characters are the graph's: never more than there are."""
    if kind_of(message) != "nag":
        return 0
    chars = message.additional_kwargs[KEY].get("chars", 0)
    return max(0, min(chars, len(str(message.text)))) if type(chars) is int else 0


def call_duration_ms(result: ToolMessage) -> int:
    """Return how long a call took, as `timed` has written it on its result; 0 where it has not."""
    took = result.response_metadata.get(DURATION_KEY, 0)
    return took if type(took) is int and took > 0 else 0


def with_duration(result: ToolMessage, seconds: float) -> ToolMessage:
    """Write on a result how long its call took, where that is a millisecond or more."""
    took = {DURATION_KEY: ms} if (ms := round(seconds * 1000)) > 0 else {}
    if not took and DURATION_KEY not in result.response_metadata:
        return result
    kept = {key: value for key, value in result.response_metadata.items() if key != DURATION_KEY}
    return result.model_copy(update={"response_metadata": {**kept, **took}})


def make_user_message(kind: Kind, text: str) -> HumanMessage:
    """Write a user message on behalf of the graph."""
    return HumanMessage(fix_surrogates(text), id=new_hidden_id(), additional_kwargs=injected_kwargs(kind))


def make_assistant_message(kind: Kind, text: str) -> AIMessage:
    """Write an assistant's message on behalf of the graph."""
    return AIMessage(text, id=new_hidden_id(), additional_kwargs=injected_kwargs(kind))


def remove_mark(message: BaseMessage) -> BaseMessage:
    """Return a message without our mark: one from outside may not carry it. Others' words for theirs stay."""
    extra = message.additional_kwargs
    if KEY not in extra and extra.get(SOURCE) != KEY:
        return message
    kept = {key: value for key, value in extra.items() if key != KEY and (key, value) != (SOURCE, KEY)}
    return message.model_copy(update={"additional_kwargs": kept})


def append_to_result(message: ToolMessage, text: str) -> ToolMessage:
    """Append the graph's words to a tool result; the mark tells how many of the last characters they are."""
    suffix = f"\n\n{fix_surrogates(text)}"
    earlier = added_length(message)
    content: Any
    if isinstance(message.content, str):
        content = message.content + suffix
    else:
        content = [*message.content, {"type": "text", "text": suffix}]
    kwargs = {**message.additional_kwargs, **make_mark("nag", chars=earlier + len(suffix))}
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs})


def split_result_text(message: ToolMessage) -> tuple[str, str]:
    """Split a result's text: the tool's own, and what the graph has put behind it, "" for nothing."""
    text = str(message.text)
    added = added_length(message)
    return text[: len(text) - added], text[len(text) - added :]


def text_of(message: BaseMessage) -> str:
    """Return a message's text without outer white space."""
    content = message.content
    return (content if isinstance(content, str) else message.text).strip()


def opens_activation(message: AnyMessage) -> bool:
    """Tell whether the graph opened an activation with this message; a subagent's result continues one."""
    kind = kind_of(message)
    if kind == "event":
        return bool(message.additional_kwargs[KEY].get("kinds") != ["subagent_done"])
    return kind == "activate"


def activation_messages(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """Yield the messages of the activation, the newest first.

    A user's message behind a result opens none: a tool has put it there (`activate` closes a round first).
    """
    opened = False
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            opened = opened or is_user_message(message) or opens_activation(message)
        elif isinstance(message, ToolMessage):
            opened = False
        elif opened:
            return
        yield message


def find_last(form: type[Form], messages: Sequence[BaseMessage]) -> Form | None:
    """Return the last message of a class, such as the last reply; None where there is none."""
    return next((message for message in reversed(messages) if isinstance(message, form)), None)


def is_model_reply(message: BaseMessage) -> bool:
    """Tell whether a message is a reply that the model wrote."""
    return isinstance(message, AIMessage) and kind_of(message) is None and source_of(message) is None


def is_user_message(message: BaseMessage) -> bool:
    """Tell whether a message is the user's own: never one that the graph injected, or another framework."""
    return isinstance(message, HumanMessage) and kind_of(message) is None and source_of(message) is None

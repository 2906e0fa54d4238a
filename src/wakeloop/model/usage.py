"""What a reply tells of its tokens and of its model."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from wakeloop.loop.prices import Usage
from wakeloop.platform.model_profile import MODEL_NAME_FIELDS

CHARACTERS = 4  # to a token, where a server counts none


def model_name_of(model: BaseChatModel) -> str:
    """Return the name by which a client asks for its model, "" where it does not tell."""
    return _first_name(getattr(model, key, None) for key in MODEL_NAME_FIELDS)


def measure_usage(reply: Any, sent: Callable[[], int]) -> Usage:
    """Return what a request used, as its reply says, or as its characters are; a format's has `raw`.

    `sent` counts the characters of the request. A server that counts no token of the input has not counted.
    """
    said = reply.get("raw") if isinstance(reply, Mapping) else reply
    message = said if isinstance(said, AIMessage) else AIMessage("")
    reported = reported_usage(message)
    if reported is not None:
        return reported
    name = _first_name(message.response_metadata.get(key) for key in MODEL_NAME_FIELDS)
    return Usage(
        _estimate_tokens(sent()), 0, _estimate_tokens(count_characters(message)), estimated=True, model=name
    )


def reported_usage(reply: AIMessage) -> Usage | None:
    """Return the tokens that a reply reports, in the one form of LangChain's clients; None without."""
    told = reply.usage_metadata
    if not isinstance(told, Mapping) or not (asked := _read_count(told, "input_tokens")):
        return None
    details = told.get("input_token_details")
    cached = _read_count(details, "cache_read") if isinstance(details, Mapping) else 0
    name = _first_name(reply.response_metadata.get(key) for key in MODEL_NAME_FIELDS)
    return Usage(asked, min(cached, asked), _read_count(told, "output_tokens"), model=name)


class UsageRecorder(BaseCallbackHandler):
    """Hears what models report that a hook asks: `hook.invoke(state, heard.within(config))`."""

    run_inline = True

    def __init__(self) -> None:
        self.used: list[Usage] = []

    def attach_to(self, config: RunnableConfig) -> RunnableConfig:
        """Return a config in which it listens."""
        return merge_configs(config, {"callbacks": [self]})

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Keep what a reply reports; what reports nothing is not counted."""
        said = getattr(response.generations[0][0], "message", None) if response.generations else None
        if isinstance(said, AIMessage) and (usage := reported_usage(said)) is not None:
            self.used.append(usage)


def _read_count(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key)
    return value if type(value) is int and 0 < value < 2**53 else 0


def _first_name(found: Iterable[object]) -> str:
    return next((name.removeprefix("models/") for name in found if isinstance(name, str) and name), "")


def count_characters(message: BaseMessage) -> int:
    """Count the characters of a message's text and calls."""
    content = message.content
    text = len(content if isinstance(content, str) else str(message.text))
    calls = message.tool_calls if isinstance(message, AIMessage) else ()
    return text + sum(len(call["name"]) + len(str(call["args"])) for call in calls)


def _estimate_tokens(characters: int) -> int:
    return -(-characters // CHARACTERS)

"""Tokens and model names, as replies report them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

from wakeloop.loop.spending import Usage
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.platform.model_profile import MODEL_NAME_FIELDS

CHARACTERS_PER_TOKEN = 4  # an estimate, for servers that report no usage
CHARACTERS_PER_MEDIUM = 4_000  # a picture counts as about a thousand tokens
_MEDIA = frozenset(
    ("image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document")
)


def model_name_of(model: BaseChatModel) -> str:
    """Return the name of a client's model, or "" if the client does not expose it."""
    return _first_name(getattr(model, field, None) for field in MODEL_NAME_FIELDS)


def measure_usage(reply: Any, count_sent: Callable[[], int]) -> Usage:
    """Return the tokens that a reply reports, or an estimate from the characters of request and reply.

    `reply` may be the mapping of a structured result, with the message under `raw`. `count_sent` counts the
    characters of the request; it is only called for an estimate.
    """
    message = reply.get("raw") if isinstance(reply, Mapping) else reply
    if not isinstance(message, AIMessage):
        message = AIMessage("")
    reported = reported_usage(message)
    if reported is not None:
        return reported
    # this is not the message that is stored, so its count is not kept
    asked, answered = _estimate_tokens(count_sent()), _estimate_tokens(count_characters.compute(message))
    return Usage(asked, 0, answered, estimated=True, model=_reported_name(message))


def reported_usage(reply: AIMessage) -> Usage | None:
    """Return the tokens that a reply reports; None if it reports no input token: then nothing was counted.

    >>> usage: Any = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    >>> reported_usage(AIMessage("x", usage_metadata=usage)).input
    9
    """
    usage = reply.usage_metadata
    if not isinstance(usage, Mapping):
        return None
    asked = _read_count(usage, "input_tokens")
    if not asked:
        return None
    details = usage.get("input_token_details")
    cached = _read_count(details, "cache_read") if isinstance(details, Mapping) else 0
    output = _read_count(usage, "output_tokens")
    return Usage(asked, min(cached, asked), output, model=_reported_name(reply))


def record_usage(config: RunnableConfig, used: list[Usage]) -> RunnableConfig:
    """Return a config under which the usage of models that a hook calls is added to `used`."""
    return merge_configs(config, {"callbacks": [UsageRecorder(used)]})


class UsageRecorder(BaseCallbackHandler):
    """Adds what each reply reports to `used`."""

    run_inline = True

    def __init__(self, used: list[Usage]) -> None:
        self.used = used

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Record what a reply reports. A reply that reports nothing is not counted."""
        message = getattr(response.generations[0][0], "message", None) if response.generations else None
        usage = reported_usage(message) if isinstance(message, AIMessage) else None
        if usage is not None:
            self.used.append(usage)


@computed_per_object
def count_characters(message: BaseMessage) -> int:
    """Count the characters of a message's text and calls."""
    content = message.content
    if isinstance(content, str):
        count = len(content)
    else:
        media = sum(isinstance(block, dict) and block.get("type") in _MEDIA for block in content)
        count = len(str(message.text)) + CHARACTERS_PER_MEDIUM * media
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            count += len(call["name"]) + _count_in_arguments(call["args"])
    return count


def _count_in_arguments(args: Any) -> int:
    try:
        return len(str(args))
    except RecursionError:  # such a call is refused before anything else reads its arguments
        return 0


def _read_count(usage: Mapping[str, Any], key: str) -> int:
    value = usage.get(key)
    return value if type(value) is int and 0 < value < 2**53 else 0


def _reported_name(reply: AIMessage) -> str:
    return _first_name(map(reply.response_metadata.get, MODEL_NAME_FIELDS))


def _first_name(candidates: Iterable[object]) -> str:
    for name in candidates:
        if isinstance(name, str) and name:
            return name.removeprefix("models/")
    return ""


def _estimate_tokens(characters: int) -> int:
    return -(-characters // CHARACTERS_PER_TOKEN)

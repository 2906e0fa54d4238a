"""How a provider says what a reply was: cut, refused, unfit.

One table of values; `docs/models.md` has them by provider, and a test holds the two together.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from langchain_core.messages import AIMessage

Problem = Literal["cut", "refused", "unfit"]

REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason", "status")
FINISH_REASONS: Mapping[str, Problem] = MappingProxyType(
    {
        # cut off: at the limit of the reply, or of the model's whole context
        "length": "cut",
        "max_tokens": "cut",
        "max_output_tokens": "cut",
        "incomplete": "cut",
        "model_length": "cut",
        "model_context_window_exceeded": "cut",
        "insufficient_system_resource": "cut",
        "token_limit": "cut",
        "time_limit": "cut",
        "error_limit": "cut",
        "pause_turn": "cut",
        "error": "cut",
        # refused by the model, or filtered on the way
        "content_filter": "refused",
        "content_filtered": "refused",
        "guardrail_intervened": "refused",
        "refusal": "refused",
        "safety": "refused",
        "recitation": "refused",
        "blocklist": "refused",
        "prohibited_content": "refused",
        "spii": "refused",
        "image_safety": "refused",
        "error_toxic": "refused",
        "sensitive": "refused",
        # a call that the provider itself could not read
        "malformed_function_call": "unfit",
        "unexpected_tool_call": "unfit",
        "malformed_tool_use": "unfit",
        "malformed_model_output": "unfit",
    }
)

UNREADABLE_CALL_ERRORS: Mapping[str, bool] = MappingProxyType(
    {  # what a server says where it could not read the model's own call, by a status of 500 or in mid-stream
        "failed to parse tool call": False,
        "failed to parse input at pos": False,
        "model produced output that does not match": False,
        "error parsing tool call": False,
        "xml syntax error on line": False,
        "expected element type <function>": False,
        "invalid sequence as part of tooluse": True,  # these by whatever status
        "tool_use_failed": True,
        "failed to call a function": True,
    }
)


def reply_problem(message: AIMessage, *, must_finish: bool = False) -> Problem | None:
    """Read what a provider says of a reply; None for a whole one.

    `must_finish` tells that it was streamed, and that a stream has to say how it ended: langchain-openai
    raises nothing for one that just ends. Other providers and fakes send no reason.
    """
    told = message.response_metadata
    signs = {FINISH_REASONS.get(_normalize_reason(told.get(name))) for name in REASON_KEYS} if told else set()
    if "refused" in signs or _is_filtered(told) or refusal_text(message):
        return "refused"
    if "cut" in signs:
        return "cut"
    if "unfit" in signs:
        return "unfit"
    unfinished = told.get("model_provider") == "openai" and not any(
        told.get(name) for name in ("finish_reason", "status")
    )
    return "cut" if must_finish and unfinished else None


def is_unreadable_call(error: BaseException | None) -> bool:
    """Tell whether a request failed by the reply: the model wrote a call that the server could not read.

    A 4xx in most of these words is about what was sent, and stays an error.
    """
    if not isinstance(error, Exception):
        return False
    sent = getattr(error, "status_code", None) in range(400, 500)
    words = f"{getattr(error, 'code', '')} {error}".lower()
    return any(sign in words and (always or not sent) for sign, always in UNREADABLE_CALL_ERRORS.items())


def _normalize_reason(value: Any) -> str:
    """Return a sign in small letters: `FinishReason.SAFETY` and `SAFETY` are one."""
    return str(getattr(value, "name", value)).rpartition(".")[2].lower()


def _is_filtered(told: Mapping[str, Any]) -> bool:
    """Tell whether the reason stands deeper: OpenAI's Responses, a prompt that Gemini did not let through."""
    why, prompt = told.get("incomplete_details"), told.get("prompt_feedback")
    if isinstance(why, Mapping) and FINISH_REASONS.get(_normalize_reason(why.get("reason"))) == "refused":
        return True
    return isinstance(prompt, Mapping) and bool(prompt.get("block_reason"))


def refusal_text(message: AIMessage) -> str:
    """Return the words of a refusal, as OpenAI has them beside the text or in a block; "" for none."""
    beside = message.additional_kwargs.get("refusal")
    blocks = message.content if isinstance(message.content, list) else []
    said = [beside, *(b.get("refusal") for b in blocks if isinstance(b, dict) and b.get("type") == "refusal")]
    return "\n\n".join(words.strip() for words in said if isinstance(words, str) and words.strip())

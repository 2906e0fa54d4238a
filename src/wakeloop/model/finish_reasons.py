"""Finish reasons by provider, and what each means.

`docs/models.md` lists them by provider, and a test compares the two.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

from langchain_core.messages import AIMessage

from wakeloop.platform.provider_errors import find_status, read_error_text

Problem = Literal["cut", "refused", "unfit"]
Sign = Literal[Problem, "promised"]

REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason", "finishReason", "status")
FINISH_REASONS: Mapping[str, Sign] = MappingProxyType(
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
        "image_prohibited_content": "refused",
        "image_recitation": "refused",
        "model_armor": "refused",
        "error_toxic": "refused",
        "sensitive": "refused",
        # the provider could not parse a call
        "malformed_function_call": "unfit",
        "unexpected_tool_call": "unfit",
        "malformed_response": "unfit",
        "too_many_tool_calls": "unfit",
        "malformed_tool_use": "unfit",
        "malformed_model_output": "unfit",
        # tool calls follow: where none came, it is a promise
        "tool_calls": "promised",
        "tool_call": "promised",
        "tool_use": "promised",
        "function_call": "promised",
    }
)

UNREADABLE_CALL_ERRORS: Mapping[str, bool] = MappingProxyType(
    {  # errors of servers that could not parse the model's call; True: whatever the status
        "failed to parse tool call": False,
        "failed to parse input at pos": False,
        "model produced output that does not match": False,
        "error parsing tool call": False,
        "xml syntax error on line": False,
        "expected element type <function>": False,
        "invalid sequence as part of tooluse": True,
        "tool_use_failed": True,
        "failed to call a function": True,
    }
)


def reply_problem(message: AIMessage, *, must_finish: bool = False) -> Problem | None:
    """Return what is wrong with a reply according to its provider, or None for a complete one.

    `must_finish` says that the reply was streamed and that streams of this server report how they end:
    langchain-openai raises nothing if one just ends. Other providers and fakes send no reason at all.

    >>> reply_problem(AIMessage("Half a", response_metadata={"finish_reason": "length"}))
    'cut'
    """
    metadata = message.response_metadata
    problems = _read_signs(message)
    if "refused" in problems or refusal_text(message):
        return "refused"
    if "cut" in problems:
        return "cut"
    if "unfit" in problems:
        return "unfit"
    finished = metadata.get("finish_reason") or metadata.get("status")
    unfinished = metadata.get("model_provider") == "openai" and not finished
    return "cut" if must_finish and unfinished else None


def promises_call(message: AIMessage) -> bool:
    """Tell whether a reply without calls was to have one, according to its provider.

    >>> promises_call(AIMessage("I look.", response_metadata={"finish_reason": "tool_calls"}))
    True
    """
    return not _read_signs(message).isdisjoint(("promised", "unfit"))


def is_unreadable_call(error: BaseException | None) -> bool:
    """Tell whether a request failed because the server could not parse a call that the model wrote.

    With a 4xx status, most of these messages mean a bad request, so they do not count here.
    """
    if not isinstance(error, Exception):
        return False
    is_client_error = find_status(error) in range(400, 500)
    text = f"{getattr(error, 'code', '')} {read_error_text(error)}".lower()
    for sign, whatever_status in UNREADABLE_CALL_ERRORS.items():
        if sign in text and (whatever_status or not is_client_error):
            return True
    return False


def _read_signs(message: AIMessage) -> set[Sign | None]:
    """Return what the finish reasons of a reply say, also in the nested fields of Responses and Gemini."""
    metadata = message.response_metadata
    reasons = [metadata.get(name) for name in REASON_KEYS]
    details, feedback = metadata.get("incomplete_details"), metadata.get("prompt_feedback")
    if isinstance(details, Mapping):
        reasons.append(details.get("reason"))
    signs = {FINISH_REASONS.get(_normalize_reason(reason)) for reason in reasons if reason is not None}
    if isinstance(feedback, Mapping) and feedback.get("block_reason"):  # of the prompt
        signs.add("refused")
    return signs


def _normalize_reason(value: Any) -> str:
    """Return a reason in lower case: `FinishReason.SAFETY` and `SAFETY` are the same, as are `-` and `_`.

    Some servers send it with more than one piece of a stream, and langchain-core joins them: `lengthlength`.
    """
    reason = str(getattr(value, "name", value)).rpartition(".")[2].lower().replace("-", "_")
    period = (reason + reason).find(reason, 1)
    return reason[:period] if period > 0 else reason


def refusal_text(message: AIMessage) -> str:
    """Return the text of a refusal, which OpenAI sends as a field or as a block; "" without one."""
    parts = [message.additional_kwargs]
    for block in message.content if isinstance(message.content, list) else ():
        if isinstance(block, dict) and block.get("type") == "refusal":
            parts.append(block)
    found: list[str] = []
    for part in parts:
        text = part.get("refusal")
        if isinstance(text, str) and text.strip():
            found.append(text.strip())
    return "\n\n".join(found)

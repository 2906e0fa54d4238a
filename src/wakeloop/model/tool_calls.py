"""A message and its calls: legal names, wherever they stand.

Servers check a history when it comes back: names, ids, and that the blocks of a reply hold the calls that
are answered. A call may stand in `tool_calls`, in a block of the content (Anthropic's, Bedrock's, those of
OpenAI's Responses, LangChain's own) and, from older servers, under `additional_kwargs`. This is the one place
that writes them: `holding` makes all of them agree.
"""

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2s
from string import ascii_letters, digits
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

LONGEST_ID = 40  # characters that OpenAI's chat completions take; what is minted has nine, as Mistral's ask
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_UNNAMED = re.compile(r"[^a-zA-Z0-9_-]")
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")  # what may stand in a message's own name
_UNSPOKEN = re.compile(r"[\s<|\\/>]")
_LETTERS = ascii_letters + digits
_OLD = frozenset(("tool_calls", "function_call"))  # where older servers put a call


class _Keys(NamedTuple):
    id: str
    args: str


_BLOCKS = {
    "tool_use": _Keys("id", "input"),  # Anthropic, Bedrock
    "function_call": _Keys("call_id", "arguments"),  # OpenAI's Responses
    "custom_tool_call": _Keys("call_id", "input"),
    "tool_call": _Keys("id", "args"),  # LangChain's own
    "tool_call_chunk": _Keys("id", "args"),
    "invalid_tool_call": _Keys("id", "args"),
    # what a client has to do itself, and no tool of ours does: never among a message's calls
    **dict.fromkeys(("computer_call", "local_shell_call", "shell_call"), _Keys("call_id", "action")),
    "apply_patch_call": _Keys("call_id", "operation"),
}
_SERVED = ("server_tool_use", "mcp_tool_use", "server_tool_call")  # a provider's own tools
_UNPARSED = frozenset(("tool_call_chunk", "invalid_tool_call"))
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")  # never the last of a message

Pair = tuple[Mapping[str, Any], ToolCall]


def legal_name(name: str | None) -> str:
    """Return a tool's name as every server takes it back: 64 letters, digits, `_` and `-` at most."""
    return (_UNNAMED.sub("_", name) if name else "unknown")[:64]


def is_legal_name(name: object) -> bool:
    """Tell whether every server takes a tool's name back."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def is_legal_speaker(message: BaseMessage) -> bool:
    """Tell whether every server takes the name of who speaks, an assistant's as strictly as a tool's."""
    name = message.name
    return not name or (_NAME if message.type == "ai" else _SPEAKER).fullmatch(name) is not None


def legal_speaker(message: BaseMessage) -> str | None:
    """Return the name of who speaks as every server takes it; None where an assistant's has nothing left."""
    name = message.name or ""
    if message.type != "ai":
        return _UNSPOKEN.sub("_", name)[:64]
    legal = _UNNAMED.sub("_", name)[:64]
    return legal if legal.strip("_-") else None


def derive_id(*told: object) -> str:
    """Derive a call's id, the same one each time: nine letters and digits."""
    number = int.from_bytes(blake2s(repr(told).encode("utf-8", "replace"), digest_size=8).digest())
    made = ""
    for _ in range(9):
        number, place = divmod(number, len(_LETTERS))
        made += _LETTERS[place]
    return made


def set_calls(message: AIMessage, made: Sequence[Pair]) -> dict[str, Any]:
    """Return the fields of a message that is to hold these calls and no others.

    `made` pairs each call as it came with the call as it is kept; a block whose call is not among them goes.
    """
    update: dict[str, Any] = {"tool_calls": [call for _, call in made], "invalid_tool_calls": []}
    if _OLD & message.additional_kwargs.keys():
        kept = {key: value for key, value in message.additional_kwargs.items() if key not in _OLD}
        update["additional_kwargs"] = kept
    if isinstance(message.content, list):
        unfinished = () if made else _unfinished_server_calls(message.content)
        update["content"] = _rewrite_blocks(message.content, made, unfinished)
    return update


def calls_agree(message: AIMessage) -> bool:
    """Tell whether a message holds the same calls everywhere, and none where only older servers had one."""
    extra = message.additional_kwargs
    if extra and ("function_call" in extra or ("tool_calls" in extra and not message.tool_calls)):
        return False
    content = message.content
    if isinstance(content, str):
        return True
    waiting = {call["id"]: call for call in message.tool_calls}
    if not waiting and _unfinished_server_calls(content):
        return False
    for block in content:
        if (keys := _block_keys(block)) is None:
            continue
        key = block.get(keys.id)  # type: ignore[union-attr]
        call = waiting.pop(key, None) if isinstance(key, str | None) else None
        if call is None or call["name"] != block.get("name"):  # type: ignore[union-attr]
            return False
    return True


def _block_keys(block: object) -> _Keys | None:
    return _BLOCKS.get(str(block["type"])) if isinstance(block, dict) and "type" in block else None


def _unfinished_server_calls(content: Sequence[Any]) -> list[Any]:
    """Return the calls of a provider's own tools that came to no end.

    Where a message has calls of ours beside them, the provider goes on with them once those are answered.
    """
    blocks = [block for block in content if isinstance(block, dict)]
    ended = [block.get("tool_use_id") or block.get("tool_call_id") for block in blocks]
    return [block for block in blocks if block.get("type") in _SERVED and block.get("id") not in ended]


def _rewrite_blocks(content: Sequence[Any], made: Sequence[Pair], adrift: Sequence[Any]) -> str | list[Any]:
    waiting = list(made)
    blocks: list[Any] = []
    gone = False
    for block in content:
        if block in adrift:
            gone = True
            continue
        if (keys := _block_keys(block)) is None:
            blocks.append(block)
            continue
        key = block.get(keys.id)
        mine = [pair for pair in waiting if pair[0]["id"] == key]
        mine = [pair for pair in mine if pair[0]["name"] == block.get("name")] or mine
        if not mine:
            gone = True
            continue
        waiting.remove(mine[0])
        if block["type"] in _UNPARSED:
            continue  # every client makes a block of a call that has none
        blocks.append(_rewrite_block(block, keys, mine[0][1]))
    while gone and blocks and isinstance(blocks[-1], dict) and blocks[-1].get("type") in _THOUGHTS:
        blocks.pop()  # what was thought before a call that is gone stands for nothing, and none takes it last
    return blocks or ""


def _rewrite_block(block: dict[str, Any], keys: _Keys, call: ToolCall) -> dict[str, Any]:
    """Return a block that holds this call; what else stands in it is kept."""
    new = {**block, keys.id: call["id"], "name": call["name"]}
    given = new.get(keys.args)
    if block["type"] == "function_call":
        if not isinstance(given, str) or _parse_json(given) != call["args"]:
            new[keys.args] = json.dumps(call["args"], ensure_ascii=False)
    elif block["type"] != "custom_tool_call":  # its input is a text, which the call holds under a name
        new[keys.args] = call["args"]
        new.pop("partial_json", None)
    return new


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def with_legal_speaker(message: BaseMessage) -> BaseMessage:
    """Return a message whose speaker's name every server takes."""
    if is_legal_speaker(message):
        return message
    return message.model_copy(update={"name": legal_speaker(message)})

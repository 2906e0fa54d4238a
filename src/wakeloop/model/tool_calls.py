"""Calls in messages, with names and ids that servers accept.

Servers check a history when it comes back: names, ids, and that the blocks of a reply contain the calls that
have results. A call may be in `tool_calls`, in a block of the content (Anthropic's, Bedrock's, OpenAI's
Responses, LangChain's own) and, from older servers, in `additional_kwargs`. Only `set_calls` writes them, so
that all of these agree.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2s
from string import ascii_letters, digits
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall

LONGEST_ID = 40  # characters that OpenAI's chat completions accept; new ids have nine, as Mistral requires
LONGEST_NAME = 64
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_NOT_IN_SPEAKER = re.compile(r"[\s<|\\/>]")  # in the name on a user's message
_ALPHABET = ascii_letters + digits
_OLD = frozenset(("tool_calls", "function_call"))  # where older servers put a call


class _BlockKeys(NamedTuple):
    """Under which keys a content block has a call's id and arguments."""

    id: str
    args: str


_CLIENT_CALL = _BlockKeys("call_id", "action")
_BLOCKS = {
    "tool_use": _BlockKeys("id", "input"),  # Anthropic, Bedrock
    "function_call": _BlockKeys("call_id", "arguments"),  # OpenAI's Responses
    "custom_tool_call": _BlockKeys("call_id", "input"),
    "tool_call": _BlockKeys("id", "args"),  # LangChain
    "tool_call_chunk": _BlockKeys("id", "args"),
    "invalid_tool_call": _BlockKeys("id", "args"),
    # a client must carry these out itself, which no tool of ours does: they never become calls
    "computer_call": _CLIENT_CALL,
    "local_shell_call": _CLIENT_CALL,
    "shell_call": _CLIENT_CALL,
    "apply_patch_call": _BlockKeys("call_id", "operation"),
}
_SERVER_CALLS = ("server_tool_use", "mcp_tool_use", "server_tool_call")  # of a provider's own tools
_UNPARSED = frozenset(("tool_call_chunk", "invalid_tool_call"))
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")  # never the last block of a message

Pair = tuple[Mapping[str, Any], ToolCall]
"""A call as it came, and as it is kept."""


def legal_name(name: str | None) -> str:
    """Return a tool's name as every server accepts it: at most 64 letters, digits, `_` and `-`.

    >>> legal_name("web.search")
    'web_search'
    """
    return (_NOT_IN_NAME.sub("_", name) if name else "unknown")[:LONGEST_NAME]


def find_repeated_name(name: str, known: Collection[str]) -> str:
    """Return the known name that a call's name repeats, or the name as it is.

    Some servers send the whole name with every piece of a stream, and clients join the pieces.

    >>> find_repeated_name("looklooklook", {"look"}), find_repeated_name("looklook", {"look", "looklook"})
    ('look', 'looklook')
    """
    if not name or name in known:
        return name
    for part in sorted(known, key=len, reverse=True):
        if part and name == part * (len(name) // len(part)):
            return part
    return name


def with_legal_speaker(message: BaseMessage) -> BaseMessage:
    """Return a message with a name that every server accepts; an assistant's is checked like a tool's."""
    pattern = _NOT_IN_NAME if message.type == "ai" else _NOT_IN_SPEAKER
    name = pattern.sub("_", message.name or "")[:LONGEST_NAME]
    if name == message.name:
        return message
    is_lost = message.type == "ai" and not name.strip("_-")
    return message.model_copy(update={"name": None if is_lost else name})


def derive_id(*parts: object) -> str:
    """Return a call's id of nine letters and digits, always the same for the same parts."""
    digest = blake2s(repr(parts).encode("utf-8", "replace"), digest_size=8).digest()
    number = int.from_bytes(digest)
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def set_calls(message: AIMessage, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the fields of a message that make it contain exactly these calls.

    Each pair is a call as it came and as it is kept. Blocks of other calls are removed.
    """
    update: dict[str, Any] = {"tool_calls": [call for _, call in pairs], "invalid_tool_calls": []}
    if _OLD & message.additional_kwargs.keys():
        kept = {key: value for key, value in message.additional_kwargs.items() if key not in _OLD}
        update["additional_kwargs"] = kept
    if isinstance(message.content, list):
        # with calls of ours next to them, the provider continues its own once ours are answered
        unfinished = () if pairs else _unfinished_server_calls(message.content)
        update["content"] = _rewrite_blocks(message.content, pairs, unfinished)
    return update


def with_legacy_call(message: AIMessage) -> AIMessage:
    """Return a reply whose only call is in the `function_call` of older servers, as one of its calls.

    The caller has to know that a call was promised: it may also be a copy of one.
    """
    old = message.additional_kwargs.get("function_call")
    if message.tool_calls or message.invalid_tool_calls or not isinstance(old, Mapping):
        return message
    if not (name := old.get("name")):
        return message
    args = old.get("arguments")
    parsed = parse_json(args) if isinstance(args, str) else args
    if isinstance(parsed, dict):
        made = ToolCall(name=str(name), args=parsed, id=None, type="tool_call")
        return message.model_copy(update={"tool_calls": [made]})
    broken = InvalidToolCall(name=str(name), args=args, id=None, error=None, type="invalid_tool_call")
    return message.model_copy(update={"invalid_tool_calls": [broken]})


def calls_agree(message: AIMessage) -> bool:
    """Tell whether a message has the same calls everywhere, and none only where older servers put them."""
    extra = message.additional_kwargs
    if "function_call" in extra or ("tool_calls" in extra and not message.tool_calls):
        return False
    if isinstance(message.content, str):
        return True
    waiting = {call["id"]: call for call in message.tool_calls}
    if not waiting and _unfinished_server_calls(message.content):
        return False
    for block in message.content:
        keys = _block_keys(block)
        if keys is None:
            continue
        key = block.get(keys.id)  # type: ignore[union-attr]
        call = waiting.pop(key, None) if isinstance(key, str | None) else None
        if call is None or call["name"] != block.get("name"):  # type: ignore[union-attr]
            return False
    return True


def _block_keys(block: object) -> _BlockKeys | None:
    """Return where a block has its call, or None if it is not a call."""
    if not isinstance(block, dict) or "type" not in block:
        return None
    return _BLOCKS.get(str(block["type"]))


def _unfinished_server_calls(content: Sequence[Any]) -> list[Any]:
    """Return the calls of a provider's own tools that have no result."""
    blocks = [block for block in content if isinstance(block, dict)]
    finished = [block.get("tool_use_id") or block.get("tool_call_id") for block in blocks]
    return [
        block for block in blocks if block.get("type") in _SERVER_CALLS and block.get("id") not in finished
    ]


def _rewrite_blocks(
    content: Iterable[Any], pairs: Sequence[Pair], unfinished: Sequence[Any]
) -> str | list[Any]:
    """Return a content whose blocks contain the calls of the pairs, in place of those that came."""
    waiting = list(pairs)
    blocks: list[Any] = []
    removed = False
    for block in content:
        keys = _block_keys(block)
        if block in unfinished:
            removed = True
            continue
        if keys is None:
            blocks.append(block)
            continue
        pair = _find_pair(block, keys, waiting)
        if pair is None:
            removed = True
            continue
        waiting.remove(pair)
        if block["type"] not in _UNPARSED:  # clients make a block for a call that has none
            blocks.append(_rewrite_block(block, keys, pair[1]))
    if removed:  # no server accepts a message that ends with the thoughts before a removed call
        while blocks and isinstance(blocks[-1], dict) and blocks[-1].get("type") in _THOUGHTS:
            blocks.pop()
    return blocks or ""


def _find_pair(block: Mapping[str, Any], keys: _BlockKeys, waiting: Iterable[Pair]) -> Pair | None:
    """Return the pair of a block's call: with its id, and with its name too if ids are not unique."""
    found = None
    for pair in waiting:
        if pair[0]["id"] != block.get(keys.id):
            continue
        if pair[0]["name"] == block.get("name"):
            return pair
        found = found or pair
    return found


def _rewrite_block(block: dict[str, Any], keys: _BlockKeys, call: ToolCall) -> dict[str, Any]:
    """Return a block with this call; its other fields stay."""
    new = {**block, keys.id: call["id"], "name": call["name"]}
    args = new.get(keys.args)
    if block["type"] == "function_call":
        if not isinstance(args, str) or parse_json(args) != call["args"]:
            new[keys.args] = json.dumps(call["args"], ensure_ascii=False)
    elif block["type"] != "custom_tool_call":  # its input is a string, which the call has under a name
        new[keys.args] = call["args"]
        new.pop("partial_json", None)
    return new


def parse_json(text: str) -> Any:
    """Return what a JSON string holds, or None if it is not JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None

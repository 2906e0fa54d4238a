"""The four forms of a provider's messages: real clients on fake servers, whole and streamed.

A server plays a script in its own form and refuses what servers refuse: names, ids and blocks that it would
not take back, calls without a result, a history with calls but no tools with it.
"""

import json
import platform
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage

platform.processor()  # openai's client calls this once per process; do it here, outside of any test
if find_spec("distro"):
    import_module("distro").id()

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
LONGEST_ID = 40


@dataclass(frozen=True)
class Said:
    """A reply before it has a form: calls are (name, the arguments as a string, id)."""

    text: str = ""
    calls: tuple[tuple[str, str, str | None], ...] = ()
    sign: str = ""  # "", "cut", "refused", "promised"; "none" for a whole reply without any sign
    refusal: str = ""
    body: Any = None  # answered as it is, with status 200


def as_said(step: Any) -> Said:
    """Convert a reply of the test kit for these servers."""
    if isinstance(step, Said):
        return step
    if isinstance(step, str):
        return Said(step)
    assert isinstance(step, AIMessage)
    made = tuple((call["name"], json.dumps(call["args"]), call["id"]) for call in step.tool_calls)
    sign = {"length": "cut", "content_filter": "refused"}.get(
        step.response_metadata.get("finish_reason", ""), ""
    )
    return Said(str(step.text), made, sign)


Item = tuple[str, str, str]  # "call", id, name; "result", id, ""; "text", role, text


class Server:
    """One script in one form; `chat` is the client, `payloads` the requests, `faults` the refusals."""

    def __init__(self, form: "Form", *steps: Any) -> None:
        single = len(steps) == 1 and not isinstance(steps[0], str | AIMessage | Said)
        self.form, self.coming = form, iter(steps[0] if single else steps)
        self.payloads: list[dict[str, Any]] = []
        self.faults: list[str] = []
        self.requests: list[Any] = []
        self.chat = form.client(self)
        self.chat.callbacks = [Recorder(self.requests)]

    def take(self, payload: dict[str, Any]) -> Said | str:
        """Return the reply to a request, or why it is refused."""
        self.payloads.append(json.loads(json.dumps(payload)))
        if fault := next(refusals(self.form.items(payload), tools=bool(self.form.tools(payload))), None):
            self.faults.append(fault)
            return fault
        if (step := next(self.coming, None)) is None:
            self.faults.append("a request too many")
            return "400 a request too many"
        return as_said(step)

    def assert_done(self) -> None:
        assert self.faults == []
        assert list(self.coming) == []

    @property
    def choices(self) -> list[Any]:
        """Return each request's tool choice."""
        return [self.form.choice(payload) for payload in self.payloads]

    @property
    def bound(self) -> list[int]:
        """Return how many tools came with each request."""
        return [len(self.form.tools(payload)) for payload in self.payloads]


class Recorder(BaseCallbackHandler):
    """Records the messages of each request, as they went to the client."""

    def __init__(self, requests: list[Any]) -> None:
        self.requests = requests

    def on_chat_model_start(self, serialized: Any, messages: Any, **_: Any) -> None:
        self.requests.extend(list(asked) for asked in messages)


def refusals(items: Sequence[Item], *, tools: bool) -> Iterator[str]:
    """Return a strict server's objections to a history."""
    waiting: list[str] = []
    seen: set[str] = set()
    for kind, key, name in items:
        if kind == "call":
            yield from find_name_faults(key, name, seen)
            seen.add(key)
            waiting.append(key)
        elif kind == "result":
            if key not in waiting:
                yield f"400 no call {key!r} waits for a result"
            waiting = [other for other in waiting if other != key]
        elif kind == "bad":
            yield f"400 {name}"
        elif waiting and key == "user":
            yield f"400 the calls {waiting} have no results"
    if waiting:
        yield f"400 the calls {waiting} have no results"
    if seen and not tools:
        yield "400 the history has calls, and the request no tools"


def find_name_faults(key: str, name: str, seen: set[str]) -> Iterator[str]:
    if not NAME.fullmatch(name or ""):
        yield f"400 {name!r} does not match the pattern of names"
    if not key or len(key) > LONGEST_ID or key in seen:
        yield f"400 the id {key!r} is missing, too long or not unique"


class Form:
    """One provider's form of requests and replies."""

    name = ""

    def client(self, server: Server) -> Any:
        raise NotImplementedError

    def items(self, payload: dict[str, Any]) -> list[Item]:
        raise NotImplementedError

    def tools(self, payload: dict[str, Any]) -> list[Any]:
        return payload.get("tools") or []

    def choice(self, payload: dict[str, Any]) -> Any:
        return payload.get("tool_choice")


class OverHttp(Form):
    """A form spoken over HTTP: a transport replaces the network."""

    package = "openai"
    asked: ClassVar[dict[str, Any]] = {}  # the request to be answered

    def transport(self, server: Server) -> Any:
        kind = import_module(self.package).DefaultHttpxClient
        http = import_module(kind.__mro__[1].__module__.partition(".")[0])

        def answer(request: Any) -> Any:
            payload = json.loads(request.content)
            said = server.take(payload)
            self.asked = payload
            if not isinstance(said, str) and said.body is not None:
                return http.Response(200, json=said.body)
            if isinstance(said, str):
                return http.Response(400, json={"error": {"message": said, "type": "invalid_request_error"}})
            if not payload.get("stream"):
                return http.Response(200, json=self.whole(said))
            body = "".join(self.event(part) for part in self.parts(said))
            return http.Response(200, text=body, headers={"content-type": "text/event-stream"})

        return http.MockTransport(answer)

    def whole(self, said: Said) -> dict[str, Any]:
        raise NotImplementedError

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def event(self, part: dict[str, Any]) -> str:
        return f"event: {part['type']}\ndata: {json.dumps(part)}\n\n"


def openai_client(form: OverHttp, server: Server, **more: Any) -> Any:
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient

    return ChatOpenAI(
        model="m",
        api_key="none",
        base_url="http://made.up/v1",
        max_retries=0,
        http_client=DefaultHttpxClient(transport=form.transport(server)),
        http_async_client=DefaultAsyncHttpxClient(transport=form.transport(server)),
        **more,
    )


class Chat(OverHttp):
    """OpenAI's chat completions."""

    name = "chat"
    promises = "tool_calls"

    @property
    def ends(self) -> dict[str, str | None]:
        signs: dict[str, str | None] = {
            "": "stop",
            "cut": "length",
            "refused": "content_filter",
            "none": None,
        }
        return signs | {"promised": self.promises}

    def client(self, server: Server) -> Any:
        return openai_client(self, server)

    def message(self, said: Said) -> dict[str, Any]:
        made = [
            {"index": i, "id": key, "type": "function", "function": {"name": name, "arguments": args}}
            for i, (name, args, key) in enumerate(said.calls)
        ]
        told = {"role": "assistant", "content": said.text or None, "refusal": said.refusal or None}
        return {**told, "tool_calls": made} if made else told

    def whole(self, said: Said) -> dict[str, Any]:
        choice = {"index": 0, "finish_reason": self.ends[said.sign], "message": self.message(said)}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        told = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        yield {**told, "choices": [{"index": 0, "finish_reason": None, "delta": self.message(said)}]}
        if said.refusal:  # it comes in pieces
            more = {"refusal": " Ask me another."}
            yield {**told, "choices": [{"index": 0, "finish_reason": None, "delta": more}]}
        yield {**told, "choices": [{"index": 0, "finish_reason": self.ends[said.sign], "delta": {}}]}

    def event(self, part: dict[str, Any]) -> str:
        return f"data: {json.dumps(part)}\n\n"

    def items(self, payload: dict[str, Any]) -> list[Item]:
        found: list[Item] = []
        for message in payload["messages"]:
            if "function_call" in message:
                found.append(("bad", "", "function_call is not supported"))
            if message["role"] == "tool":
                found.append(("result", message["tool_call_id"], ""))
            else:
                found.append(("text", message["role"], str(message.get("content"))))
            made = message.get("tool_calls", ())
            found += [("call", call["id"], call["function"]["name"]) for call in made]
        return found


class OldChat(Chat):
    """Chat completions as older servers write them: a call is one `function_call`."""

    name = "old"
    promises = "function_call"

    def message(self, said: Said) -> dict[str, Any]:
        told = super().message(said)
        if made := told.pop("tool_calls", None):
            told["function_call"] = made[0]["function"]
        return told


class Responses(OverHttp):
    """OpenAI's Responses."""

    name = "responses"

    def client(self, server: Server) -> Any:
        return openai_client(self, server, use_responses_api=True, output_version="responses/v1")

    def output(self, said: Said) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        if said.text:
            told.append({"type": "output_text", "text": said.text, "annotations": []})
        if said.refusal:
            told.append({"type": "refusal", "refusal": said.refusal})
        message = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": told,
        }
        made = [
            {
                "type": "function_call",
                "id": f"fc_{i}",
                "call_id": key or "",
                "name": name,
                "arguments": args,
                "status": "completed",
            }
            for i, (name, args, key) in enumerate(said.calls)
        ]
        return [*([message] if told else []), *made]

    def whole(self, said: Said) -> dict[str, Any]:
        why = {"cut": "max_output_tokens", "refused": "content_filter"}.get(said.sign)
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": "incomplete" if why else "completed",
            "incomplete_details": {"reason": why} if why else None,
            "error": None,
            "text": self.asked.get("text"),
            "output": self.output(said),
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        whole = self.whole(said)
        begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": []}
        yield {"type": "response.created", "sequence_number": 0, "response": begun}
        for place, item in enumerate(whole["output"]):
            at = {"output_index": place, "sequence_number": place + 1}
            if item["type"] == "message":
                yield {**at, "type": "response.output_item.added", "item": {**item, "content": []}}
                for number, part in enumerate(item["content"]):
                    here = {**at, "item_id": item["id"], "content_index": number}
                    empty = {**part, **({"text": ""} if "text" in part else {"refusal": ""})}
                    yield {**here, "type": "response.content_part.added", "part": empty}
                    if part["type"] == "refusal":
                        yield {**here, "type": "response.refusal.done", "refusal": part["refusal"]}
                    else:
                        delta = {"delta": part["text"], "logprobs": []}
                        yield {**here, "type": "response.output_text.delta", **delta}
            else:
                yield {**at, "type": "response.output_item.added", "item": {**item, "arguments": ""}}
                delta = {"item_id": item["id"], "delta": item["arguments"]}
                yield {**at, "type": "response.function_call_arguments.delta", **delta}
            yield {**at, "type": "response.output_item.done", "item": item}
        kind = "response.incomplete" if whole["incomplete_details"] else "response.completed"
        yield {"type": kind, "sequence_number": 99, "response": whole}

    def items(self, payload: dict[str, Any]) -> list[Item]:
        found: list[Item] = []
        for item in payload["input"]:
            if item.get("type") == "function_call":
                found.append(("call", item["call_id"], item["name"]))
                if not isinstance(json.loads(item["arguments"]), dict):
                    found.append(("bad", "", "arguments are not an object"))
            elif item.get("type") == "function_call_output":
                found.append(("result", item["call_id"], ""))
            else:
                found.append(("text", item["role"], str(item.get("content"))))
        return found


class Anthropic(OverHttp):
    """Anthropic's blocks."""

    name = "anthropic"
    package = "anthropic"
    ends: ClassVar = {"": "end_turn", "cut": "max_tokens", "refused": "refusal", "promised": "tool_use"}

    more: ClassVar[dict[str, Any]] = {}

    def client(self, server: Server) -> Any:
        from anthropic import Anthropic as Client
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, DefaultHttpxClient
        from langchain_anthropic import ChatAnthropic

        chat = ChatAnthropic(model="m", api_key="none", max_retries=0, **{"max_tokens": 100, **self.more})
        told: Any = {"api_key": "none", "max_retries": 0}
        transport = self.transport(server)
        chat.__dict__["_client"] = Client(http_client=DefaultHttpxClient(transport=transport), **told)
        awaited = DefaultAsyncHttpxClient(transport=self.transport(server))
        chat.__dict__["_async_client"] = AsyncAnthropic(http_client=awaited, **told)
        return chat

    def blocks(self, said: Said) -> list[dict[str, Any]]:
        told = [{"type": "text", "text": text} for text in (said.text, said.refusal) if text]
        made = [
            {"type": "tool_use", "id": key or "", "name": name, "input": json.loads(args)}
            for name, args, key in said.calls
        ]
        return [*told, *made]

    def whole(self, said: Said) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": self.blocks(said),
            "stop_reason": self.ends[said.sign],
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        begun = {**self.whole(said), "content": [], "stop_reason": None}
        yield {"type": "message_start", "message": begun}
        for index, block in enumerate(self.blocks(said)):
            text = block["type"] == "text"
            empty = {**block, **({"text": ""} if text else {"input": {}})}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            delta = (
                {"type": "text_delta", "text": block["text"]}
                if text
                else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            )
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        end = {"stop_reason": self.ends[said.sign], "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    def items(self, payload: dict[str, Any]) -> list[Item]:
        found: list[Item] = []
        for message in payload["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if not blocks:
                found.append(("bad", "", "messages must have non-empty content"))
            results = [b for b in blocks if b["type"] == "tool_result"]
            found += [("result", b["tool_use_id"], "") for b in results]
            if any(b["type"] == "text" and not b["text"].strip() for b in blocks):
                found.append(("bad", "", "text content blocks must contain non-whitespace text"))
            if message["role"] == "user" and len(results) < len(blocks):
                found.append(("text", "user", ""))
            found += [("call", b["id"], b["name"]) for b in blocks if b["type"] == "tool_use"]
        return found


class Bedrock(Form):
    """Bedrock's Converse: a client object replaces boto's."""

    name = "bedrock"
    ends: ClassVar = {
        "": "end_turn",
        "cut": "max_tokens",
        "refused": "guardrail_intervened",
        "promised": "tool_use",
    }

    def client(self, server: Server) -> Any:
        from langchain_aws import ChatBedrockConverse

        form = self

        class Converse:
            meta: Any = None

            def converse(self, **payload: Any) -> dict[str, Any]:
                said = server.take(payload)
                assert isinstance(said, Said), said
                return form.whole(said)

            def converse_stream(self, **payload: Any) -> dict[str, Any]:
                said = server.take(payload)
                assert isinstance(said, Said), said
                return {"stream": form.parts(said), "ResponseMetadata": {}}

        own: Any = Converse()
        return ChatBedrockConverse(
            model="anthropic.claude-3-5-sonnet-20240620-v1:0",
            client=own,
            bedrock_client=own,
            region_name="us-east-1",
        )

    def whole(self, said: Said) -> dict[str, Any]:
        told: list[Any] = [{"text": text} for text in (said.text, said.refusal) if text]
        made = [
            {"toolUse": {"toolUseId": key or "", "name": name, "input": json.loads(args)}}
            for name, args, key in said.calls
        ]
        return {
            "output": {"message": {"role": "assistant", "content": [*told, *made]}},
            "stopReason": self.ends[said.sign],
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
            "ResponseMetadata": {},
        }

    def parts(self, said: Said) -> Iterator[dict[str, Any]]:
        yield {"messageStart": {"role": "assistant"}}
        texts = [text for text in (said.text, said.refusal) if text]
        for index, text in enumerate(texts):
            yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}
            yield {"contentBlockStop": {"contentBlockIndex": index}}
        for index, (name, args, key) in enumerate(said.calls, start=len(texts)):
            start = {"toolUse": {"toolUseId": key or "", "name": name}}
            yield {"contentBlockStart": {"contentBlockIndex": index, "start": start}}
            yield {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": args}}}}
            yield {"contentBlockStop": {"contentBlockIndex": index}}
        yield {"messageStop": {"stopReason": self.ends[said.sign]}}
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}

    def items(self, payload: dict[str, Any]) -> list[Item]:
        found: list[Item] = []
        for message in payload["messages"]:
            content = message["content"]
            if not content:
                found.append(("bad", "", "messages must have non-empty content"))
            found += [("result", b["toolResult"]["toolUseId"], "") for b in content if "toolResult" in b]
            if message["role"] == "user" and any("text" in block for block in content):
                found.append(("text", "user", ""))
            uses = [b["toolUse"] for b in content if "toolUse" in b]
            found += [("call", use["toolUseId"], use["name"]) for use in uses]
        return found

    def tools(self, payload: dict[str, Any]) -> list[Any]:
        return list(payload.get("toolConfig", {}).get("tools", ()))

    def choice(self, payload: dict[str, Any]) -> Any:
        return payload.get("toolConfig", {}).get("toolChoice")


NEEDS = {"anthropic": "langchain_anthropic", "bedrock": "langchain_aws"}
FORMS = [
    pytest.param(
        form,
        id=form.name,
        marks=pytest.mark.skipif(
            form.name in NEEDS and find_spec(NEEDS[form.name]) is None, reason="its client is not installed"
        ),
    )
    for form in (Chat(), Responses(), Anthropic(), Bedrock())
]


def all_ids(server: Server) -> list[str]:
    """Return the ids of all calls in the last request."""
    return [key for kind, key, _ in server.form.items(server.payloads[-1]) if kind == "call"]


def names_of(server: Server) -> list[str]:
    """Return the names of all calls in the last request."""
    return list(chain(name for kind, _, name in server.form.items(server.payloads[-1]) if kind == "call"))

"""Build a thread's graph, model and tools from its spec."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Event, local
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import StateGraph

from wakeloop.agent import build_todo_graph
from wakeloop.checks.models import check_model_name
from wakeloop.cli.agent_spec import AgentSpec, is_openai
from wakeloop.cli.external_tools import ExternalTools, Group
from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.cli.spec_builder import settings_from_spec
from wakeloop.cli.trusted_files import list_protected_files
from wakeloop.demo.audit import OfflineAuditor, demo_tools
from wakeloop.dialects import get_dialect
from wakeloop.model.chat_models import create_model, create_openai_model
from wakeloop.platform.traces import stream_event
from wakeloop.stream import RetriedEvent
from wakeloop.tools.files import file_tools
from wakeloop.tools.parking import ask_user
from wakeloop.tools.shell import command_goal, command_verifier, shell_tool

TODO_TOOLS = "the todo tools"
SESSION_TOOLS = "the session tools"
BUILTIN_TOOLS = "the built-in tools"
TOOL_CLASH_FIX = (
    'Rename your own, leave built-in ones out of --tools, or set "disabled": true for a server in its file.'
)
RETRY_COUNT_HEADER = "x-stainless-retry-count"  # the OpenAI client counts its own retries in it


def build_agent_graph(
    spec: AgentSpec,
    outside: ExternalTools,
    *,
    ask: bool,
    stop: Event,
    more: Sequence[BaseTool] = (),
    person: bool | None = None,
    asks_user: bool = False,
) -> StateGraph[Any, Any, Any, Any]:
    """Build the uncompiled graph of a spec.

    `outside` runs the MCP servers, `more` are extra tools (of sessions). With `ask`, the user approves every
    shell command and MCP call first. Setting `stop` ends running commands and prevents further requests.
    `person` says that one is at the other end; `asks_user` offers the tool to ask them, unless a tool of the
    user's own has its name.
    """
    settings = settings_from_spec(spec, person=person)
    if not Path(spec.root).is_dir():
        raise CommandError(
            f"The folder {spec.root!r} of this thread no longer exists: choose another with --root."
        )
    model = make_model(spec, stop)
    if settings.max_context is None:
        note_server_window(model, spec)
    names = ", ".join(name for name in spec.tools if ":" not in name) or "of the demo"
    groups = [
        (f"{BUILTIN_TOOLS} {names}", make_builtin_tools(spec, ask=ask, stop=stop)),
        (SESSION_TOOLS, more),
        *outside.tool_groups(spec, ask=ask),
    ]
    if asks_user and spec.function_calling and not spec.demo:
        taken = {tool.name for _, tools in groups for tool in tools}
        groups.append((BUILTIN_TOOLS, [tool for tool in (ask_user,) if tool.name not in taken]))
    tools = merge_tools(groups, get_dialect(settings.dialect).tool_names)
    goal = None
    if spec.done_when:
        goal = command_goal(spec.done_when, spec.root, timeout=spec.done_when_seconds, stop=stop)
    return build_todo_graph(
        model,
        tools,
        spec.system or None,
        settings,
        verify=command_verifier(spec.verify, spec.root, stop=stop) if spec.verify else None,
        done_when=goal,
    )


def merge_tools(groups: Sequence[Group], todo_tools: Collection[str]) -> list[BaseTool]:
    """Join the tools of all groups. Raises `CommandError`, naming both owners, if two share a name."""
    owners = dict.fromkeys(todo_tools, TODO_TOOLS)
    merged = []
    for owner, tools in groups:
        for tool in tools:
            if (other := owners.get(tool.name)) is not None:
                whose = f"both from {owner}" if other == owner else f"one from {other}, one from {owner}"
                raise usage_error(f"Two tools are named {tool.name!r}, {whose}. {TOOL_CLASH_FIX}")
            owners[tool.name] = owner
            merged.append(tool)
    return merged


def make_model(spec: AgentSpec, stop: Event) -> BaseChatModel:
    """Make the model of a spec; an OpenAI-compatible one sends nothing more once `stop` is set.

    A model that is declared to have no function calling refuses tools.
    """
    if not spec.model:
        return OfflineAuditor(Path(spec.root), delay=spec.delay)
    if not spec.base_url:
        has_server = any(level.values.get("base_url") for level in spec.levels)
        check_model_name(spec.model, has_server=has_server)
    if is_openai(spec.model):
        options = {**spec.model_options, **({"base_url": spec.base_url} if spec.base_url else {})}
        name = spec.model.removeprefix("openai:")
        model: BaseChatModel = create_openai_model(name, **options, **stoppable_client(stop))
    elif spec.base_url:
        raise usage_error(
            f"--base-url works only with OpenAI-compatible models, and {spec.model!r} names another "
            f"provider. If the server has a model of that name, write {f'openai:{spec.model}'!r}."
        )
    else:
        model = create_model(spec.model, **spec.model_options)
    if not spec.function_calling:
        model.__dict__["bind_tools"] = _refuse_tools  # the instance's attribute hides the class's method
    return model


def _refuse_tools(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("function_calling is off")


def stoppable_client(stop: Event) -> dict[str, Any]:
    """Return client options that refuse to send once `stop` is set and report each retry as an event.

    The client also reads streams that begin with a byte order mark.
    """
    try:
        from openai import APIConnectionError, DefaultHttpxClient

        from wakeloop.model.byte_order_mark import strip_mark_hook
    except ImportError:
        return {}  # making the model will say what to install

    last = local()  # a request and its retries run in one thread

    def refuse_if_stopped(request: Any) -> None:
        # The client retries by itself, so stopping the run would not stop its requests.
        if stop.is_set():
            raise APIConnectionError(message="The run was stopped.", request=request)

    def report_retry(request: Any) -> None:
        if number := int(request.headers.get(RETRY_COUNT_HEADER, 0)):
            status = getattr(last, "status", None)
            event: RetriedEvent = {"type": "retried", "retry": number, "status": status}
            with suppress(RuntimeError, KeyError):  # outside a run nobody listens
                stream_event(event)
        last.status = None

    def note_status(response: Any) -> None:
        last.status = response.status_code

    hooks: dict[str, list[Any]] = {
        "request": [refuse_if_stopped, report_retry],
        "response": [note_status, strip_mark_hook],
    }
    return {"http_client": DefaultHttpxClient(event_hooks=hooks)}


def make_builtin_tools(spec: AgentSpec, *, ask: bool, stop: Event) -> list[BaseTool]:
    """Make the tools of a spec, confined to its root."""
    root = Path(spec.root)
    if spec.demo:
        return demo_tools(root)
    tools: list[BaseTool] = []
    if "files" in spec.tools:
        tools += file_tools(root, protected=list_protected_files(spec))
    if "shell" in spec.tools:
        tools.append(shell_tool(root, ask=ask, stop=stop))
    return tools


# -- the context window that a model's server names ------------------------------------------------------


VERSION_PATH = re.compile(r"/v\d\w*/?$")
PATIENCE = 1.0  # seconds for all questions together
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
LENGTH_KEYS = (  # of a model in a list: vLLM and SGLang, LM Studio, OpenRouter, Groq, Mistral
    *("max_model_len", "loaded_context_length", "context_length", "context_window"),
    "max_context_length",
)


def note_server_window(model: Any, spec: AgentSpec) -> None:
    """Note in a model's profile how large a window its own server names, if it does within a second."""
    if not spec.base_url:
        return
    key: Any = getattr(model, "openai_api_key", None)
    secret = key.get_secret_value() if hasattr(key, "get_secret_value") else ""
    tokens = ask_server_window(spec.base_url, spec.model.removeprefix("openai:"), secret)
    if tokens is not None:
        model.profile = {**(getattr(model, "profile", None) or {}), "max_input_tokens": tokens}


@cache
def ask_server_window(base_url: str, name: str, key: str) -> int | None:
    """Ask a server for the window of a model, once per process; None if it does not say.

    llama.cpp has it in `/props`, Ollama in `/api/ps` and `/api/show`, LM Studio in `/api/v0/models`, vLLM,
    SGLang and OpenRouter in the list of models. The smallest number counts.
    """
    from httpx import Client

    root = VERSION_PATH.sub("", base_url.rstrip("/"))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    client = Client(timeout=PATIENCE, headers=headers, follow_redirects=True)

    def ask(read: Callable[[Any, str], Iterator[Any]], path: str) -> list[Any]:
        answer = client.get(path).raise_for_status().json()
        found = list(read(answer, name))
        if read is read_ollama:  # only Ollama is sent a request of its own
            shown = client.post(f"{root}/api/show", json={"model": name}).raise_for_status().json()
            found += read_shown(shown)
        return found

    pool = ThreadPoolExecutor(len(QUESTIONS))
    asked = [
        pool.submit(ask, read, path.format(root=root, url=base_url.rstrip("/"))) for read, path in QUESTIONS
    ]
    done, _ = wait(asked, timeout=PATIENCE)
    pool.shutdown(wait=False, cancel_futures=True)
    client.close()  # questions that are still open fail, unheard
    found: list[int] = []
    for one in done:
        if one.exception() is None:
            found += [tokens for tokens in one.result() if type(tokens) is int and tokens > 0]
    return min(found, default=None)


def read_props(answer: Any, _: str) -> Iterator[Any]:
    """Read llama.cpp's properties: the window of a slot."""
    yield answer["default_generation_settings"]["n_ctx"]


def read_models(answer: Any, name: str) -> Iterator[Any]:
    """Read a list of models."""
    for row in answer["data"]:
        if row["id"] == name:
            yield next((row[key] for key in LENGTH_KEYS if row.get(key)), None)


def read_ollama(answer: Any, name: str) -> Iterator[Any]:
    """Read which models Ollama has loaded, and with which window."""
    for row in answer["models"]:
        if row["name"] in (name, f"{name}:latest"):
            yield row.get("context_length")


def read_shown(answer: Any) -> Iterator[Any]:
    """Read what Ollama says about a model: the window it is set to, or could have."""
    if chosen := NUM_CTX.search(str(answer.get("parameters", ""))):
        yield int(chosen[1])
    for key, value in (answer.get("model_info") or {}).items():
        if key.endswith(".context_length"):
            yield value


QUESTIONS: tuple[tuple[Callable[[Any, str], Iterator[Any]], str], ...] = (
    (read_props, "{root}/props"),
    (read_models, "{url}/models"),
    (read_models, "{root}/api/v0/models"),
    (read_ollama, "{root}/api/ps"),
)

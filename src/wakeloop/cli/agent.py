"""Makes the agent of a recipe: model, tools, graph."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, local
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import StateGraph

from wakeloop.agent import build_todo_graph
from wakeloop.cli.agent_spec import AgentSpec, is_openai
from wakeloop.cli.external_tools import ExternalTools, Group
from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.cli.recipe_builder import settings_from_recipe
from wakeloop.demo.job import demo_tools
from wakeloop.demo.offline import OfflineAuditor
from wakeloop.dialects import dialect_named
from wakeloop.guesses.models import check_name
from wakeloop.model.chat_models import create_model, create_openai_model
from wakeloop.platform.traces import stream_event
from wakeloop.stream import RetriedEvent
from wakeloop.tools.command_verifier import command_verifier
from wakeloop.tools.files import file_tools
from wakeloop.tools.shell import shell_tool

TODO_TOOLS = "the todo tools"
TOOL_CLASH_FIXES = {  # by how an owner is called; any other is a module of the user's own
    TODO_TOOLS: "",
    "the tools of sessions": "",
    "the tools ": "leave those out by --tools",
    "the MCP server ": 'leave a server out by "disabled": true in the file of the servers',
}
APPROVAL_CONFIG = {"allowed_decisions": ["approve", "edit", "reject"]}  # on a call of a server's tool
RETRY_COUNT_HEADER = "x-stainless-retry-count"  # a header in which the client counts them


def build_recipe_graph(
    recipe: AgentSpec, outside: ExternalTools, *, ask: bool, stop: Event, more: Sequence[BaseTool] = ()
) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph of a recipe, not compiled; `more` are tools of sessions, `outside` holds servers.

    `ask` puts each shell command and each call of a server to the person first; setting `stop` ends running
    ones, and no request follows it.
    """
    settings = settings_from_recipe(recipe)
    if not Path(recipe.root).is_dir():
        raise CommandError(
            f"The folder {recipe.root!r} of this thread is not there: name another with --root."
        )
    model = make_model(recipe, stop)
    tools = merge_tools(
        [
            (
                "the tools " + (", ".join(name for name in recipe.tools if ":" not in name) or "of the demo"),
                make_builtin_tools(recipe, ask=ask, stop=stop),
            ),
            ("the tools of sessions", more),
            *outside.tool_groups(recipe, ask=ask),
        ],
        dialect_named(settings.dialect).names,
    )
    check = command_verifier(recipe.verify, recipe.root, stop=stop) if recipe.verify else None
    asked = {tool.name: question for tool in tools if (question := getattr(tool, "asked", ""))}
    return build_todo_graph(
        model,
        tools,
        recipe.system or None,
        settings,
        verify=check,
        interrupt_on={name: {**APPROVAL_CONFIG, "description": question} for name, question in asked.items()},
    )


def merge_tools(groups: Sequence[Group], todo_tools: Collection[str]) -> list[BaseTool]:
    """All tools in a list. Raises `CommandError` where two have one name: it names whose they are."""
    owners = dict.fromkeys(todo_tools, TODO_TOOLS)
    for owner, tools in groups:
        for tool in tools:
            if (other := owners.get(tool.name)) is not None:
                whose = f"both of {owner}" if other == owner else f"one of {other} and one of {owner}"
                ways = dict.fromkeys(filter(None, map(suggest_tool_fix, (other, owner))))
                raise usage_error(f"Two tools are called {tool.name!r}, {whose}: {', or '.join(ways)}.")
            owners[tool.name] = owner
    return [tool for _, tools in groups for tool in tools]


def suggest_tool_fix(owner: str) -> str:
    """What may be done about a tool of one's whose name another has."""
    return next(
        (way for begins, way in TOOL_CLASH_FIXES.items() if owner.startswith(begins)),
        "give yours another name",
    )


def make_model(recipe: AgentSpec, stop: Event) -> BaseChatModel:
    """Make the model of a recipe; one that is said to have no function calling refuses tools."""
    model = _create_model(recipe, stop)
    if not recipe.function_calling:
        model.__dict__["bind_tools"] = _refuse_tools  # found before the class's own
    return model


def _refuse_tools(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("function_calling is off")


def _create_model(recipe: AgentSpec, stop: Event) -> BaseChatModel:
    """Make the model of a recipe; one of OpenAI's kind makes no request any more once `stop` is set."""
    if not recipe.model:
        return OfflineAuditor(delay=recipe.delay)
    if not recipe.base_url:
        check_name(recipe.model)
    if is_openai(recipe.model):
        address = {"base_url": recipe.base_url} if recipe.base_url else {}
        return create_openai_model(recipe.model.removeprefix("openai:"), **address, **stoppable_client(stop))
    if recipe.base_url:
        raise usage_error(
            f"--base-url is for models of OpenAI's kind, and {recipe.model!r} is of another provider; "
            f"if the server has it under this name, write {f'openai:{recipe.model}'!r}."
        )
    return create_model(recipe.model)


def stoppable_client(stop: Event) -> dict[str, Any]:
    """Options of a client that refuses to send when `stop` is set: it repeats failed requests by itself.

    Each repetition is an event of the run. It reads a stream that begins with a byte order mark, too.
    """
    try:
        from openai import APIConnectionError, DefaultHttpxClient

        from wakeloop.model.byte_order_mark import strip_mark_hook
    except ImportError:
        return {}  # making the model will say what to install

    answered = local()  # a request and its repetitions are of one thread

    def refuse(request: Any) -> None:
        if stop.is_set():
            raise APIConnectionError(message="The run was stopped.", request=request)

    def tell(request: Any) -> None:
        if number := int(request.headers.get(RETRY_COUNT_HEADER, 0)):
            told: RetriedEvent = {
                "type": "retried",
                "retry": number,
                "status": getattr(answered, "status", None),
            }
            with suppress(RuntimeError, KeyError):  # no run: nobody listens
                stream_event(told)
        answered.status = None

    def note(response: Any) -> None:
        answered.status = response.status_code

    hooks: dict[str, list[Any]] = {"request": [refuse, tell], "response": [note, strip_mark_hook]}
    return {"http_client": DefaultHttpxClient(event_hooks=hooks)}


def make_builtin_tools(recipe: AgentSpec, *, ask: bool, stop: Event) -> list[BaseTool]:
    """Make the tools of a recipe, confined to its root."""
    root = Path(recipe.root)
    if recipe.demo:
        return demo_tools(root)
    files = file_tools(root) if "files" in recipe.tools else []
    shell = [shell_tool(root, ask=ask, stop=stop)] if "shell" in recipe.tools else []
    return [*files, *shell]

"""Checks of the values of an agent's arguments."""

from collections.abc import Mapping
from inspect import isawaitable, signature
from typing import Any, cast, get_origin

from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from wakeloop.errors import ArgumentError, SettingsError, ToolError, VerifyError
from wakeloop.presets import preset
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type


def resolve_settings(given: object, model: object = None) -> LoopSettings:
    """Return the settings for a preset's name, `LoopSettings`, or a mapping of some settings.

    "auto" gives the settings that measured best for the model. A mapping changes the preset that it names
    under `preset`, by default `wakeloop`. Raises `SettingsError`.
    """
    if isinstance(given, LoopSettings):
        return given
    if given is None:
        return preset("wakeloop")
    if given == "auto":
        return LoopSettings.for_model(model)
    if isinstance(given, str):
        return preset(given)
    if isinstance(given, Mapping):
        varied = dict(given)
        return preset(varied.pop("preset", "wakeloop")).model_copy(update=varied)
    raise SettingsError(
        f"`settings` must be a preset's name, LoopSettings(…) or a mapping, got {describe_type(given)}."
    )


def make_system_message(given: object) -> SystemMessage | None:
    """Return the system prompt as a message. Raises `ArgumentError`."""
    if given is None or isinstance(given, SystemMessage):
        return given
    if isinstance(given, str):
        return SystemMessage(given)
    raise ArgumentError(
        f"`system_prompt` must be a string or a SystemMessage, got {describe_type(given)}. "
        "To change it from request to request, use pre_model_hook."
    )


def list_tools(given: Any) -> list[Any]:
    """Return the tools as a list; a single tool is a list of one. Raises `ToolError`."""
    if given is None:
        return []
    if isinstance(given, str):
        raise ToolError(
            f"`tools` must be a list of tools, got the string {shorten(given)!r}. "
            "Pass the system message as system_prompt=…."
        )
    if isawaitable(given):
        if hasattr(given, "close"):
            given.close()  # or Python warns of a coroutine that was never awaited
        raise ToolError("`tools` is a coroutine. Await it first, as in tools=await client.get_tools().")
    if callable(getattr(given, "get_tools", None)):
        raise ToolError(f"`tools` is {describe_type(given)}. Pass the result of its get_tools().")
    if hasattr(given, "tools_by_name"):
        raise ToolError(f"`tools` is {describe_type(given)}. Pass list(node.tools_by_name.values()).")
    if isinstance(given, Mapping) and all(isinstance(t, BaseTool) or callable(t) for t in given.values()):
        return list(given.values())
    if isinstance(given, BaseTool | Mapping | Runnable) or callable(given):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise ToolError(f"`tools` must be a list of tools, got {describe_type(given)}.") from None


def make_tool_from(given: Any) -> BaseTool:
    """Return a tool, or make one from a function. Raises `ToolError`."""
    if isinstance(given, type):
        hint = f"Pass an instance: {given.__name__}(…)."
        if issubclass(given, BaseModel) and not issubclass(given, BaseTool):
            hint = f"If it is the schema of the answer, pass response_format={given.__name__}."
        raise ToolError(f"`tools` contains the class {given.__name__}. {hint}")
    if isinstance(given, Runnable) and not isinstance(given, BaseTool):
        raise ToolError(
            f"`tools` contains {describe_type(given)}. Make a tool of it with as_tool(name=…, description=…)."
        )
    if not isinstance(given, BaseTool) and not callable(given):
        got = shorten(repr(given)) if isinstance(given, str | int | None) else describe_type(given)
        raise ToolError(f"A tool must be a LangChain tool, a function or a provider's dict, got {got}.")
    try:
        tool = cast(BaseTool, given if isinstance(given, BaseTool) else make_tool(given))
        convert_to_openai_tool(tool)  # an argument may have a type without a JSON schema
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises for a callable
        name = getattr(given, "__name__", None) or getattr(given, "name", None) or describe_type(given)
        reason = shorten(" ".join(str(error).partition("\n\n")[0].split()), 200)
        raise ToolError(f"Cannot make a tool of {name}: {reason}") from None
    return tool


def check_response_format(given: Any) -> None:
    """Refuse a `response_format` that is not a schema. Raises `ArgumentError`."""
    if given is None:
        return
    kind = type(given).__name__
    expected = "`response_format` must be a pydantic model, a TypedDict or a JSON schema"
    if kind in ("ToolStrategy", "ProviderStrategy", "AutoStrategy"):
        schema = getattr(getattr(given, "schema", None), "__name__", "the schema")
        raise ArgumentError(f"`response_format` must be the schema itself. Pass {schema}, without {kind}.")
    if isinstance(given, Mapping):
        if not given.keys() & {"title", "name", "function", "json_schema"}:
            raise ArgumentError("The JSON schema in `response_format` has no 'title'. Give it one.")
    elif isinstance(given, BaseModel):
        raise ArgumentError(f"{expected}, got an instance. Pass the class {kind}.")
    elif get_origin(given) is not None or getattr(given, "__module__", "") == "builtins":
        raise ArgumentError(f"{expected}, got {shorten(repr(given))}. Make a model with a field for it.")
    elif not isinstance(given, type):
        raise ArgumentError(f"{expected}, got {describe_type(given)}.")


def check_callable(name: str, given: Any, *takes: str) -> None:
    """Refuse a hook or a verifier that cannot be called with these arguments. Raises `ArgumentError`."""
    if given is None or isinstance(given, Runnable):
        return
    call = f"{name}({', '.join(takes)})"
    if not callable(given):
        raise ArgumentError(f"`{name}` must be a function, as in def {call}, got {describe_type(given)}.")
    try:
        parameters = signature(given)
    except (TypeError, ValueError):  # a builtin has no signature to look at
        return
    injected = {name: None for name in ("config", "run_manager") if name in parameters.parameters}
    try:
        parameters.bind(*takes, **injected)
    except TypeError as error:
        raise ArgumentError(
            f"`{name}` is called as {call}, but the function takes {parameters} ({error})."
        ) from None


def read_verdict(given: object) -> str | None:
    """Return the answer of a verifier: None accepts, a string refuses. Raises `VerifyError`."""
    if given is None or isinstance(given, str):
        return given or None
    raise VerifyError(
        f"`verify` must return None to accept the item or a string that says why not, "
        f"got {shorten(repr(given))}."
    )


def check_name(name: object) -> None:
    """Refuse a name that replies could not carry. Raises `ArgumentError`."""
    if not isinstance(name, str):
        raise ArgumentError(f"`name` must be a string, got {shorten(repr(name))}.")


def check_graph(graph: object) -> None:
    """Refuse anything but a compiled graph. Raises `ArgumentError`."""
    if not isinstance(graph, CompiledStateGraph):
        raise ArgumentError(
            "The first argument must be a compiled graph, such as an agent of create_todo_agent, "
            f"got {type(graph).__name__}."
        )


def check_store(store: object) -> None:
    """Refuse anything but a store. Raises `ArgumentError`."""
    if store is not None and not isinstance(store, BaseStore):
        raise ArgumentError(
            f"`store` must be a LangGraph store such as InMemoryStore(), got {describe_type(store)}."
        )


def check_checkpointer(checkpointer: object) -> None:
    """Refuse anything but a checkpointer, and say how to get one. Raises `ArgumentError`."""
    if checkpointer is None or isinstance(checkpointer, bool | BaseCheckpointSaver):
        return
    if isinstance(checkpointer, type):
        hint = f"Pass an instance: {checkpointer.__name__}(…)."
    elif hasattr(checkpointer, "__enter__") or hasattr(checkpointer, "__aenter__"):
        hint = "Open it first: with SqliteSaver.from_conn_string('threads.db') as saver."
    else:
        hint = "Use InMemorySaver(), or SqliteSaver or PostgresSaver to keep threads."
    raise ArgumentError(f"`checkpointer` must be a checkpointer, got {describe_type(checkpointer)}. {hint}")

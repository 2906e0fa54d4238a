"""Values of an agent's arguments, as they are guessed."""

from collections.abc import Mapping
from inspect import isawaitable, signature
from typing import Any, cast, get_origin

from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from wakeloop.errors import ArgumentError, SettingsError, ToolError, VerifyError
from wakeloop.presets import preset
from wakeloop.settings import LoopSettings
from wakeloop.text.characters import shorten
from wakeloop.text.wording import describe_type


def resolve_settings(given: object, model: object = None) -> LoopSettings:
    """Return the settings that are meant: a preset's name, `LoopSettings`, or a mapping of some of them.

    "auto" is what was measured to suit the model. A mapping varies the preset that it names under `preset`,
    else `wakeloop`. Raises `SettingsError`.
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
        named = given.get("preset", "wakeloop")
        varied = {key: value for key, value in given.items() if key != "preset"}
        return preset(named).model_copy(update=varied)
    raise SettingsError(
        f"settings takes a preset's name, LoopSettings(…) or a mapping, not {describe_type(given)}."
    )


def make_system_message(given: object) -> SystemMessage | None:
    """Return the system prompt as a message. Raises `ArgumentError` for what is none."""
    if given is None or isinstance(given, SystemMessage):
        return given
    if isinstance(given, str):
        return SystemMessage(given)
    raise ArgumentError(
        f"system_prompt takes a text or a SystemMessage, not {describe_type(given)}; it is static for the "
        "life of the agent, and pre_model_hook changes what is sent."
    )


def list_tools(given: Any) -> list[Any]:
    """Return the tools as a list: one alone is one, none is none. Raises `ToolError`."""
    if given is None:
        return []
    if isinstance(given, str):
        raise ToolError(
            f"tools takes a list of tools, and a text stands there: {shorten(given)!r}. The text for the "
            "system message is system_prompt=…."
        )
    if isawaitable(given):
        getattr(given, "close", lambda: None)()
        raise ToolError("tools is a coroutine, such as an MCP client's get_tools(): await it first.")
    if callable(getattr(given, "get_tools", None)):
        raise ToolError(f"tools is {describe_type(given)}: pass what its get_tools() returns.")
    if hasattr(given, "tools_by_name"):
        raise ToolError(f"tools is {describe_type(given)}: pass list(….tools_by_name.values()) of it.")
    if isinstance(given, Mapping) and all(isinstance(t, BaseTool) or callable(t) for t in given.values()):
        return list(given.values())
    if isinstance(given, BaseTool | Mapping | Runnable) or callable(given):
        return [given]
    try:
        return list(given)
    except TypeError:
        raise ToolError(f"tools takes a list of tools, not {describe_type(given)}.") from None


def make_tool_from(given: Any) -> BaseTool:
    """Make a tool of a callable. Raises `ToolError` for what is none, and says what would be one."""
    if isinstance(given, BaseTool):
        return given
    if isinstance(given, type):
        way = f"make one, {given.__name__}(…)"
        if issubclass(given, BaseModel) and not issubclass(given, BaseTool):
            way = f"as the schema of the answer it is response_format={given.__name__}"
        raise ToolError(f"tools holds the class {given.__name__} itself: {way}.")
    if isinstance(given, Runnable):
        raise ToolError(
            f"tools holds {describe_type(given)}: as_tool(name=…, description=…) makes a tool of it."
        )
    if not callable(given):
        told = shorten(repr(given)) if isinstance(given, str | int | None) else describe_type(given)
        raise ToolError(f"Not a tool: {told}. Pass a LangChain tool, a callable or a provider's dict.")
    try:
        return cast(BaseTool, make_tool(given))
    except Exception as error:  # noqa: BLE001 - whatever langchain says of a callable
        name = getattr(given, "__name__", None) or describe_type(given)
        raise ToolError(f"{name} cannot be made a tool: {_one_line(error)}") from None


def check_response_format(given: Any) -> None:
    """Refuse what no client makes a format of, also a strategy around a schema. Raises `ArgumentError`."""
    if given is None:
        return
    kind, due = type(given).__name__, "response_format takes a pydantic model, a TypedDict or a JSON schema"
    if kind in ("ToolStrategy", "ProviderStrategy", "AutoStrategy"):
        told = getattr(getattr(given, "schema", None), "__name__", "the schema")
        raise ArgumentError(f"response_format takes the schema itself: pass {told}, without {kind}.")
    if isinstance(given, Mapping):
        if not given.keys() & {"title", "name", "function", "json_schema"}:
            raise ArgumentError(f"{due}, and the schema has no 'title': give it one.")
    elif isinstance(given, BaseModel):
        raise ArgumentError(f"{due}: pass the class {kind} itself.")
    elif get_origin(given) is not None or getattr(given, "__module__", "") == "builtins":
        raise ArgumentError(f"{due}, not {shorten(repr(given))}: make a model with a field for it.")
    elif not isinstance(given, type):
        raise ArgumentError(f"{due}, not {describe_type(given)}.")


def check_callable(name: str, given: Any, *takes: str) -> None:
    """Refuse a hook or a verifier that cannot be called with what it `takes`. Raises `ArgumentError`."""
    if given is None or isinstance(given, Runnable):
        return
    called = f"{name}({', '.join(takes)})"
    if not callable(given):
        raise ArgumentError(f"{name} takes a function, as in def {called}, not {describe_type(given)}.")
    try:
        there = signature(given)
    except (TypeError, ValueError):  # a builtin tells nothing of it
        return
    try:
        there.bind(*takes, **{more: None for more in ("config", "run_manager") if more in there.parameters})
    except TypeError as error:
        raise ArgumentError(
            f"It is called as {called}, and the function given takes {there} ({error})."
        ) from None


def read_verdict(given: object) -> str | None:
    """Return what a verifier said. Raises `VerifyError` for what is neither None nor a text."""
    if given is None or isinstance(given, str):
        return given or None
    raise VerifyError(
        f"verify returned {shorten(repr(given))}: None accepts the item, a text refuses it and says why."
    )


def check_store(store: object) -> None:
    """Refuse what is no store. Raises `ArgumentError`."""
    if store is not None and not isinstance(store, BaseStore):
        raise ArgumentError(
            f"store takes one of LangGraph's stores, such as InMemoryStore(), not {describe_type(store)}."
        )


def check_checkpointer(checkpointer: object) -> None:
    """Refuse what is no saver, with the way to one. Raises `ArgumentError`."""
    if checkpointer is None or isinstance(checkpointer, bool | BaseCheckpointSaver):
        return
    if isinstance(checkpointer, type):
        way = f"make one, {checkpointer.__name__}(…)"
    elif hasattr(checkpointer, "__enter__") or hasattr(checkpointer, "__aenter__"):
        way = "open it first, as in: with SqliteSaver.from_conn_string('threads.db') as saver"
    else:
        way = "such as InMemorySaver(), or SqliteSaver and PostgresSaver for threads that are kept"
    raise ArgumentError(f"checkpointer takes a saver, not {describe_type(checkpointer)}: {way}.")


def _one_line(error: BaseException) -> str:
    return shorten(" ".join(str(error).split()), 200)

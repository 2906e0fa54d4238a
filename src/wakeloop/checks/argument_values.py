"""Checks of the values of arguments, tools among them."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, cast

from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as make_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from wakeloop.dialects.base import Dialect
from wakeloop.errors import ArgumentError, EditError, SettingsError, ToolError, ToolNameError, VerifyError
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
    if isinstance(given, Mapping) and all(isinstance(t, BaseTool) or callable(t) for t in given.values()):
        return list(given.values())
    if isinstance(given, BaseTool | Mapping | Runnable) or callable(given):
        return [given]
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ToolError(f"`tools` must be a list of tools, got {shorten(repr(given))}.")
    return list(given)


def make_tool_from(given: Any) -> BaseTool:
    """Return a tool, or make one from a function. Raises `ToolError`."""
    is_function = callable(given) and not isinstance(given, type | Runnable)
    if not isinstance(given, BaseTool) and not is_function:
        raise ToolError(
            f"A tool must be a LangChain tool, a function or a provider's dict, got {describe_type(given)}."
        )
    try:
        tool = cast(BaseTool, given if isinstance(given, BaseTool) else make_tool(given))
        convert_to_openai_tool(tool)  # an argument may have a type without a JSON schema
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises for a callable
        name = getattr(given, "__name__", None) or getattr(given, "name", None) or describe_type(given)
        reason = shorten(" ".join(str(error).partition("\n\n")[0].split()), 200)
        raise ToolError(f"Cannot make a tool of {name}: {reason}") from None
    return tool


def split_tools(given: Sequence[Any], dialect: Dialect) -> tuple[dict[str, BaseTool], list[dict[str, Any]]]:
    """Separate the tools that run here from those that the provider runs, and refuse names that clash."""
    runnable: dict[str, BaseTool] = {}
    provided: list[dict[str, Any]] = []
    for one in given:
        if isinstance(one, dict):
            provided.append(one)
            continue
        tool = make_tool_from(one)
        if tool.return_direct:
            raise ToolError(
                f"Tool {tool.name!r} has return_direct=True, which would end a run while todos are open."
            )
        if tool.name in runnable:
            raise ToolNameError(f"Two tools are called {tool.name!r}. Rename one of them.")
        runnable[tool.name] = tool
    for name in (*runnable, *map(get_tool_name, provided)):
        if name in dialect.tool_names:
            raise ToolNameError(
                f"The name {name!r} belongs to a todo tool of the dialect {dialect.name!r}. Rename your tool."
            )
    return runnable, provided


def unapprovable_tools(provided: Sequence[dict[str, Any]], dialect: Dialect) -> dict[str, str]:
    """Return the tools whose calls cannot be approved by a person, with the reasons."""
    at_provider = dict.fromkeys(map(get_tool_name, provided), "the model's provider runs it")
    todo_tools = dict.fromkeys(dialect.tool_names, "the setting approve_plan covers the list")
    return {**at_provider, **todo_tools}


def get_tool_name(tool: BaseTool | Mapping[str, Any]) -> str:
    """Return a tool's name, also of one that the provider runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return str(tool.get("name") or tool.get("function", {}).get("name"))


def has_no_required_arguments(tool: Any) -> bool:
    """Return whether the schema that the model sees allows a call without arguments."""
    schema = convert_to_openai_tool(tool)
    if "function" not in schema:  # a tool of the provider: nothing is known
        return False
    return not schema["function"].get("parameters", {}).get("required")


def check_response_format(given: Any) -> None:
    """Refuse a `response_format` that is not a schema. Raises `ArgumentError`."""
    if isinstance(given, Mapping):
        is_schema = bool(given.keys() & {"title", "name", "function", "json_schema"})
    else:
        is_schema = given is None or (isinstance(given, type) and given.__module__ != "builtins")
    if not is_schema:
        raise ArgumentError(
            "`response_format` must be the schema itself: a pydantic model, a TypedDict or a JSON schema "
            f"with a 'title', got {shorten(repr(given))}."
        )


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
    raise ArgumentError(
        "`checkpointer` must be an open checkpointer, such as InMemorySaver() or the `saver` of "
        f"`with SqliteSaver.from_conn_string(…) as saver:`, got {describe_type(checkpointer)}."
    )


# -- of an edit by hand -----------------------------------------------------------------------------------


def read_texts(given: Any, name: str) -> tuple[str, ...]:
    """Return strings from a string or several, or from todos, of which it takes the contents."""
    return tuple(_read_each(given, name, str, "content", "a string or strings, as in add=['buy milk']"))


def read_ids(given: Any, name: str) -> tuple[int | str, ...]:
    """Return ids from an id or several, or from todos, of which it takes the ids."""
    return tuple(_read_each(given, name, (int, str), "id", f"an id or ids, as in {name}=[1, 2]"))


def read_texts_by_id(given: Any, name: str, what: str) -> dict[int | str, str]:
    """Return a mapping of ids to strings. Raises `EditError` for anything else."""
    if given is None:
        return {}
    if isinstance(given, Mapping) and all(isinstance(text, str) for text in given.values()):
        return dict(given)
    raise _edit_error(name, f"a mapping of ids, as in {name}={{1: 'the {what}'}}", given)


def _read_each(given: Any, name: str, kinds: Any, key: str, expected: str) -> Iterable[Any]:
    if given is None:
        return
    if isinstance(given, str | int | Mapping):
        given = [given]
    elif not isinstance(given, Iterable):
        raise _edit_error(name, expected, given)
    for one in given:
        value = one.get(key) if isinstance(one, Mapping) else one
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise _edit_error(name, expected, one)
        yield value


def check_goal_and_clear(clear: object, goal: object) -> None:
    """Refuse a goal that is not a string, and a `clear` that is not a bool."""
    if not isinstance(clear, bool):
        raise _edit_error("clear", "True or False", clear)
    if not isinstance(goal, str | None):
        raise _edit_error("goal", "a string", goal)


def _edit_error(name: str, expected: str, given: object) -> EditError:
    return EditError(f"Nothing was changed: `{name}` must be {expected}, got {shorten(repr(given))}.")

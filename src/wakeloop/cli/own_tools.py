"""Imports the user's own tools: MODULE:NAME."""

import inspect
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from wakeloop.checks.argument_values import list_tools, make_tool_from
from wakeloop.cli.failures import CommandError, usage_error
from wakeloop.errors import ToolError

Wait = Callable[[Any], Any]  # runs a coroutine and returns what comes of it


def load_own_tools(named: str, folder: str, wait: Wait) -> list[BaseTool]:
    """The tools that `MODULE:NAME` stands for: a list, a tool, or what a callable without arguments returns.

    The module is looked for in the folder first. Asynchronous tools run by `wait`.
    """
    module, _, name = named.partition(":")
    found = import_from_folder(module, folder)
    if not hasattr(found, name):
        near = get_close_matches(name, [one for one in vars(found) if not one.startswith("_")], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise usage_error(f"The module {module!r} for --tools has no {name!r}{hint}")
    given, maker = getattr(found, name), is_factory(getattr(found, name))
    if maker:
        try:
            given = given()
            if inspect.iscoroutine(given):
                given = wait(given)
        except Exception as error:  # noqa: BLE001 - whatever the user's own code raises
            raise explain_failure(f"{named} for --tools", error) from None
    try:
        return [
            make_sync(make_tool_from(one), wait)
            for one in list_tools([given] if isinstance(given, str) else given)
        ]
    except ToolError as error:
        hint = " It was called for its tools; one that is a tool itself needs @tool." if maker else ""
        raise usage_error(f"{named} for --tools is no list of tools: {error}{hint}") from None


def import_from_folder(module: str, folder: str) -> ModuleType:
    """Import a module; while it is, its folder comes first, and afterwards last: its files hide no others."""
    sys.path.insert(0, folder)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise usage_error(
                f"There is no module {module!r} for --tools, in {folder!r} or elsewhere."
            ) from None
        raise explain_failure(f"The module {module!r} for --tools", error) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's own code raises
        raise explain_failure(f"The module {module!r} for --tools", error) from None
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def explain_failure(what: str, error: BaseException) -> CommandError:
    """Say what the user's own code raised, and where."""
    last = next((f for f in reversed(extract_tb(error.__traceback__)) if f.filename != __file__), None)
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or last is None or last.filename.startswith("<"):
        return usage_error(f"{what} cannot be used: {said}.")  # a syntax error tells its place itself
    return usage_error(f"{what} cannot be used: {said} ({Path(last.filename).name}, line {last.lineno}).")


def is_factory(given: Any) -> bool:
    """Whether something is no tool, and can be called without arguments."""
    if isinstance(given, BaseTool | type) or not callable(given):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


def make_sync(tool: BaseTool, wait: Wait) -> BaseTool:
    """A tool that is asynchronous only, for a synchronous graph."""
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return tool
    coroutine = tool.coroutine

    @wraps(coroutine)
    def function(*args: Any, **kwargs: Any) -> Any:
        return wait(coroutine(*args, **kwargs))

    return tool.model_copy(update={"func": function})

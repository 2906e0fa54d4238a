"""The user's own tools, imported as MODULE:NAME."""

import inspect
import sys
from collections.abc import Callable
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
from wakeloop.text.wording import nearest

Wait = Callable[[Any], Any]  # runs a coroutine and returns its result


def load_own_tools(reference: str, folder: str, wait: Wait) -> list[BaseTool]:
    """Import `MODULE:NAME`: a tool, a list of tools, or a function without arguments that returns them.

    The module is searched in `folder` first. Asynchronous tools run through `wait`.
    """
    module, _, name = reference.partition(":")
    found = import_from_folder(module, folder)
    if not hasattr(found, name):
        public = [one for one in vars(found) if not one.startswith("_")]
        near = nearest(name, public)
        hint = f" Did you mean {near!r}?" if near else ""
        raise usage_error(f"The module {module!r} of --tools has no {name!r}.{hint}")
    given = getattr(found, name)
    from_factory = is_factory(given)
    if from_factory:
        try:
            given = given()
            if inspect.iscoroutine(given):
                given = wait(given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - user code may raise anything, as a Rust library does
            raise explain_failure(f"{reference} of --tools", error) from None
    # a string is one wrong tool, not a list of characters
    listed = [given] if isinstance(given, str) else given
    try:
        return [make_sync(make_tool_from(one), wait) for one in list_tools(listed)]
    except ToolError as error:
        hint = (
            " It was called to get the tools. If it is a tool itself, decorate it with @tool."
            if from_factory
            else ""
        )
        raise usage_error(f"{reference} of --tools is not a list of tools: {error}{hint}") from None


def import_from_folder(module: str, folder: str) -> ModuleType:
    """Import a module with its folder first on `sys.path`, and last afterwards, so that it hides no other."""
    sys.path.insert(0, folder)
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise usage_error(
                f"Cannot find the module {module!r} of --tools in {folder!r} or on sys.path."
            ) from None
        raise explain_failure(f"The module {module!r} of --tools", error) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - user code may raise anything, as a Rust library does
        raise explain_failure(f"The module {module!r} of --tools", error) from None
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)


def explain_failure(what: str, error: BaseException) -> CommandError:
    """Return an error that says what the user's own code raised, and where."""
    last = next((f for f in reversed(extract_tb(error.__traceback__)) if f.filename != __file__), None)
    cause = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) or last is None or last.filename.startswith("<"):
        return usage_error(f"{what} cannot be used: {cause}.")  # a syntax error includes its position
    return usage_error(f"{what} cannot be used: {cause} ({Path(last.filename).name}, line {last.lineno}).")


def is_factory(given: Any) -> bool:
    """Whether an object is not a tool and can be called without arguments."""
    if isinstance(given, BaseTool | type) or not callable(given):
        return False
    try:
        inspect.signature(given).bind()
    except (TypeError, ValueError):
        return False
    return True


def make_sync(tool: BaseTool, wait: Wait) -> BaseTool:
    """Give a tool that is only asynchronous a synchronous function."""
    if not isinstance(tool, StructuredTool) or tool.func is not None or tool.coroutine is None:
        return tool
    coroutine = tool.coroutine

    @wraps(coroutine)
    def function(*args: Any, **kwargs: Any) -> Any:
        return wait(coroutine(*args, **kwargs))

    return tool.model_copy(update={"func": function})

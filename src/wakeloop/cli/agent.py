"""Makes the agent of a recipe: model, tools, graph."""

import os
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import StateGraph

from wakeloop.agent import build_todo_graph
from wakeloop.cli.around import is_here
from wakeloop.cli.configured import settings_of
from wakeloop.cli.failures import CommandError, usage
from wakeloop.cli.recipe import Recipe, is_openai
from wakeloop.demo.job import demo_tools
from wakeloop.demo.offline import OfflineAuditor
from wakeloop.guesses.models import check_name
from wakeloop.model.named import model_named, openai_model
from wakeloop.tools.files import file_tools
from wakeloop.tools.shell import shell_tool
from wakeloop.tools.verifier import command_verifier


def graph_of(
    recipe: Recipe, *, ask: bool, stop: Event, more: Sequence[BaseTool] = ()
) -> StateGraph[Any, Any, Any, Any]:
    """Build the graph of a recipe, not compiled; `more` are tools beside the recipe's.

    `ask` puts each shell command to the person first; setting `stop` ends running ones, and no request
    follows it.
    """
    settings = settings_of(recipe)
    if not Path(recipe.root).is_dir():
        raise CommandError(
            f"The folder {recipe.root!r} of this thread is not there: name another with --root."
        )
    tools = [*tools_of(recipe, ask=ask, stop=stop), *more]
    check = command_verifier(recipe.verify, recipe.root, stop=stop) if recipe.verify else None
    return build_todo_graph(model_of(recipe, stop), tools, recipe.system or None, settings, verify=check)


def model_of(recipe: Recipe, stop: Event) -> BaseChatModel:
    """Make the model of a recipe; one that is said to have no function calling refuses tools."""
    model = _made(recipe, stop)
    if not recipe.function_calling:
        model.__dict__["bind_tools"] = _no_tools  # found before the class's own
    return model


def _no_tools(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("function_calling is off")


def _made(recipe: Recipe, stop: Event) -> BaseChatModel:
    """Make the model of a recipe; one of OpenAI's kind makes no request any more once `stop` is set."""
    if not recipe.model:
        return OfflineAuditor(delay=recipe.delay)
    if not recipe.base_url:
        check_name(recipe.model)
    if is_openai(recipe.model):
        address = {"base_url": recipe.base_url} if recipe.base_url else {}
        if is_here(recipe.base_url) and not os.environ.get("OPENAI_API_KEY"):
            address["api_key"] = "none"  # the client wants one; a server on this machine does not
        return openai_model(recipe.model.removeprefix("openai:"), **address, **stopping(stop))
    if recipe.base_url:
        raise usage(
            f"--base-url is for models of OpenAI's kind, and {recipe.model!r} is of another provider."
        )
    return model_named(recipe.model)


def stopping(stop: Event) -> dict[str, Any]:
    """Options of a client that refuses to send when `stop` is set: it repeats failed requests by itself.

    It reads a stream that begins with a byte order mark, too.
    """
    try:
        from openai import APIConnectionError, DefaultHttpxClient

        from wakeloop.model.unmarked import unmark
    except ImportError:
        return {}  # making the model will say what to install

    def refuse(request: Any) -> None:
        if stop.is_set():
            raise APIConnectionError(message="The run was stopped.", request=request)

    return {"http_client": DefaultHttpxClient(event_hooks={"request": [refuse], "response": [unmark]})}


def tools_of(recipe: Recipe, *, ask: bool, stop: Event) -> list[BaseTool]:
    """Make the tools of a recipe, confined to its root."""
    root = Path(recipe.root)
    if recipe.demo:
        return demo_tools(root)
    files = file_tools(root) if "files" in recipe.tools else []
    shell = [shell_tool(root, ask=ask, stop=stop)] if "shell" in recipe.tools else []
    return [*files, *shell]

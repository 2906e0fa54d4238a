"""What is found, what answers, where threads are kept."""

import platform
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from threading import Event
from typing import Any

from wakeloop.cli.around import Around, look_around
from wakeloop.cli.configured import recipe_of, stack_of
from wakeloop.cli.failures import FAILED, SETTLED, USAGE, code_of, sentence_of
from wakeloop.cli.recipe import Recipe
from wakeloop.cli.store import Place, exists, reading
from wakeloop.config.levels import config_folder
from wakeloop.display.clean import one_line
from wakeloop.text.characters import plural

PACKAGES = ("wakeloop", "langgraph", "langchain-core", "langchain-openai", "langgraph-checkpoint-sqlite")
ASKED = "Call the tool ready once, with ok set to true. Say nothing else."
READY = {
    "type": "function",
    "function": {
        "name": "ready",
        "description": "Tell that you are ready.",
        "parameters": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
}


def examine(place: Place, given: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Say how things are, line by line; 0 where a model answers and calls a tool."""
    say(f"versions: python {platform.python_version()}, {', '.join(map(versioned, PACKAGES))}")
    file = config_folder() / "config.yaml"
    say(f"config: {file}{'' if file.is_file() else ' (not there; wakeloop init writes it)'}")
    say(kept(place))
    around = look_around()
    for line in around.lines():
        say(line)
    recipe = chosen(around, given)
    if recipe is None:
        say("model: none; wakeloop init finds one")
        return USAGE
    say(f"model: {one_line(recipe.title)}{f' at {recipe.base_url}' if recipe.base_url else ''}")
    return tried(recipe, say)


def versioned(package: str) -> str:
    """A package with its version, without importing it."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def kept(place: Place) -> str:
    """Where threads are kept, and how many there are."""
    if not exists(place):
        return f"threads: {place.path} (not there; the first run makes it)"
    with reading(place) as store:
        return f"threads: {place.path}, {plural(len(store.threads()), 'thread')}"


def chosen(around: Around, given: Mapping[str, Any]) -> Recipe | None:
    """The model that the configuration names, else the first of a server on this machine."""
    stack = stack_of(None, given)
    if stack.resolved().get("model"):
        return recipe_of(stack, Recipe(), given)
    served = next((values for _, values in around.choices if "base_url" in values), None)
    return None if served is None else recipe_of(stack_of(None, {**given, **served}), Recipe(), given)


def tried(recipe: Recipe, say: Callable[[str], None]) -> int:
    """Ask the model for one call of a tool, and say what came of it."""
    from langchain_core.messages import HumanMessage

    from wakeloop.cli.agent import model_of
    from wakeloop.model.named import bound

    try:
        model = model_of(recipe, Event())
        with ExitStack() as open_ones:
            if client := getattr(model, "http_client", None):
                open_ones.callback(client.close)
            reply = bound(model, [READY]).invoke([HumanMessage(ASKED)])
    except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
        say(f"answer: none. {sentence_of(error)}")
        return code_of(error)
    if not reply.tool_calls:
        say(f"tools: none called. It answered {one_line(reply.text, 60)!r}; the todo list needs tool calls.")
        return FAILED
    say("tools: called, as asked")
    return SETTLED

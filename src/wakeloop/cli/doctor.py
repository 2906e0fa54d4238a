"""What is found, what answers, where threads are kept."""

import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from importlib.metadata import PackageNotFoundError, version
from threading import Event
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec, strip_credentials
from wakeloop.cli.discovery import TOTAL_TIMEOUT, ModelSources, discover_models, format_models
from wakeloop.cli.failures import FAILED, SETTLED, USAGE, CommandError, error_exit_code, format_error
from wakeloop.cli.output_formats import at_a_terminal
from wakeloop.cli.recipe_builder import build_stack, recipe_from_stack
from wakeloop.cli.store import DatabaseFile, database_exists, open_to_read
from wakeloop.config.levels import config_folder
from wakeloop.display.clean import one_line
from wakeloop.display.width import tell
from wakeloop.errors import ReplyError
from wakeloop.text.characters import pluralize, quote_path

VERSION_SUFFIX = re.compile(r"/v\d\w*$")  # at the end of an address
PACKAGES = ("wakeloop", "langgraph", "langchain-core", "langchain-openai", "langgraph-checkpoint-sqlite")
TEST_PROMPT = "Call the tool ready once, with ok set to true. Say nothing else."
TEST_TOOL = {
    "type": "function",
    "function": {
        "name": "ready",
        "description": "Tell that you are ready.",
        "parameters": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
}


def run_doctor(place: DatabaseFile, given: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Say how things are, line by line; 0 where a model answers and calls a tool."""
    say(f"versions: python {platform.python_version()}, {', '.join(map(format_version, PACKAGES))}")
    file = config_folder() / "config.yaml"
    say(f"config: {quote_path(file)}{'' if file.is_file() else ' (not there; wakeloop init writes it)'}")
    worst: int = SETTLED
    try:
        say(describe_storage(place))
    except CommandError as error:  # the model is looked at none the less
        worst = error.code
        say(f"threads: {format_error(error)}")
    show_progress("Looking for servers on this machine …")
    around = discover_models(say)
    recipe = choose_recipe(around, given)
    if recipe is None:
        say("model: none; wakeloop init finds one")
        return worst or USAGE
    at = f" at {strip_credentials(recipe.base_url)}" if recipe.base_url else ""
    say(f"model: {one_line(recipe.model_title)}{at}")
    return check_model(recipe, say) or worst


def format_version(package: str) -> str:
    """A package with its version, without importing it."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def describe_storage(place: DatabaseFile) -> str:
    """Where threads are kept, and how many there are."""
    if not database_exists(place):
        return f"threads: {quote_path(place.path)} (not there; the first run makes it)"
    with open_to_read(place) as store:
        return f"threads: {quote_path(place.path)}, {pluralize(len(store.threads()), 'thread')}"


def choose_recipe(around: ModelSources, given: Mapping[str, Any]) -> AgentSpec | None:
    """The model that the configuration names, else the first of a server on this machine."""
    stack = build_stack(None, given)
    if stack.resolve().get("model"):
        return recipe_from_stack(stack, AgentSpec(), given)
    served = next((values for _, values in around.choices if "base_url" in values), None)
    return (
        None
        if served is None
        else recipe_from_stack(build_stack(None, {**given, **served}), AgentSpec(), given)
    )


def check_model(recipe: AgentSpec, say: Callable[[str], None]) -> int:
    """Ask the model for one call of a tool, and say what came of it."""
    show_progress("Asking it for one call of a tool …")
    from langchain_core.messages import HumanMessage

    from wakeloop.cli.agent import make_model
    from wakeloop.model.chat_models import bind_tools
    from wakeloop.model.invocation import invoke_model
    from wakeloop.model.reply_watcher import ReplyWatcher

    model, heard = None, ReplyWatcher({}, streaming=False)
    with ExitStack() as open_ones:
        try:
            model = make_model(recipe, Event())
            if client := getattr(model, "http_client", None):
                open_ones.callback(client.close)
            reply = invoke_model(bind_tools(model, [TEST_TOOL]), [HumanMessage(TEST_PROMPT)], heard)
        except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
            say(f"answer: none. {format_error(error)}")
            answered = isinstance(error, ReplyError) or isinstance(getattr(error, "status_code", None), int)
            for line in suggest_alternatives(recipe.model, model) if answered else ():
                say(line)
            return error_exit_code(error)
    if heard.unreadable is not None:
        say(f"tools: none called. Its call cannot be read: {one_line(heard.unreadable.why)}.")
        return FAILED
    if not reply.tool_calls:
        say(f"tools: none called. It answered {one_line(reply.text, 60)!r}; the todo list needs tool calls.")
        return FAILED
    say("tools: called, as asked")
    return SETTLED


def suggest_alternatives(name: str, model: Any) -> Iterator[str]:
    """What a server has in the place of what was asked for: models by other names, or another address."""
    client: Any = getattr(model, "root_client", None)
    if client is None:
        return
    asked = str(client.base_url).rstrip("/")
    others = () if VERSION_SUFFIX.search(asked) else (f"{asked}/v1", str(client.base_url.join("/v1")))
    for address in dict.fromkeys((asked, *others)):
        with suppress(Exception):  # nothing answers there, or something else does
            at_once = client.with_options(base_url=address, timeout=TOTAL_TIMEOUT, max_retries=0)
            names = [one.id for one in at_once.models.list().data]
            if address != asked:
                there = strip_credentials(address)
                yield f"address: a server answers at {there}: try --base-url {there}"
            elif name.removeprefix("openai:") not in names:
                yield f"models there: {format_models(names)}"
            return


def show_progress(text: str) -> None:
    """Tell a person at a terminal what takes a moment."""
    if at_a_terminal():
        tell(text, sys.stderr)

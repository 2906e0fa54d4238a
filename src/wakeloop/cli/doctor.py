"""Check keys, servers, models and storage."""

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
from wakeloop.cli.failures import SETTLED, USAGE, CommandError, error_exit_code, format_error
from wakeloop.cli.spec_builder import build_stack, settings_from_spec, spec_from_stack
from wakeloop.cli.store import DatabaseFile, database_exists, open_to_read
from wakeloop.cli.streams import at_a_terminal
from wakeloop.config.levels import config_folder
from wakeloop.display.terminal_output import clean_line, write_text
from wakeloop.text.characters import pluralize, quote_path

VERSION_SUFFIX = re.compile(r"/v\d\w*$")  # of an address
PACKAGES = ("wakeloop", "langgraph", "langchain-core", "langchain-openai", "langgraph-checkpoint-sqlite")


def run_doctor(database: DatabaseFile, given: Mapping[str, Any], say: Callable[[str], None]) -> int:
    """Report versions, configuration, threads, keys, servers and the model, line by line.

    Return 0 if a model answers, calls a tool and takes the result, also as a stream.
    """
    say(f"versions: python {platform.python_version()}, {', '.join(map(format_version, PACKAGES))}")
    file = config_folder() / "config.yaml"
    say(f"config: {quote_path(file)}" + ("" if file.is_file() else " (not found; wakeloop init creates it)"))
    say(describe_storage(database))
    show_progress("Looking for servers on this machine …")
    sources = discover_models(say)
    spec = choose_spec(sources, given)
    if spec is None:
        say("model: none; wakeloop init finds one")
        return USAGE
    address = f" at {strip_credentials(spec.base_url)}" if spec.base_url else ""
    say(f"model: {clean_line(spec.model_title)}{address}")
    return check_model(spec, say)


def format_version(package: str) -> str:
    """Return a package with its version, without importing it."""
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} (not installed)"


def describe_storage(database: DatabaseFile) -> str:
    """Say where threads are stored, and how many there are."""
    if not database_exists(database):
        return f"threads: {quote_path(database.path)} (not found; the first run creates it)"
    with open_to_read(database) as store:
        return f"threads: {quote_path(database.path)}, {pluralize(len(store.threads()), 'thread')}"


def choose_spec(sources: ModelSources, given: Mapping[str, Any]) -> AgentSpec | None:
    """Return a spec with the configured model, else with the first one of a server on this machine."""
    stack = build_stack(None, given)
    if stack.resolve().get("model"):
        return spec_from_stack(stack, AgentSpec(), given)
    for _, values in sources.choices:
        if not values["model"].endswith(":"):
            return spec_from_stack(build_stack(None, {**given, **values}), AgentSpec(), given)
    return None


def check_model(spec: AgentSpec, say: Callable[[str], None]) -> int:
    """Try what a run does, whole and as a stream; report what works, and return the exit code."""
    from wakeloop.cli.agent import make_model, note_server_window
    from wakeloop.cli.model_trial import TRIAL_TOOL, ModelTrial
    from wakeloop.model.bindings import bind_tools
    from wakeloop.model.context_window import read_profile_window

    with ExitStack() as clients:
        model = make_model(spec, Event())
        note_server_window(model, spec)
        if client := getattr(model, "http_client", None):
            clients.callback(client.close)
        finishes = settings_from_spec(spec).finish_reason == "required"
        trial = ModelTrial(bind_tools(model, [TRIAL_TOOL]), finishes)
        code = report_step(say, "tools", trial.request_call, "called as asked")
        if code != SETTLED:
            for line in suggest_alternatives(spec.model, model):
                say(line)
            return code
        if window := read_profile_window(model):
            say(f"context: {window:,} tokens")
        streamed = ModelTrial(trial.model, finishes, streaming=True)
        takes_result = report_step(say, "result", trial.send_result, "accepted, with the call before it")
        return report_step(say, "stream", streamed.run, "the same works") or takes_result


def report_step(say: Callable[[str], None], name: str, step: Callable[[], None], success: str) -> int:
    """Take a step of a trial and say what came of it. Return the exit code."""
    show_progress(f"Trying the {name} …")
    try:
        step()
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
        failed = "" if isinstance(error, CommandError) else "failed. "
        say(f"{name}: {failed}{format_error(error)}")
        return error_exit_code(error)
    say(f"{name}: {success}")
    return SETTLED


def suggest_alternatives(name: str, model: Any) -> Iterator[str]:
    """Yield what the server has instead: models by other names, or another address that works."""
    client: Any = getattr(model, "root_client", None)
    if client is None:
        return
    given = str(client.base_url).rstrip("/")
    addresses = [given]
    if not VERSION_SUFFIX.search(given):
        addresses += [f"{given}/v1", str(client.base_url.join("/v1"))]
    for address in dict.fromkeys(addresses):
        with suppress(Exception):  # nothing answers there, or something else does
            fast = client.with_options(base_url=address, timeout=TOTAL_TIMEOUT, max_retries=0)
            names = [model.id for model in fast.models.list().data]
            if address != given:
                url = strip_credentials(address)
                yield f"address: a server answers at {url}: try --base-url {url}"
            elif name.removeprefix("openai:") not in names:
                yield f"models there: {format_models(names)}"
            return


def show_progress(text: str) -> None:
    """Tell a user at a terminal about a step that takes a moment."""
    if at_a_terminal():
        write_text(text, sys.stderr)

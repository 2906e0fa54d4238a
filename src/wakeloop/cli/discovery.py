"""Find keys, servers and models; init, and the doctor."""

import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from threading import Event
from typing import Any

from wakeloop.cli.agent_spec import AgentSpec, strip_credentials
from wakeloop.cli.failures import SETTLED, USAGE, CommandError, error_exit_code, format_error
from wakeloop.cli.spec_builder import build_stack, settings_from_spec, spec_from_stack
from wakeloop.cli.store import DatabaseFile, database_exists, open_to_read
from wakeloop.cli.streams import at_a_terminal, read_line, write_atomically
from wakeloop.config.levels import config_folder, read_global_levels
from wakeloop.display.terminal_output import clean_line, write_text
from wakeloop.errors import SettingsError
from wakeloop.text.characters import pluralize, quote_path

KEY_PROVIDERS = {  # environment variables, and LangChain's name for the provider
    "OPENAI_API_KEY": "openai",
    "ANTHROPIC_API_KEY": "anthropic",
    "GOOGLE_API_KEY": "google_genai",
    "MISTRAL_API_KEY": "mistralai",
    "GROQ_API_KEY": "groq",
    "DEEPSEEK_API_KEY": "deepseek",
    "XAI_API_KEY": "xai",
    "COHERE_API_KEY": "cohere",
    "OPENROUTER_API_KEY": "openrouter",
    "TOGETHER_API_KEY": "together",
    "FIREWORKS_API_KEY": "fireworks",
}
SERVERS = {"Ollama": 11434, "llama.cpp": 8080, "LM Studio": 1234, "vLLM": 8000}  # their default ports
CONNECT_TIMEOUT = 0.7  # seconds that a server may stay silent
TOTAL_TIMEOUT = 2.0  # seconds for the whole answer
MAX_LISTED = 20  # models of a server shown in one line
TOOL_CALLING_FAMILIES = ("gpt-", "claude", "gemini", "qwen", "llama", "mistral", "deepseek", "gemma")
NON_CHAT_MODEL = re.compile(
    r"embed|rerank|whisper|tts|speech|audio|image|dall-e|moderation|guard|vision-only"
)
MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class ModelServer:
    """A server that listed its models: on this machine, or at the user's address.

    Its `url` has no credentials. With `secret`, the address has some, so it stays in the environment.
    """

    name: str
    url: str
    models: Sequence[str]
    secret: bool = False


@dataclass(frozen=True)
class ModelSources:
    """The keys (names of variables, never their values) and servers that were found.

    `silent` are the user's own addresses where no server listed its models, each with its source.
    """

    keys: Sequence[str]
    servers: Sequence[ModelServer]
    silent: Sequence[tuple[str, str]] = ()

    @property
    def choices(self) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Pairs of a label and config values; a model that ends in ":" still needs a name."""
        found: list[tuple[str, Mapping[str, str]]] = []
        for server in self.servers:
            for model in sorted(server.models, key=rank_model):
                address = {} if server.secret else {"base_url": server.url}
                found.append((f"{model} ({server.name})", {"model": f"openai:{model}", **address}))
        for key in self.keys:
            provider = KEY_PROVIDERS[key]
            found.append((f"{provider}, using {key}", {"model": f"{provider}:"}))
        return found


def discover_models(say: Callable[[str], None] = lambda _: None) -> ModelSources:
    """Look for keys in the environment and servers on this machine; `say` each as soon as it is found."""
    keys = [name for name in KEY_PROVIDERS if os.environ.get(name, "").strip()]
    say(f"keys: {', '.join(keys) or 'none'}")
    servers, silent = [], []
    usual = {f"http://127.0.0.1:{port}/v1": name for name, port in SERVERS.items()}
    own = {}
    for source, url in read_own_addresses():
        local = url.replace("localhost", "127.0.0.1")
        own[local if local in usual else url] = source
    names = {**own, **usual}
    with ThreadPoolExecutor(len(names)) as pool:
        answers = pool.map(query_server, names.values(), names)
        for url, server in zip(names, answers, strict=True):
            if server is not None:
                servers.append(server)
                say(f"server: {server.name} at {server.url}: {format_models(server.models)}")
            elif url in own:
                silent.append((strip_credentials(url), own[url]))
                say(f"server: none at {strip_credentials(url)} ({own[url]}) that lists its models")
    if not servers:
        looked = ", ".join(f"{name} ({port})" for name, port in SERVERS.items())
        say(f"server: none on this machine; looked for {looked}")
    return ModelSources(keys, servers, silent)


def read_own_addresses() -> Iterator[tuple[str, str]]:
    """Yield the user's own addresses, each after its source, the one that a run uses first."""
    found = [("OPENAI_BASE_URL", os.environ.get("OPENAI_BASE_URL", ""))]
    with suppress(SettingsError, OSError):  # a wrong file is reported by the first command that needs it
        for level in read_global_levels(config_folder()):
            found.append((Path(level.source).name, str(level.values.get("base_url") or "")))
    for source, url in reversed(found):
        if url.strip().startswith(("http://", "https://")):
            yield source, url.strip().rstrip("/")


def rank_model(model: str) -> int:
    """Rank a model for a menu: known tool callers first, models that cannot chat last."""
    name = model.rpartition("/")[2].lower()
    known = [rank for rank, family in enumerate(TOOL_CALLING_FAMILIES) if name.startswith(family)]
    if NON_CHAT_MODEL.search(name):
        return len(TOOL_CALLING_FAMILIES) + 1
    return known[0] if known else len(TOOL_CALLING_FAMILIES)


def format_models(models: Sequence[str]) -> str:
    """List models in one line, at most as many as a person reads."""
    if not models:
        return "no model is loaded"
    more = len(models) - MAX_LISTED
    listed = ", ".join(models[:MAX_LISTED])
    return f"{listed} and {more:,} more" if more > 0 else listed


def query_server(name: str, url: str) -> ModelServer | None:
    """Ask a server for its models; None if nothing answers, or something else does.

    Only the addresses that the user gave get the user's key.
    """
    import httpx

    key = os.environ.get("OPENAI_API_KEY", "").strip() if name not in SERVERS else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    deadline, body = time.monotonic() + TOTAL_TIMEOUT, b""
    try:
        with (
            httpx.Client(headers=headers, timeout=CONNECT_TIMEOUT, trust_env=False) as client,
            client.stream("GET", f"{url}/models") as response,
        ):
            for part in response.iter_bytes():
                body += part
                if time.monotonic() > deadline or len(body) > MAX_BYTES:
                    return None
        answer = json.loads(body) if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
    models = parse_model_list(answer)
    shown = strip_credentials(url)
    return None if models is None else ModelServer(name, shown, models, secret=shown != url)


def parse_model_list(answer: Any) -> list[str] | None:
    """Return the model names in an OpenAI-style answer; None for any other answer."""
    if not isinstance(answer, dict):
        return None
    rows = answer.get("data")
    if rows is None and answer.get("object") == "list":  # as Ollama answers that has no models
        rows = []
    if not isinstance(rows, list):
        return None
    names = [row.get("id") for row in rows if isinstance(row, dict)]
    return [name for name in names if isinstance(name, str) and name.isprintable() and name.strip()]


# -- the first minute: find a model and write the configuration ------------------------------------------


DEFAULT_MODELS = {"openai:": "gpt-5-mini"}  # suggested for a provider
MAX_MENU = 12  # models of servers shown in the menu


def run_init() -> int:
    """Show what was found; at a terminal, ask which model to use and write the configuration."""
    file, sources = config_folder() / "config.yaml", discover_models(print_lines)
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sources.choices):
        print_lines(*suggest_next_steps(sources, file))
    elif file.exists() and ask_line(f"{quote_path(file)} exists. Overwrite it? [y/N] ")[:1] not in ("y", "Y"):
        print_lines(f"{quote_path(file)} was left unchanged. Try: wakeloop doctor")
    else:
        values = choose_model(sources)
        write_config(file, values)
        print_lines(
            f"Wrote {quote_path(file)}: {', '.join(values.values())}",
            'Try: wakeloop run "Say what is in this folder"',
        )
    return SETTLED


def suggest_next_steps(sources: ModelSources, file: Path) -> Iterator[str]:
    """Yield the commands to type next."""
    try:
        read_global_levels(file.parent)
    except SettingsError as error:  # no run would start
        yield from (f"config: {error}", "To start: correct that, and try again.")
        return
    there = "" if file.exists() else " (not found; run wakeloop init at a terminal to create it)"
    yield f"config: {quote_path(file)}{there}"
    if sources.choices:
        _, values = sources.choices[0]
        model = values["model"]
        if model.endswith(":"):
            model += DEFAULT_MODELS.get(model, "NAME")
        address = f" --base-url {values['base_url']}" if "base_url" in values else ""
        yield f'To start: wakeloop run "Say what is in this folder" --model {quote(model)}{address}'
    elif sources.silent:
        [(address, source), *_] = sources.silent
        yield f"To start: start the server at {address} or correct {source}, and try again."
    else:
        address = "set OPENAI_BASE_URL to a server's address"
        yield f"To start: set OPENAI_API_KEY, start a server such as Ollama, or {address}, and try again."
    yield from ("Without a model: wakeloop demo", "All commands: wakeloop --help")


def choose_model(sources: ModelSources) -> dict[str, str]:
    """Ask which model to use, and for its name where only the provider is known."""
    values = dict(pick_from_menu(sources))
    if values["model"].endswith(":"):
        default = DEFAULT_MODELS.get(values["model"], "")
        hint = f" [Enter for {default}]" if default else ""
        name = ""
        while not name:
            name = ask_line(f"Name of the model{hint}: ") or default
        values["model"] += name
    return values


def pick_from_menu(sources: ModelSources) -> Mapping[str, str]:
    """Ask which model to use, by number or by name; a name may be one that the menu leaves out."""
    served = [choice for choice in sources.choices if not choice[1]["model"].endswith(":")]
    shown = [*served[:MAX_MENU], *sources.choices[len(served) :]]
    by_name: dict[str, Mapping[str, str]] = {}
    for _, values in reversed(served):  # if two share a name, the first one counts
        by_name |= dict.fromkeys((values["model"], values["model"].partition(":")[2]), values)
    for number, (label, _) in enumerate(shown, 1):
        print_lines(f"  {number} {label}")
    if len(served) > MAX_MENU:
        print_lines(f"  … and {len(served) - MAX_MENU} more: type a name")
    while True:
        typed = ask_line(f"Which one? [1-{len(shown)} or a name, Enter for 1] ") or "1"
        if typed.isdecimal() and 1 <= int(typed) <= len(shown):
            return shown[int(typed) - 1][1]
        if typed in by_name:
            return by_name[typed]
        print_lines(f"{typed!r} is not one of them.")


def ask_line(question: str) -> str:
    """Ask for a line."""
    write_text(question, sys.stdout, end="")
    typed = read_line(sys.stdin)
    if not typed:
        raise CommandError("The input ended before an answer; nothing was written.")
    return typed.strip()


def write_config(file: Path, values: Mapping[str, str]) -> None:
    """Write the configuration file atomically."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"Cannot create the folder {str(file.parent)!r}: {error.strerror}.") from None
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in values.items())
    write_atomically(text, file, force=True)


def print_lines(*lines: str) -> None:
    """Print lines on stdout."""
    for line in lines:
        write_text(line, sys.stdout)


# -- check keys, servers, models and storage -------------------------------------------------------------


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

"""Options of commands, and what makes a function a command."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeloop.cli.commands.console import report_errors
from wakeloop.cli.streams import OutputFormat, OutputOptions


def complete_thread(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of threads that start like this, for shell completion."""
    from wakeloop.cli.store import DatabaseFile, open_to_read

    with suppress(Exception), open_to_read(DatabaseFile.of(context.params.get("db"))) as store:
        return [known.id for known in store.threads() if known.id.startswith(incomplete)]
    return []


def argument(metavar: str, text: str, **more: Any) -> Any:
    """Return an argument of a command."""
    return typer.Argument(metavar=metavar, help=text, **more)


def option(*names: str, takes: str | None = None, text: str, **more: Any) -> Any:
    """Return an option of a command, by default called like its parameter; `takes` names its value."""
    return typer.Option(*names, metavar=takes, help=text, **more)


def _agent_option(takes: str, text: str, kind: Any = str, *names: str) -> Any:
    # typer's own check of a file would say less than the error of the reader
    return Annotated[kind | None, option(*names, takes=takes, text=text, readable=False)]


_COMPLETED: dict[str, Any] = {"autocompletion": complete_thread}
Thread = Annotated[
    str, argument("THREAD", "Thread id, as wakeloop threads lists it, or its beginning.", **_COMPLETED)
]
LastThread = Annotated[
    str | None, argument("THREAD", "Thread id or its beginning. Default: the latest thread.", **_COMPLETED)
]
ThreadOption = Annotated[
    str | None,
    option("--thread", takes="THREAD", text="Thread to continue, or the id for a new one.", **_COMPLETED),
]
Json = Annotated[bool, option("--json", text="Print one JSON object to stdout and nothing else.")]
Force = Annotated[bool, option("--force", text="Overwrite an existing file.")]
Yes = Annotated[bool, option("--yes", text="Run shell commands and MCP calls without asking.")]
Trust = Annotated[
    bool, option("--trust", text="Use changed tools, checks, MCP and configuration files without asking.")
]
Delay = Annotated[float, option(min=0, text="Seconds per reply of the offline model.")]

_DB: dict[str, Any] = {"envvar": "WAKELOOP_DB"}
DATABASE = Annotated[
    Path | None,
    option("--db", takes="FILE", text="SQLite file that stores the threads.", readable=False, **_DB),
]
STORAGE = Annotated[
    str | None,
    option("--db", takes="FILE|URL", text="SQLite file that stores the threads, or postgresql://…", **_DB),
]
OUTPUT_OPTIONS = {
    "json": (Json, False),
    "output": (
        Annotated[
            OutputFormat | None,
            option(
                "--output",
                text="What to print: text, the final state as JSON, or every event as a line of JSON.",
            ),
        ],
        None,
    ),
    "quiet": (
        Annotated[bool, option("--quiet", "-q", text="Print only the answer; errors go to stderr.")],
        False,
    ),
}
AgentOptions = Mapping[str, Any]  # the options of an agent that were typed, parsed
AGENT_OPTIONS = {
    "model": _agent_option(
        "MODEL", "Model to use, as PROVIDER:NAME. Default: $WAKELOOP_MODEL, else that of config.yaml."
    ),
    "base_url": _agent_option(
        "URL", "URL of an OpenAI-compatible server. Default: that of config.yaml, else $OPENAI_BASE_URL."
    ),
    "system": _agent_option("FILE", "File with the system prompt.", Path),
    "preset": _agent_option("NAME", "Preset to start from."),
    "settings": _agent_option(
        "KEY=VALUE", "Override a setting, such as max_wake_cycles=5. Repeatable.", list[str], "--set"
    ),
    "root": _agent_option("DIR", "Folder that the tools may use. Default: the current folder.", Path),
    "tools": _agent_option(
        "NAMES", "Tools: files, shell, or MODULE:NAME for your own. Default: files; 'none' disables it."
    ),
    "mcp": _agent_option("FILE", "Start the MCP servers of a file like .mcp.json; 'none' disables it."),
    "role": _agent_option("NAME", "Role from the configuration folder; 'none' disables it."),
    "agent": _agent_option("NAME", "Agent file, which replaces all settings; 'none' disables it."),
    "max_requests": _agent_option(
        "N", "Limit on model requests per message. Default: 500; 'none' disables it."
    ),
    "max_tokens": _agent_option("N", "Limit on tokens per message, input and output; 'none' disables it."),
    "max_cost": _agent_option("SUM", "Limit on cost per message; prices come from the configuration."),
    "max_seconds": _agent_option(
        "N", "Limit on seconds per message in models and tools; 'none' disables it."
    ),
    "verify": _agent_option(
        "COMMAND", "Check each item before it is completed: exit code 0 accepts it; 'none' disables it."
    ),
    "done_when": _agent_option(
        "COMMAND", "Check the goal after each turn and continue until exit code 0; 'none' disables it."
    ),
    "done_when_seconds": _agent_option(
        "N", "Seconds that the command of --done-when may take. Default: 300."
    ),
    "wait": _agent_option(
        "TIME", "At a terminal, longest wait for a provider's limit. Default: 15m; 'none' disables it."
    ),
}
SERVED_OPTIONS = [name for name in AGENT_OPTIONS if name not in ("agent", "wait")]


def command(*agent_options: str) -> Callable[[Callable[..., int | None]], Callable[..., None]]:
    """Make a function a command: an error ends in one sentence, and what it returns is the exit code.

    Some of its parameters stand for options: `given` for these agent options, `output` for those of the
    output, `database` and `storage` for `--db`.
    """
    options: dict[str, Mapping[str, tuple[Any, Any]]] = {
        "given": {name: (AGENT_OPTIONS[name], None) for name in agent_options},
        "output": OUTPUT_OPTIONS,
        "database": {"db": (DATABASE, None)},
        "storage": {"db": (STORAGE, None)},
    }

    def decorate(function: Callable[..., int | None]) -> Callable[..., None]:
        own = signature(function).parameters
        parameters: list[Parameter] = []
        for name, parameter in own.items():
            if name not in options:
                parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
                continue
            for typed, (kind, default) in options[name].items():
                parameters.append(Parameter(typed, Parameter.KEYWORD_ONLY, default=default, annotation=kind))

        @wraps(function)
        def wrapper(**values: Any) -> None:
            with report_errors():
                for name in filter(options.__contains__, own):
                    values[name] = _read_options(name, {typed: values.pop(typed) for typed in options[name]})
                code = function(**values)
            if code is not None:
                raise typer.Exit(code)

        # typer reads the signature and the annotations of the wrapper, not those of the function
        wrapper.__dict__["__signature__"] = Signature(parameters)
        wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
        return wrapper

    return decorate


def _read_options(name: str, typed: Mapping[str, Any]) -> Any:
    """Return the value of a parameter that stands for options."""
    if name == "output":
        return OutputOptions.from_flags(**typed)
    if name == "given":
        from wakeloop.cli.agent_spec import parse_options

        return parse_options(**typed)
    if name == "storage":
        from wakeloop.cli.sessions.storage import SessionStorage

        return SessionStorage(typed["db"])
    from wakeloop.cli.store import DatabaseFile

    return DatabaseFile.of(typed["db"])

"""Options of the command line and their help."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeloop.cli.streams import OutputFormat


def complete_thread(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ids of threads that start like this, for shell completion."""
    from wakeloop.cli.store import DatabaseFile, open_to_read

    with suppress(Exception), open_to_read(DatabaseFile.of(context.params.get("db"))) as store:
        return [known.id for known in store.threads() if known.id.startswith(incomplete)]
    return []


Thread = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="Thread id, as wakeloop threads lists it, or its beginning.",
        autocompletion=complete_thread,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
LastThread = Annotated[
    str | None,
    typer.Argument(
        metavar="THREAD",
        help="Thread id or its beginning. Default: the latest thread.",
        autocompletion=complete_thread,
    ),
]
ThreadOption = Annotated[
    str | None,
    typer.Option(
        "--thread",
        metavar="THREAD",
        help="Thread to continue, or the id for a new one.",
        autocompletion=complete_thread,
    ),
]
Db = Annotated[
    Path | None,
    typer.Option(
        "--db",
        envvar="WAKELOOP_DB",
        metavar="FILE",
        help="SQLite file that stores the threads.",
        # typer's own check would say less than the error of the reader
        readable=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else.")]
OutputOption = Annotated[
    OutputFormat | None,
    typer.Option(
        "--output",
        help="What to print: text, the final state as JSON, or every event as a line of JSON.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only the answer; errors go to stderr.")
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Model to use, as PROVIDER:NAME. Default: $WAKELOOP_MODEL, else that of config.yaml.",
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="URL of an OpenAI-compatible server. Default: that of config.yaml, else $OPENAI_BASE_URL.",
    ),
]
System = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the system prompt.", readable=False)
]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="Preset to start from.")]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting, such as max_wake_cycles=5. Repeatable."
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder that the tools may use. Default: the current folder."),
]
Role = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Role from the configuration folder; 'none' disables it."),
]
Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Agent file, which replaces all settings; 'none' disables it."),
]
Todos = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Todo list to work through: one item per line, or a .json or .yaml file.",
        readable=False,
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="At a terminal, longest wait for a provider's limit. Default: 15m; 'none' disables it.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Run shell commands and MCP calls without asking.")]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Use changed tools, checks, MCP and configuration files without asking."),
]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="WAKELOOP_DB",
        metavar="FILE|URL",
        help="SQLite file that stores the threads, or postgresql://…",
    ),
]
Session = Annotated[
    str, typer.Argument(metavar="THREAD", help="Session, as AGENT:NAME; NAME alone uses the agent main.")
]


def _text_option(metavar: str, text: str) -> Any:
    return Annotated[str | None, typer.Option(metavar=metavar, help=text)]


AgentOptions = Mapping[str, Any]  # the options of an agent that were typed, parsed
AGENT_OPTIONS = {
    "model": Model,
    "base_url": BaseUrl,
    "system": System,
    "preset": Preset,
    "settings": Set,
    "root": Root,
    "tools": _text_option(
        "NAMES", "Tools: files, shell, or MODULE:NAME for your own. Default: files; 'none' disables it."
    ),
    "mcp": _text_option("FILE", "Start the MCP servers of a file like .mcp.json; 'none' disables it."),
    "role": Role,
    "agent": Agent,
    "max_requests": _text_option(
        "N", "Limit on model requests per message. Default: 500; 'none' disables it."
    ),
    "max_tokens": _text_option("N", "Limit on tokens per message, input and output; 'none' disables it."),
    "max_cost": _text_option("SUM", "Limit on cost per message; prices come from the configuration."),
    "max_seconds": _text_option("N", "Limit on seconds per message in models and tools; 'none' disables it."),
    "verify": _text_option(
        "COMMAND", "Check each item before it is completed: exit code 0 accepts it; 'none' disables it."
    ),
    "done_when": _text_option(
        "COMMAND", "Check the goal after each turn and continue until exit code 0; 'none' disables it."
    ),
    "done_when_seconds": _text_option("N", "Seconds that the command of --done-when may take. Default: 300."),
}


def takes_agent_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these agent options to a command, which gets them parsed as its argument `given`."""
    typed = [Parameter(n, Parameter.KEYWORD_ONLY, default=None, annotation=AGENT_OPTIONS[n]) for n in names]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapper(**values: Any) -> None:
            from wakeloop.cli.agent_spec import parse_options

            given = parse_options(**{name: values.pop(name) for name in names})
            command(given=given, **values)

        parameters: list[Parameter] = []
        for parameter in signature(command).parameters.values():
            parameters += typed if parameter.name == "given" else [parameter]
        # typer reads the signature and the annotations of the wrapper, not those of the command
        wrapper.__dict__["__signature__"] = Signature(parameters)
        wrapper.__annotations__ = {one.name: one.annotation for one in parameters}
        return wrapper

    return decorate

"""The options of the command, as its help shows them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeloop.cli.output_formats import OutputFormat


def complete_thread(context: typer.Context, incomplete: str) -> list[str]:
    """The threads whose ids begin so, for a shell that completes."""
    from wakeloop.cli.store import DatabaseFile, open_to_read

    with suppress(Exception), open_to_read(DatabaseFile.of(context.params.get("db"))) as store:
        return [known.id for known in store.threads() if known.id.startswith(incomplete)]
    return []


Thread = Annotated[
    str,
    typer.Argument(
        metavar="THREAD",
        help="Id of the thread, as wakeloop threads shows it, or how it begins.",
        autocompletion=complete_thread,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a file that is there.")]
LastThread = Annotated[
    str | None,
    typer.Argument(
        metavar="THREAD",
        help="Id of the thread, or how it begins; else the last.",
        autocompletion=complete_thread,
    ),
]
ThreadOption = Annotated[
    str | None,
    typer.Option(
        "--thread",
        metavar="THREAD",
        help="Thread to continue, or the id of a new one.",
        autocompletion=complete_thread,
    ),
]
Db = Annotated[
    Path | None,
    typer.Option(
        "--db", envvar="WAKELOOP_DB", metavar="FILE", help="SQLite file of the threads.", readable=False
    ),  # what cannot be read is told where it is read
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
OutputOption = Annotated[
    OutputFormat | None,
    typer.Option(
        "--output",
        help="Lines; the final state as JSON; or each event as a line of JSON, and then the final state.",
    ),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the answer alone; what went wrong is on stderr.")
]
Model = Annotated[
    str | None,
    typer.Option(metavar="MODEL", help="openai:NAME, NAME or PROVIDER:NAME; else $WAKELOOP_MODEL."),
]
BaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of an OpenAI-like server; else $OPENAI_BASE_URL.")
]
System = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the system prompt.", readable=False)
]
Preset = Annotated[str | None, typer.Option(metavar="NAME", help="Named settings to begin with.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as max_wake_cycles=5; may be repeated."),
]
Root = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder that the tools are confined to; else the current one."),
]
Tools = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="files (the default), shell, MODULE:NAME for your own; none."),
]
Mcp = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="MCP servers to start, in a file like .mcp.json; none leaves them."),
]
Role = Annotated[
    str | None, typer.Option(metavar="NAME", help="Role from the configuration folder; null leaves it.")
]
Agent = Annotated[
    str | None, typer.Option(metavar="NAME", help="Agent file, which overrides all settings; null leaves it.")
]
MaxRequests = Annotated[
    str | None,
    typer.Option(metavar="N", help="Requests that a message may take; else 500; null is no limit."),
]
MaxTokens = Annotated[
    str | None, typer.Option(metavar="N", help="Tokens that a message may take, in and out; else no limit.")
]
MaxCost = Annotated[
    str | None,
    typer.Option(metavar="SUM", help="What a message may cost, by prices: in the configuration."),
]
MaxSeconds = Annotated[
    str | None,
    typer.Option(metavar="N", help="Seconds in model and tools that a message may take; else no limit."),
]
Verify = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND", help="Checks each item that is to be done: exit code 0 accepts it; none leaves it."
    ),
]
Todos = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The list to work through: a text a line, or .json or .yaml items.",
        readable=False,
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Run shell commands and MCP calls without asking for each.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--db", envvar="WAKELOOP_DB", metavar="FILE|URL", help="SQLite file of the threads, or postgresql://…"
    ),
]
Session = Annotated[str, typer.Argument(metavar="THREAD", help="AGENT:NAME, or NAME for the agent main.")]

AgentOptions = Mapping[str, Any]  # what was typed of an agent's options
AGENT_OPTIONS = {
    "model": Model,
    "base_url": BaseUrl,
    "system": System,
    "preset": Preset,
    "settings": Set,
    "root": Root,
    "tools": Tools,
    "mcp": Mcp,
    "role": Role,
    "agent": Agent,
    "max_requests": MaxRequests,
    "max_tokens": MaxTokens,
    "max_cost": MaxCost,
    "max_seconds": MaxSeconds,
    "verify": Verify,
}


def takes_agent_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put these options of an agent in the place of a command's `given`, which is what was typed."""
    typed = [Parameter(n, Parameter.KEYWORD_ONLY, default=None, annotation=AGENT_OPTIONS[n]) for n in names]

    def taking(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def taken(**values: Any) -> None:
            from wakeloop.cli.agent_spec import parse_options

            given = parse_options(**{name: values.pop(name) for name in names})
            command(given=given, **values)

        all_of_them = signature(command).parameters.values()
        shown = [new for old in all_of_them for new in (typed if old.name == "given" else [old])]
        taken.__dict__["__signature__"] = Signature(shown)
        taken.__annotations__ = {one.name: one.annotation for one in shown}
        return taken

    return taking

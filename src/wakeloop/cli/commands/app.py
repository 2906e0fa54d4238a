"""The wakeloop command line application."""

import signal
import sys
import warnings
from typing import Annotated

import typer

from wakeloop.cli.commands import session_commands as sessions
from wakeloop.cli.commands import thread_commands as threads
from wakeloop.cli.commands.bench_commands import bench
from wakeloop.cli.commands.console import CommandGroup, print_usage_error, replace_closed_streams
from wakeloop.cli.failures import INTERRUPTED, USAGE, format_error

app = typer.Typer(
    name="wakeloop",
    cls=CommandGroup,
    help="A LangGraph agent whose own todo list keeps it awake.",
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help starts four times as fast
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 settled, 1 failure, 2 wrong usage, 3 ended with open items, 4 waiting for an "
    "answer, 130 after Ctrl-C, 143 after SIGTERM.",
)
COMMANDS = [threads.init, threads.doctor, threads.run, threads.resume, threads.chat, threads.config]
COMMANDS += [threads.threads, threads.show, threads.todo, threads.report, threads.hold, threads.rm]
COMMANDS += [threads.rename, threads.export, threads.graph, threads.demo]
COMMANDS += [sessions.serve, sessions.send, sessions.ps, sessions.cron, sessions.drain]
for one in COMMANDS:
    app.command()(one)
app.add_typer(bench)


def print_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from importlib.metadata import version as version_of

        typer.echo(f"wakeloop {version_of('wakeloop')}")
        raise typer.Exit


@app.callback()
def wakeloop(
    context: typer.Context,
    show_version: Annotated[  # noqa: ARG001 - its callback exits
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A LangGraph agent whose own todo list keeps it awake."""
    if context.invoked_subcommand is None:
        threads.init()


def main() -> None:
    """Run the command line and exit with its code."""
    replace_closed_streams()
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # warnings of libraries are for developers
    try:
        code = app(standalone_mode=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:  # raised while printing help, outside every command
        sys.exit(f"wakeloop: {format_error(error)}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # not one of Typer's usage errors
            raise
        print_usage_error(error)
        code = USAGE
    if code == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process exits: another Ctrl-C has nothing to stop
    sys.exit(code)


if __name__ == "__main__":
    main()

"""Output of commands: lines, errors, help."""

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import typer
from typer.core import TyperGroup

from wakeloop.cli.failures import FAILED, INTERRUPTED, error_exit_code, format_error
from wakeloop.display.terminal_output import write_text

STDERR = 2  # file descriptor
SESSIONS_MODULES = ("dbos", "sqlalchemy", "croniter", "psycopg", "psycopg_pool")  # of the extra


@contextmanager
def report_errors() -> Iterator[None]:
    """Turn any error into one sentence on stderr and an exit code, never a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        os._exit(FAILED)  # the reader is gone: the run must not continue unseen
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        write_text(f"wakeloop: {explain_missing_module(error.name or 'a module')}", sys.stderr)
        raise typer.Exit(FAILED) from None
    except Exception as error:  # noqa: BLE001 - users get a sentence, whatever it is
        write_text(f"wakeloop: {format_error(error)}", sys.stderr)
        raise typer.Exit(error_exit_code(error)) from None


def replace_closed_streams() -> None:
    """Replace closed standard streams, so that no database is opened under their file descriptors.

    Raises `SystemExit` if stdout is closed: nobody would read the result.
    """
    none = os.open(os.devnull, os.O_RDWR)
    while none <= STDERR:
        none = os.open(os.devnull, os.O_RDWR)
    os.close(none)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - stays open until exit
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit("wakeloop: Standard output is closed, so nothing can be printed.")


def explain_missing_module(module: str) -> str:
    """Return a sentence that says what to install for a missing module."""
    if module.partition(".")[0] in SESSIONS_MODULES or module.startswith("langgraph.checkpoint.postgres"):
        return "This command needs the extra 'sessions'. Run: pip install 'wakeloop[cli,sessions]'"
    return f"The command line needs {module}. Run: pip install 'wakeloop[cli]'"


def print_lines(lines: Iterable[str], *, whole: bool = False) -> None:
    """Print lines to stdout; `whole` ones are for programs and never wrapped."""
    for line in lines:
        write_text(line, sys.stdout, whole=whole)


# -- help and usage errors --------------------------------------------------------------------------------


UNBROKEN = 10_000  # columns, wide enough that click breaks no line
TEXTS = ("REQUEST", "MESSAGE", "TEXT", "TEXT|ID")  # arguments that are text
ONE_VALUE = {  # options whose value is often typed as two
    "--tools": "Put commas between tools, as in --tools files,shell.",
    "--set": "Put = between a setting and its value, as in --set max_requests=100.",
}
OTHERWISE = {  # options of other programs, and what to use here
    "--api-key": "Set OPENAI_API_KEY.",
    "--thread": "Name the thread without it, as in wakeloop show THREAD.",
    "--temperature": "Write model_options: {temperature: 0} into config.yaml.",
}
OTHER_NAMES = {"ls": "threads", "list": "threads", "delete": "rm", "remove": "rm"}  # of other programs


class CommandGroup(TyperGroup):
    """A group of commands, which says how to run a request, and shows help by a word too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command. A request or the word `help` in its place gets what was meant."""
        if " " in args[0]:
            ctx.fail(f"To run a request: {ctx.command_path} run {quote(args[0])}")
        if args[0] == "help" and args[1:]:
            return self.resolve_command(ctx, [*args[1:], "--help"])
        if args[0] == "help":
            write_text(self.get_help(ctx), sys.stdout)
            ctx.exit()
        if (meant := OTHER_NAMES.get(args[0])) in self.commands:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)


def print_usage_error(error: Any) -> None:
    """Print what is wrong with the command line as typed."""
    context: Any = getattr(error, "ctx", None)
    if context:
        context.terminal_width = UNBROKEN
    message = io.StringIO()
    error.show(message)
    text = message.getvalue().rstrip("\n").replace("Value error, ", "")  # pydantic's prefix
    option = text.partition("No such option: ")[2].split(" ")[0]
    hint: str | None = None
    if context and option:
        hint = _find_option(option, context.command)
        text = text if hint is None else f"{text.partition(option)[0]}{option}"
    elif context:
        hint = _find_argument(text, context)
    write_text(text if hint is None else f"{text.rstrip('.')}. {hint}".rstrip(), sys.stderr)


def _find_argument(text: str, context: Any) -> str | None:
    """Return how the arguments were meant, if an error is about them."""
    if "Missing argument 'THREAD" in text:
        return f"List them with wakeloop {'ps' if context.info_name == 'send' else 'threads'}."
    if "unexpected extra argument" not in text:
        return None
    if context.info_name == "chat":
        return "Type messages at its prompt, or use wakeloop run."
    if not any(parameter.metavar in TEXTS for parameter in context.command.params):
        return ""
    given = (form for option, form in ONE_VALUE.items() if option in sys.argv)
    return next(given, "Put text with spaces in quotes.")


def _find_option(option: str, command: Any) -> str | None:
    """Return what to type instead of an option that a command does not have."""
    known = [name for parameter in command.params for name in parameter.opts]
    if "--set" in known:
        from wakeloop.settings import NUMERIC_SETTINGS, translate_word  # slow, and help needs none of it

        if setting := translate_word(option.removeprefix("--")):
            value = "N" if setting in NUMERIC_SETTINGS else "VALUE"
            own = f"--{setting.replace('_', '-')}"
            return f"Use {own} {value}." if own in known else f"Use --set {setting}={value}."
    for one in getattr(command, "commands", {}).values():
        if any(option in parameter.opts for parameter in one.params):
            return "It comes after the command."
    return OTHERWISE.get(option)

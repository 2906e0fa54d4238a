"""Output of commands: lines, errors, help."""

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from wakeloop.cli.failures import FAILED, INTERRUPTED, error_exit_code, format_error
from wakeloop.display.terminal_output import INDENT, find_width, wrap_text, write_text

STDERR = 2  # file descriptor
SESSIONS_MODULES = (
    "dbos",
    "sqlalchemy",
    "croniter",
    "psycopg",
    "psycopg_pool",
)  # of the extra


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


# -- help and usage errors that fit the terminal ---------------------------------------------------------


MAX_COLUMNS = 78  # longer lines are hard to read
UNBROKEN = 10_000  # columns, wide enough that click breaks no line
TERM = re.compile(r"(  \S.*?) {2,}(\S.*)")  # an option or a command, and its help
TEXTS = ("REQUEST", "MESSAGE", "TEXT", "TEXT|ID")  # arguments that are text
NO_TEXT = {  # commands that take no text, and where it belongs
    "chat": "Type messages at its prompt, or use wakeloop run.",
    "config": "It only shows the settings; wakeloop init writes them.",
}
ONE_VALUE = {  # options whose value is often typed as two
    "--tools": "Put commas between tools, as in --tools files,shell.",
    "--set": "Put = between a setting and its value, as in --set max_requests=100.",
}
OTHERWISE = {  # options of other programs, and what to use here
    "--api-key": "Set OPENAI_API_KEY.",
    "--thread": "Name the thread without it, as in wakeloop show THREAD.",
    "--temperature": "Write model_options: {temperature: 0} into config.yaml.",
}
OTHER_NAMES = {  # commands of other programs, and what they are called here
    "ls": "threads",
    "list": "threads",
    "delete": "rm",
    "remove": "rm",
}
TERM_INDENT = " " * 6  # indents the help below a term that fills its own line


class FittedCommand(TyperCommand):
    """A command whose help fits the terminal."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, wrapped to the terminal."""
        return fit_help(super().get_help, ctx, sys.stdout)


class FittedGroup(TyperGroup):
    """A group of commands whose help fits the terminal."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, wrapped to the terminal."""
        return fit_help(super().get_help, ctx, sys.stdout)

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


def fit_help(render: Callable[[Any], str], context: Any, out: TextIO) -> str:
    """Return help text, wrapped between words when it goes to a terminal."""
    if (columns := find_width(out)) is None:
        return render(context)
    context.terminal_width = UNBROKEN
    width = min(columns, MAX_COLUMNS)
    rows: list[str] = []
    for line in render(context).split("\n"):
        rows += wrap_help_line(line, width)
    return "\n".join(rows)


def wrap_help_line(line: str, width: int) -> Iterator[str]:
    """Wrap a line of help; the help of a term hangs next to it, or below it where the row is too narrow."""
    found = TERM.fullmatch(line)
    text = found[2] if found else line.lstrip()
    begins = len(line) - len(text)
    if begins <= width // 2:
        yield from wrap_text(line, width, hang=begins - 2 if found else 0 if begins else INDENT)
    else:
        yield from [found[1]] if found else []
        yield from wrap_text(TERM_INDENT + text, width, hang=0)


def print_usage_error(error: Any) -> None:
    """Print what is wrong with the command line as typed."""
    if context := getattr(error, "ctx", None):
        context.terminal_width = UNBROKEN
    message = io.StringIO()
    error.show(message)
    text = message.getvalue().rstrip("\n").replace("Value error, ", "")  # pydantic's prefix
    if "unexpected extra argument" in text:
        hint = NO_TEXT.get(error.ctx.info_name, "")
        if any(parameter.metavar in TEXTS for parameter in error.ctx.command.params):
            given = (form for option, form in ONE_VALUE.items() if option in sys.argv)
            hint = next(given, "Put text with spaces in quotes.")
        text += f". {hint}".rstrip()
    if "Missing argument 'THREAD" in text:
        lists = "ps" if error.ctx.info_name == "send" else "threads"
        text += f" List them with wakeloop {lists}."
    option = text.partition("No such option: ")[2].split(" ")[0]
    advice = OTHERWISE.get(option)
    known = [name for parameter in error.ctx.command.params for name in parameter.opts] if option else []
    if "--set" in known:
        from wakeloop.settings import NUMERIC_SETTINGS, translate_word  # slow, and help needs none of it

        if setting := translate_word(option.removeprefix("--")):
            value = "N" if setting in NUMERIC_SETTINGS else "VALUE"
            own = f"--{setting.replace('_', '-')}"
            advice = f"Use {own} {value}." if own in known else f"Use --set {setting}={value}."
    for command in getattr(error.ctx.command, "commands", {}).values() if option else ():
        if any(option in parameter.opts for parameter in command.params):
            advice = "It comes after the command."
    if advice:
        text = f"{text.partition(option)[0]}{option}. {advice}"
    write_text(text, sys.stderr)

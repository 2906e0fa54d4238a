"""Output of commands: lines, and one-sentence errors."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from wakeloop.cli.failures import FAILED, INTERRUPTED, error_exit_code, format_error
from wakeloop.display.terminal_output import write_text

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

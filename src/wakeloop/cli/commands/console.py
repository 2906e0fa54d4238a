"""What a person reads: lines, or one sentence of a failure."""

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from wakeloop.cli.failures import FAILED, INTERRUPTED, CommandError, error_exit_code, format_error
from wakeloop.display.terminal_output import write_text

STDERR = 2  # the last of the three numbers that a process begins with
SESSIONS_MODULES = ("dbos", "sqlalchemy", "croniter", "psycopg", "psycopg_pool")  # top modules of that extra


@contextmanager
def report_errors() -> Iterator[None]:
    """Whatever goes wrong: one sentence on stderr and an exit code, never a traceback."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        os._exit(FAILED)  # nobody reads any more: the run must not go on unseen
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except ModuleNotFoundError as error:
        write_text(f"wakeloop: {explain_missing_module(error.name or 'a module')}", sys.stderr)
        raise typer.Exit(FAILED) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the person gets a sentence
        write_text(f"wakeloop: {format_error(error)}", sys.stderr)
        raise typer.Exit(error_exit_code(error)) from None


class ClosedInput(io.TextIOBase):
    """Stands for an input that was closed before the command began."""

    def readable(self) -> bool:
        """It is asked like any other."""
        return True

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # noqa: ARG002
        """Refuse in a sentence."""
        raise CommandError("Standard input is closed: there is nothing to read from.")

    def read(self, size: int | None = -1, /) -> str:  # noqa: ARG002 - the interface's
        """Refuse in a sentence."""
        return self.readline()


def replace_closed_streams() -> None:
    """Put something in the place of closed streams, so that no database is opened as one of them.

    Raises `SystemExit` with a sentence where the output is closed: nobody would read what is done.
    """
    none = os.open(os.devnull, os.O_RDWR)
    while none <= STDERR:
        none = os.open(os.devnull, os.O_RDWR)
    os.close(none)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - to the end of the process
    if sys.stdin is None:
        sys.stdin = ClosedInput()
    if sys.stdout is None:
        sys.exit("wakeloop: Standard output is closed: there is nothing to write to.")


def explain_missing_module(module: str) -> str:
    """What to install for a module that is not there."""
    if module.partition(".")[0] in SESSIONS_MODULES or module.startswith("langgraph.checkpoint.postgres"):
        return "This command needs the extra sessions: pip install 'wakeloop[cli,sessions]'."
    return f"The command line needs {module}: pip install 'wakeloop[cli]'."


def print_lines(lines: Iterable[str], *, whole: bool = False) -> None:
    """Write lines to stdout, `whole` ones for a program."""
    for line in lines:
        write_text(line, sys.stdout, whole=whole)

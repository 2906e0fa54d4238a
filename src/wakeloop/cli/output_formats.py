"""Output formats: text, JSON, stream of JSON."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TextIO

from wakeloop.cli.failures import usage_error


class OutputFormat(StrEnum):
    """What stdout gets: lines for people, the final state, or every event and then the final state."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@dataclass(frozen=True)
class OutputOptions:
    """What stdout gets, and whether progress lines are left out; a quiet text run prints the answer alone."""

    format: OutputFormat = OutputFormat.TEXT
    quiet: bool = False
    data: TextIO | None = None  # where the data goes while stdout is kept for it

    @classmethod
    def from_flags(cls, output: OutputFormat | None, *, json: bool, quiet: bool) -> Self:
        """Read the flags; `--json` is short for `--output json`."""
        if json and output not in (None, OutputFormat.JSON):
            raise usage_error(f"--json means --output json: drop --json or --output {output}.")
        return cls(OutputFormat.JSON if json else output or OutputFormat.TEXT, quiet)

    @property
    def shows_progress(self) -> bool:
        """Whether the progress lines of a run go to stdout."""
        return self.format is OutputFormat.TEXT and not self.quiet


def at_a_terminal() -> bool:
    """Whether a person sees both outputs."""
    return sys.stderr.isatty() and sys.stdout.isatty()

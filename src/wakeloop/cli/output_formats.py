"""In what manner a run is told: to a person, to a program."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from wakeloop.cli.failures import usage_error


class OutputFormat(StrEnum):
    """What stdout gets: lines for a person, the final state, or each event and then the final state."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@dataclass(frozen=True)
class OutputOptions:
    """What stdout gets, and whether the lines of a run are left out; as text the answer alone is left."""

    format: OutputFormat = OutputFormat.TEXT
    quiet: bool = False

    @classmethod
    def from_flags(cls, output: OutputFormat | None, *, json: bool, quiet: bool) -> Self:
        """What was typed; `--json` is short for `--output json`."""
        if json and output not in (None, OutputFormat.JSON):
            raise usage_error(f"--json is --output json: leave one of --json and --output {output} out.")
        return cls(OutputFormat.JSON if json else output or OutputFormat.TEXT, quiet)

    @property
    def shows_progress(self) -> bool:
        """Whether the lines of a run are for stdout."""
        return self.format is OutputFormat.TEXT and not self.quiet


def at_a_terminal() -> bool:
    """Whether a person sees both outputs: what was begun is told already."""
    return sys.stderr.isatty() and sys.stdout.isatty()

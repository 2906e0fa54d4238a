"""In what manner a run is told: to a person, to a program."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from wakeloop.cli.failures import usage


class Output(StrEnum):
    """What stdout gets: lines for a person, the final state, or each event and then the final state."""

    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


@dataclass(frozen=True)
class Manner:
    """What stdout gets, and whether the lines of a run are left out; as text the answer alone is left."""

    output: Output = Output.TEXT
    quiet: bool = False

    @classmethod
    def of(cls, output: Output | None, *, json: bool, quiet: bool) -> Self:
        """What was typed; `--json` is short for `--output json`."""
        if json and output not in (None, Output.JSON):
            raise usage(f"--json is --output json: leave one of --json and --output {output} out.")
        return cls(Output.JSON if json else output or Output.TEXT, quiet)

    @property
    def watched(self) -> bool:
        """Whether the lines of a run are for stdout."""
        return self.output is Output.TEXT and not self.quiet


def at_a_terminal() -> bool:
    """Whether a person sees both outputs: what was begun is told already."""
    return sys.stderr.isatty() and sys.stdout.isatty()

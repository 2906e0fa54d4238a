"""The meaning of `--paths` for the tests and their helpers: see belts.py."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hypothesis import settings

LEVELS = ("one", "four", "all", "rest")
SHARE = {
    "one": 5,
    "four": 3,
    "all": 1,
    "rest": 1,
}  # a property runs one example in this many


class Level:
    """How many paths tests take; all of them outside a test run."""

    name = "all"
    belt = "real"  # of the current test

    @classmethod
    def whole(cls) -> bool:
        """Return whether bounds are at their largest and databases are files."""
        return cls.name in ("all", "rest")

    @classmethod
    def share(cls, number: int) -> int:
        """Return this level's share of the examples."""
        return max(number // SHARE[cls.name], 1)


def every_third(values: range) -> range:
    """Return all of them with the largest bounds, otherwise every third: odd and even ones alike."""
    return values if Level.whole() else values[::3]


def examples(number: int, **more: Any) -> settings:
    """Return the settings of a property with this many examples, or this level's share of them."""
    from hypothesis import settings

    return settings(max_examples=Level.share(number), **more)


def database(path: Path) -> str:
    """Return a SQLite database: in memory if the belt allows no file and the bounds are not the largest."""
    return str(path) if Level.whole() or Level.belt == "real" else ":memory:"

"""What `--paths` says, for the tests and their helpers: see belts.py."""

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
}  # one example in so many, of a property


class Level:
    """How many ways tests go; all, where none are run."""

    name = "all"
    belt = "real"  # of the test of this moment

    @classmethod
    def whole(cls) -> bool:
        """Whether bounds are at their largest, and databases files."""
        return cls.name in ("all", "rest")

    @classmethod
    def share(cls, number: int) -> int:
        """So many of these examples."""
        return max(number // SHARE[cls.name], 1)


def every_third(values: range) -> range:
    """All of them with the largest bounds, otherwise one of three: odd and even ones alike."""
    return values if Level.whole() else values[::3]


def examples(number: int, **more: Any) -> settings:
    """Settings of a property that is tried on so many examples, or on a share of them."""
    from hypothesis import settings

    return settings(max_examples=Level.share(number), **more)


def database(path: Path) -> str:
    """A database of SQLite: in memory where the belt holds no file and the bounds are not the largest."""
    return str(path) if Level.whole() or Level.belt == "real" else ":memory:"

"""Every captured request is checked after each test: rules 11 and 13 always hold."""

from collections.abc import Iterator
from typing import Any

import pytest
from stage import Make, Stage


@pytest.fixture
def stage() -> Iterator[Make]:
    """Make a thread under a preset: `stage("loki", {"max_wake_cycles": 3}, tools=[...])`."""
    made: list[Stage] = []

    def make(name: str, change: dict[str, Any] | None = None, **options: Any) -> Stage:
        made.append(Stage(name, change, **options))
        return made[-1]

    yield make
    for one in made:
        one.check()

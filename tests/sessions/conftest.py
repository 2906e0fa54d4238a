"""A host by both doors."""

from collections.abc import Callable

import pytest
from memory_host import MemoryHost


@pytest.fixture(params=["sync", "async"])
def host(request: pytest.FixtureRequest) -> MemoryHost:
    """An empty host whose agents are run by one door."""
    return MemoryHost(request.param)


Make = Callable[..., MemoryHost]

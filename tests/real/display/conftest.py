from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from chromium import PROGRAM, WITHOUT, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if PROGRAM is None:
        pytest.skip(WITHOUT)
    with chromium() as started:
        yield started

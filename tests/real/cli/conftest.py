from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from processes import serve, shell

__all__ = ["serve", "shell"]


@pytest.fixture
def files() -> Callable[[Path, int], None]:
    """Fill a folder with small files for the demo."""

    def fill(folder: Path, count: int) -> None:
        for number in range(count):
            (folder / f"part{number}.py").write_text(f"def part{number}():\n    return {number}\n")

    return fill

"""Agents run in a child that was forked while a thread computed what agents compute once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import forking
import pytest

pytestmark = pytest.mark.slow


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
@pytest.mark.parametrize(("how", "forks"), [("held", "2"), ("theirs", "1")])
def test_no_child_hangs(how: str, forks: str) -> None:
    command = [sys.executable, str(Path(forking.__file__)), how, forks]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "0 hung\n"

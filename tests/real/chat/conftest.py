from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from processes import serve, shell

__all__ = ["serve", "shell"]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of configuration."""
    folder: Any = tmp_path / "config"
    for name in ("roles", "agents"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setenv("WAKELOOP_CONFIG", str(folder))
    return folder

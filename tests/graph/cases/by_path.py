"""Every case through every door, without a saver and with each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rig import BARE, KEPT, PATHS, Rig
from whole import SETTINGS, Whole

from wakeloop import LoopSettings
from wakeloop.dialects import DIALECTS, register_dialect


def join_names(pair: tuple[str, str]) -> str:
    return "-".join(pair)


@pytest.fixture(params=PATHS, ids=join_names)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """An agent still to be built: four doors, each without a saver and with two."""
    yield from _rig(request.param, tmp_path)


@pytest.fixture(params=[("stream", "sqlite"), ("ainvoke", "memory")], ids=join_names)
def quick(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """Two of them, for tables with many rows."""
    yield from _rig(request.param, tmp_path)


@pytest.fixture(params=KEPT, ids=join_names)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """The same, on threads that a saver keeps."""
    yield from _rig(request.param, tmp_path)


@pytest.fixture(params=BARE, ids=join_names)
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """The same, without a saver: the caller carries the history."""
    yield from _rig(request.param, tmp_path)


def _rig(pair: tuple[str, str], path: Path) -> Iterator[Any]:
    rig = Rig(*pair, path / "threads.db")
    try:
        yield rig
        rig.send_second_message()
        rig.check()
    finally:
        rig.shut()


@pytest.fixture(autouse=True)
def whole() -> Iterator[None]:
    """An external dialect, registered until the rig has sent its second message."""
    register_dialect(Whole())
    yield
    del DIALECTS["whole"]


@pytest.fixture
def replacing() -> LoopSettings:
    """The settings of an agent whose only todo tool sends the whole list."""
    return SETTINGS.model_copy(update={"dialect": "whole"})

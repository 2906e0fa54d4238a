"""The command over a database that an earlier version's command has made."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from old_command import REPLIES, resumed, stood
from words import in_todays_shape, in_todays_words

pytestmark = pytest.mark.loopback
FILES = sorted(Path(__file__).parent.glob("*/command.json"))


@pytest.fixture(params=FILES, ids=[file.parent.name for file in FILES])
def figures(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """What the command of its time showed; the database is the one of the environment."""
    database = tmp_path / "threads.sqlite"
    database.write_bytes(gzip.decompress(request.param.with_suffix(".sqlite.gz").read_bytes()))
    monkeypatch.setenv("WAKELOOP_DB", str(database))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    return json.loads(request.param.read_text(encoding="utf-8"))


def test_it_shows_old_threads(figures: dict) -> None:
    assert stood() == in_todays_shape(figures["stood"])


@pytest.mark.parametrize("thread", REPLIES)
def test_an_old_thread_is_resumed(figures: dict, thread: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "flag").touch()  # the command that was killed is quick this time
    expected = in_todays_words(figures["brought"][thread], "wakeloop")
    if thread == "ended":  # what begins today earns a wake for each item that it settles
        expected["out"]["session"]["budget"] += 2
    assert resumed(thread, root) == expected
    assert not (root / "a.txt").exists()  # written once, before

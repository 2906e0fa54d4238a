"""Threads outlive releases: what earlier versions have stored is read, and goes on, as it did with them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from old_agents import Row, continued
from words import in_todays_words

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.glob("*/*.json") if path.stem != "command")
EARNED = {  # by those of the first preset that go on with an activation of today: for the items it settles
    "not activated": 1,
    "edited": 3,
    "refused": 1,
    "refused later": 1,
    "trimmed, idle": 1,
    "idle": 2,
    "parked, left": 1,
    "in a round, left": 2,
}


@cache
def figures(file: Path) -> Row:
    """What the code that wrote a database read from its threads, and how they went on with it."""
    return dict(json.loads(file.read_text(encoding="utf-8")))


THREADS = [
    pytest.param(file, place, id=f"{file.parent.name}-{file.stem}-{story['thread'].replace(' ', '_')}")
    for file in FILES
    for place, story in enumerate(figures(file)["threads"])
]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Any]:
    """The databases by their figures' file, as bytes."""
    return {file: gzip.decompress(file.with_suffix(".sqlite.gz").read_bytes()) for file in FILES}


@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize(("file", "place"), THREADS)
def test_an_old_thread_reads_and_goes_on(
    file: Path, place: int, door: str, unpacked: dict[Path, bytes], tmp_path: Path
) -> None:
    story = figures(file)["threads"][place]
    database = tmp_path / "threads.sqlite"
    database.write_bytes(unpacked[file])
    stood, brought = continued(database, story, door)
    assert stood == in_todays_words(story["stood"], story["preset"])
    expected = in_todays_words(story["brought"], story["preset"])
    if story["preset"] == "wakeloop" and story["thread"] in EARNED:
        expected["reads"]["session"]["budget"] += EARNED[story["thread"]]
    if expected["requests"]:
        first = brought["requests"][0]["then"]
        assert first[0] == in_todays_words(figures(file)["system"], story["preset"])
        first[0] = "the system prompt"
    for name in ("walk", "ran", "sent", "requests"):
        assert brought[name] == expected[name]
    assert brought["reads"] == expected["reads"]
    assert not [call for call in brought["ran"] if call.startswith("edit") and call in story["finished"]]

"""The pictures of the command in a terminal match what it shows there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pictures import ANEW, FOLDER
from processes import Shell
from terminals import chat, run, words

pytestmark = [
    pytest.mark.loopback,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@pytest.mark.slow
@pytest.mark.parametrize("play", [run, chat])
def test_the_pictures_in_the_docs_are_what_a_terminal_shows(
    play: Callable[[Shell], Any], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    for name, picture in play(Shell(tmp_path / "folder", tmp_path / "threads.sqlite")):
        kept = (FOLDER / f"{name}.svg").read_text()
        assert words(picture) == words(kept), ANEW
        assert picture.count("<text") == kept.count("<text"), ANEW  # as many pieces: the same colours

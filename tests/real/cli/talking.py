"""Conversations on a stored thread, in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.dots import DOTS
from wakeloop.cli.chat.lines import Command, read
from wakeloop.cli.recipe import options
from wakeloop.cli.recipe_builder import build_recipe
from wakeloop.cli.store import Place, writing


@contextmanager
def talks(root: Path) -> Iterator[Callable[..., Conversation]]:
    """What begins a conversation with options; each is over afterwards."""
    with ExitStack() as opened:

        def begin(*settings: str, **more: Any) -> Conversation:
            recipe = build_recipe(None, options(settings=settings, root=root, **{"model": "m", **more}))
            place = Place(root / "threads.sqlite", named=True)
            talk = Conversation(place, opened.enter_context(writing(place)), "", recipe)
            opened.push(talk.held)
            talk.hold("mine")
            return talk

        yield begin


def does(talk: Conversation, line: str) -> list[str]:
    command = read(line)
    assert isinstance(command, Command)
    return list(DOTS[command.name](talk, command))

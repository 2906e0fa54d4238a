"""Conversations on a stored thread, in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wakeloop.cli.agent_spec import parse_options
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.dot_commands import COMMANDS, Command, parse_entry
from wakeloop.cli.spec_builder import build_spec
from wakeloop.cli.store import DatabaseFile, open_to_write


@contextmanager
def talks(root: Path) -> Iterator[Callable[..., Conversation]]:
    """A function that begins a conversation with options; each is over afterwards."""
    with ExitStack() as opened:

        def begin(*settings: str, **more: Any) -> Conversation:
            spec = build_spec(None, parse_options(settings=settings, root=root, **{"model": "m", **more}))
            database = DatabaseFile(root / "threads.sqlite", named=True)
            talk = Conversation(database, opened.enter_context(open_to_write(database)), "", spec)
            opened.push(talk.held_thread)
            talk.hold("mine")
            return talk

        yield begin


def does(talk: Conversation, line: str) -> list[str]:
    command = parse_entry(line)
    assert isinstance(command, Command)
    does = COMMANDS[command.name][2]
    assert does is not None
    return list(does(talk, command))

"""Commands of other programs, and what typed keys add up to."""

from __future__ import annotations

import pytest
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress

from wakeloop.cli.chat.dot_commands import Command, parse_entry
from wakeloop.cli.chat.input import keys_to_text


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("exit", Command("exit")),
        ("Quit", Command("exit")),
        ("quit  ", Command("exit")),
        ("/exit", Command("exit")),
        ("/quit", Command("exit")),
        (".quit", Command("exit")),
        ("help", Command("help")),
        ("/help", Command("help")),
        ("/todo", Command("todo")),
        ("/todo add x y", Command("todo", "add x y")),
        ("/set max_wake_cycles 5", Command("set", "max_wake_cycles 5")),
        ("/exit role", Command("role", "null")),
        (" exit", "exit"),
        ("exit the building", "exit the building"),
        ("help me", "help me"),
        ("todo", "todo"),
        ("set the table", "set the table"),
        ("/etc/hosts", "/etc/hosts"),
        ("/etc", "/etc"),
        ("/tmp holds what?", "/tmp holds what?"),
        ("/", "/"),
        ("?", "?"),
    ],
)
def test_the_command_that_was_meant(typed: str, meant: str | Command) -> None:
    assert parse_entry(typed) == meant


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("one\rtwo", "one ⏎ two"),
        ("one\ntwo", "one ⏎ two"),
        ("onn\x7fe", "one"),
        ("one\r\x7f\x7f", "on"),
        ("\x7f", ""),
        ("a\x1b[Db\t", "ab"),
        ("\x1b[200~pasted\nlines\x1b[201~", "pasted\nlines"),
    ],
)
def test_what_typed_keys_add_up_to(typed: str, text: str) -> None:
    keys: list[KeyPress] = []
    Vt100Parser(keys.append).feed(typed)
    assert keys_to_text(keys) == text

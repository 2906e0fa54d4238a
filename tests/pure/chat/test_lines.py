"""What a typed line means, without a terminal."""

from __future__ import annotations

import pytest

from wakeloop.cli.chat.dot_commands import (
    COMMANDS,
    Command,
    describe_value,
    help_lines,
    is_unclosed,
    parse_entry,
    parse_todo_edit,
    remove_value,
    set_value,
)
from wakeloop.cli.chat.input import complete
from wakeloop.cli.failures import CommandError
from wakeloop.errors import SettingsError
from wakeloop.presets import preset
from wakeloop.settings import LoopSettings


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("hello\n", "hello"),
        ("  .gitignore lacks a line", ".gitignore lacks a line"),
        ("... and so on", "... and so on"),
        (".5 is half", ".5 is half"),
        (".env: what is in it?", ".env: what is in it?"),
        ('"""\nfirst\n\nlast\n"""\n', "first\n\nlast"),
        ('"""one line"""', "one line"),
        ("two\nlines", "two\nlines"),
        (".exit", Command("exit")),
        (".EXIT  ", Command("exit")),
        (".set nag_after 3\n", Command("set", "nag_after 3")),
        (".set  continuation_prompt  Go on.  Now. ", Command("set", "continuation_prompt  Go on.  Now.")),
        (".todo add one\ntwo", Command("todo", "add one\ntwo")),
    ],
)
def test_a_line_is_text_or_a_command(typed: str, meant: str | Command) -> None:
    assert parse_entry(typed) == meant


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (".sett x", "Unknown command .sett. Did you mean .set?"),
        (".whatnow", "Unknown command .whatnow. See .help."),
        (".gitignore", "Unknown command .gitignore."),
    ],
)
def test_an_unknown_command_suggests_the_nearest(typed: str, says: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_entry(typed)
    assert str(refused.value).startswith(says)


@pytest.mark.parametrize(
    ("typed", "more"),
    [
        ('"""', True),
        ('"""\na\n', True),
        ('"""a"""', False),
        ('"""\na\n"""\n', False),
        ("a", False),
        ("", False),
    ],
)
def test_several_lines_stay_open_until_they_are_closed(typed: str, more: bool) -> None:
    assert is_unclosed(typed) is more


def test_every_command_is_in_the_help_and_does_something() -> None:
    told_of = "\n".join(help_lines())
    assert all(f".{name}" in told_of for name in COMMANDS)
    assert {name for name, (*_, does) in COMMANDS.items() if does is None} == {"exit", "go", "resume"}


@pytest.mark.parametrize(
    ("rest", "edit"),
    [
        ("", {}),
        ("list", {}),
        ("add read the appendix", {"add": ["read the appendix"]}),
        ("add one\n two \n\nthree", {"add": ["one", "two", "three"]}),
        ("done 1 2", {"done": ["1", "2"]}),
        ("start 3", {"start": ["3"]}),
        ("cancel 1", {"cancel": ["1"]}),
        ("reopen 1", {"reopen": ["1"]}),
        ("remove 1", {"remove": ["1"]}),
        ("block 2 no access before Monday", {"block": {"2": "no access before Monday"}}),
        ("edit 2 a new text", {"edit": {"2": "a new text"}}),
        ("clear", {"clear": True}),
    ],
)
def test_edits_of_the_list(rest: str, edit: dict[str, object]) -> None:
    assert parse_todo_edit(rest) == edit


@pytest.mark.parametrize(
    ("rest", "says"),
    [
        ("fly", "Unknown action 'fly'. Available: add, done"),
        ("add", ".todo add needs the text of each item"),
        ("done", ".todo done needs the id of an item"),
        ("block 2", ".todo block needs an id and a reason."),
        ("clear all", ".todo clear takes no arguments, got 'all'."),
    ],
)
def test_wrong_edits_are_refused_in_one_sentence(rest: str, says: str) -> None:
    with pytest.raises(CommandError) as refused:
        parse_todo_edit(rest)
    assert str(refused.value).startswith(says)


# -- .set ------------------------------------------------------------------------------------------------

BASE = LoopSettings()


@pytest.mark.parametrize(
    ("own", "key", "text", "new"),
    [
        ({}, "max_wake_cycles", "3", {"max_wake_cycles": 3}),
        ({}, "max_auto_continues", "3", {"max_wake_cycles": 3}),
        ({"nag_after": 1}, "auto_continue", "false", {"nag_after": 1, "auto_continue": False}),
        ({}, "auto_continue", "False", {"auto_continue": False}),
        ({}, "nag_when", "always", {"nag_when": "always"}),
        ({}, "continuation_prompt", "Go on, please.", {"continuation_prompt": "Go on, please."}),
        ({}, "continuation_prompt", '"in quotes"', {"continuation_prompt": "in quotes"}),
        ({}, "continuation_prompt", "5", {"continuation_prompt": "5"}),
        ({}, "continuation_prompt", "null", {"continuation_prompt": None}),
        ({"nag_after": 1, "nag_every": 2}, "nag_after", "null", {"nag_every": 2}),
        ({"max_auto_continues": 1}, "max_wake_cycles", "null", {}),
        ({}, "nag_after", "null", {}),
        ({}, "max_wake_cycles", "25", {"max_wake_cycles": 25}),
        ({}, "prompts", '{"nudge": "Go on:\\n$list"}', {"prompts": {"nudge": "Go on:\n$list"}}),
    ],
)
def test_set_merges_a_value_or_removes_it(
    own: dict[str, object], key: str, text: str, new: dict[str, object]
) -> None:
    before = dict(own)
    assert set_value(BASE, own, key, text) == new
    assert own == before


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("max_wake_cycle", "3", "Unknown setting 'max_wake_cycle'. Did you mean 'max_wake_cycles'?"),
        ("max_wake_cycles", "many", "Setting 'max_wake_cycles' must be a number, got 'many'"),
        ("max_wake_cycles", "-1", "Setting 'max_wake_cycles' must be greater than or equal to 0, got -1"),
        ("dialect", "loki", "'dialect' is fixed in a thread"),
        ("max_items", "3", "'max_items' is fixed in a thread"),
        ("model", "m", "'model' cannot be set in a thread"),
        ("prompts", '{"instructions": "x"}', "Prompt 'instructions' is fixed when the agent is built"),
        ("prompts", '{"nudge": "$nothing"}', "Prompt 'nudge' has an unknown blank $nothing"),
    ],
)
def test_set_refuses_in_one_sentence(key: str, text: str, says: str) -> None:
    with pytest.raises((SettingsError, CommandError)) as refused:
        set_value(BASE, {}, key, text)
    assert str(refused.value).startswith(says)


def test_null_over_a_string_in_the_base_and_unset() -> None:
    base = LoopSettings(continuation_prompt="Go.")
    own = set_value(base, {}, "continuation_prompt", "null")
    assert own == {"continuation_prompt": None}
    assert describe_value(base, own, "continuation_prompt") == (
        'continuation_prompt is null in this thread (default: "Go.").'
    )
    assert remove_value(own, "continuation_prompt") == {}
    assert describe_value(base, {}, "continuation_prompt") == (
        'continuation_prompt is "Go."; this thread does not override it.'
    )


def test_set_over_loki() -> None:
    own = set_value(preset("loki"), {}, "auto_continue", "true")
    assert own == {"auto_continue": True}


# -- completion ------------------------------------------------------------------------------------------

THERE = {
    "roles": ["coder", "clerk"],
    "agents": ["ant"],
    "threads": ["t-1", "mine"],
    "items": ["1", "12", "2"],
}


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("", []),
        ("hel", []),
        (".se", [".session", ".set"]),
        (".set max_a", ["max_auto_continues"]),
        (".set max_r", ["max_requests"]),
        (
            ".set max_",
            [
                "max_auto_continues",
                "max_context",
                "max_cost",
                "max_idle_rounds",
                "max_idle_wakes",
                "max_requests",
                "max_seconds",
                "max_tokens",
                "max_wake_cycles",
            ],
        ),
        (".set dia", []),
        (".set auto_continue ", ["false", "null", "true"]),
        (".set nag_when a", ["always"]),
        (".set nag_after ", ["null"]),
        (".set nothing ", []),
        (".set nag_after 3 ", []),
        (".unset nag_e", ["nag_every"]),
        (".clear ", ["todo"]),
        (".info c", ["config"]),
        (".todo re", ["remove", "reopen"]),
        (".todo done 1", ["1", "12"]),
        (".todo done 1 ", ["1", "12", "2"]),
        (".todo block ", ["1", "12", "2"]),
        (".todo block 1 ", []),
        (".todo add ", []),
        (".role c", ["clerk", "coder"]),
        (".agent ", ["ant", "none"]),
        (".session ", ["mine", "t-1"]),
        (".exit ", ["agent", "role"]),
    ],
)
def test_tab_offers_what_fits_there(before: str, offered: list[str]) -> None:
    assert complete(before, lambda: THERE) == offered

"""Settings, presets, precedence."""

import re
from pathlib import Path
from typing import Any, TypedDict

import pytest
from agents import END, START, TODO, UNASKED, WAKE, Make, done, session, settings, write
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from wakeloop import InputError, LoopSettings, SettingsError, preset
from wakeloop.loop.overrides import apply_overrides, check_overrides
from wakeloop.settings import PRESET_SETTINGS
from wakeloop.testing import calls

FIXED: dict[str, Any] = {"dialect": "parley", "tool_description": "x", "max_items": 3, "in_progress": "any"}
QUIET = {"guard_retries": 0}
ALONE = {"max_idle_wakes": 0, **QUIET, **UNASKED}


def test_every_setting_is_documented() -> None:
    for name, field in LoopSettings.model_fields.items():
        assert field.description, name
        assert "\n" not in field.description


def test_settings_are_frozen_and_hashable() -> None:
    base = LoopSettings()
    assert base == preset("wakeloop")
    with pytest.raises(Exception, match="frozen"):
        base.max_wake_cycles = 3  # type: ignore[misc]
    assert hash(base) == hash(LoopSettings())
    assert hash(settings(max_items=3)) != hash(base)


@pytest.mark.parametrize(
    "make",
    [
        LoopSettings,
        lambda **v: LoopSettings().model_copy(update=v),
        lambda **v: LoopSettings.model_validate(v),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_right_name(make: Any) -> None:
    with pytest.raises(SettingsError, match=re.escape("Unknown setting 'max_wakes'. Did you mean 'max_")):
        make(max_wakes=3)
    with pytest.raises(SettingsError, match="Available: dialect, auto_continue"):
        make(qqqqq=3)


def test_a_copy_is_validated_and_leaves_the_original() -> None:
    base = LoopSettings()
    assert base.model_copy(update={"max_items": None}).max_items is None
    assert base.max_items == 200
    assert base.model_copy() == base


# -- overrides -------------------------------------------------------------------------------------------


def test_only_differences_are_kept() -> None:
    base = settings(max_wake_cycles=7)
    assert check_overrides(base, {}) == {}
    assert check_overrides(base, {"max_wake_cycles": 7, "nag_after": 2}) == {"nag_after": 2}


def test_prompts_are_merged_one_by_one() -> None:
    base = settings(prompts={"nudge": "N $list", "nag": "A"})
    kept = check_overrides(base, {"prompts": {"nag": "B"}})
    assert apply_overrides(base, kept).prompts == {"nudge": "N $list", "nag": "B"}


@pytest.mark.parametrize("name", FIXED)
def test_settings_that_may_not_be_overridden_in_a_thread(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        check_overrides(LoopSettings(), {name: FIXED[name]})


@pytest.mark.parametrize(
    "overrides", [3, [], "x", {"prompts": {"instructions": "x"}}, {"prompts": {"no": "x"}}, {"nag_after": -1}]
)
def test_wrong_overrides(overrides: Any) -> None:
    with pytest.raises(SettingsError):
        check_overrides(LoopSettings(), overrides)


def stalled(wakes: int, budget: int) -> dict[str, Any]:
    return session("idle", "wake_budget", 1, wakes, budget)


def test_a_threads_settings_hold_until_an_input_replaces_or_clears_them(thread: Make) -> None:
    agent = thread(write("a"), *["."] * 20, left=True, change={"max_wake_cycles": 3, **ALONE})
    agent.run({"messages": [("user", "go")], "todo_settings": {"max_wake_cycles": 1}})
    assert agent.session == stalled(1, 1)
    agent.run("more")
    assert agent.session == stalled(1, 1)
    agent.run({"messages": [("user", "more")], "todo_settings": {"nag_after": 2}})
    assert agent.session == stalled(3, 3)
    agent.run({"messages": [("user", "more")], "todo_settings": {"max_wake_cycles": 2}})
    agent.run({"messages": [("user", "more")], "todo_settings": {}})
    assert agent.session == stalled(3, 3)
    assert agent.values["todo_settings"] == {}


class Context(TypedDict, total=False):
    """What a caller knows."""

    todo_settings: dict[str, Any]
    user: str


def test_a_context_outranks_the_channel_field_by_field(thread: Make) -> None:
    agent = thread(write("a"), *["."] * 20, left=True, change=ALONE)
    own = {"max_wake_cycles": 3, "nudge_items": 9}
    agent.run(
        {"messages": [("user", "go")], "todo_settings": own},
        context={"todo_settings": {"max_wake_cycles": 2, "nag_after": 7}},
    )
    assert agent.session == stalled(2, 2)
    noted = agent.values["todo_ledger"]["settings"]
    assert noted == {"max_wake_cycles": 2, "nudge_items": 9, "nag_after": 7}
    assert agent.values["todo_settings"] == own
    agent.run("go")  # the thread's own are back
    assert agent.session == stalled(3, 3)


def test_a_resume_continues_with_its_activations_settings(thread: Make) -> None:
    def ask(question: str) -> str:
        """Ask."""
        return str(interrupt(question))

    agent = thread(
        write("a"),
        calls(("ask", {"question": "?"})),
        *["."] * 9,
        tools=[ask],
        left=True,
        context_schema=Context,
        change={"max_idle_wakes": 0, **QUIET},
    )
    agent.run("go", context={"todo_settings": {"max_wake_cycles": 2}})
    agent.run(Command(resume="y"))
    assert agent.session == stalled(2, 2)


RESULT = {"todo_inbox": [{"kind": "subagent_done", "id": "s", "text": "found"}]}


@pytest.mark.parametrize(
    ("given", "walked", "wakes"),
    [
        ({}, ["activate", "finalization_guard"], (1, 1)),
        ({"todo_settings": {"max_wake_cycles": 2}}, [*START, *END], (2, 2)),
        ({"todo_settings": {}}, [*START, *WAKE, *END], (3, 3)),  # cleared: the agent's own
    ],
    ids=["as it began", "raised", "cleared"],
)
def test_a_subagents_result_continues_with_its_activations_settings(
    given: Any, walked: Any, wakes: Any, thread: Make
) -> None:
    agent = thread(
        write("a"),
        *["."] * 9,
        left=True,
        context_schema=Context,
        change={"max_wake_cycles": 3, "max_idle_wakes": 0, **QUIET},
    )
    agent.run("go", context={"todo_settings": {"max_wake_cycles": 1}})
    assert agent.walk({**RESULT, **given}) == walked
    assert agent.session == stalled(*wakes)


def test_an_interrupted_activation_resumes_with_the_settings_it_began_with(thread: Make) -> None:
    """Even if its thread, or its base, earns no wakes."""
    for own in ({}, {"earn_wakes": 0}):
        for todo_settings in ({}, {"earn_wakes": 0}):
            saver = InMemorySaver()
            begun = {"messages": [("user", "go")], "todo_settings": todo_settings}
            thread(write("a", "b"), ".", saver=saver, change=own).run(begun, interrupt_before=["wake"])
            agent = thread(done(1), *".......", saver=saver, change=own)
            agent.run(None)
            assert agent.session == session("idle", "stalled", 1, 6, 25 if own or todo_settings else 26)


def test_settings_are_read_only_at_the_start_of_an_activation(thread: Make) -> None:
    agent = thread(
        write("a"),
        OSError("no network"),
        *["."] * 9,
        left=True,
        change={"max_wake_cycles": 2, **ALONE},
    )
    with pytest.raises(OSError, match="no network"):
        agent.run("go")
    agent.graph.update_state(agent.at(), {"todo_settings": {"max_wake_cycles": 1}}, as_node="wake")
    agent.run(None)
    assert agent.session == stalled(2, 2)
    agent.run("more")
    assert agent.session == stalled(1, 1)


def test_auto_continue_may_be_switched_off_in_a_thread(thread: Make) -> None:
    agent = thread(write("a"), ".", ".", done(1), "bye")
    assert agent.walk({"messages": [("user", "go")], "todo_settings": {"auto_continue": False}}) == [
        *START,
        *TODO,
        *END,
    ]
    assert agent.walk({"messages": [("user", "go")], "todo_settings": {}}) == [*START, *WAKE, *TODO, *END]


def test_a_tools_description_may_be_replaced(thread: Make) -> None:
    agent = thread("hi", change={"tool_description": "Mine."})
    agent.run("go")
    described = {tool["function"]["name"]: tool["function"]["description"] for tool in agent.model.bound[0]}
    assert described["todo_write"] == "Mine."
    assert described["todo_update"] != "Mine."


PROMPTS = {
    "nudge": "NUDGE $open $total\n$list",
    "correction": "CORRECT $open\n$list",
    "explain": "EXPLAIN $open\n$list",
    "nag": "NAG $rounds $open",
    "instructions": "INSTRUCT",
    "cut_reply": "GO ON",
    "cut_call": "Error: CUT",
}


def test_every_prompt_may_be_replaced(thread: Make) -> None:
    agent = thread(
        write("a"),
        calls(("todo_list", {})),
        calls(("todo_list", {}), finish_reason="length"),
        ".",
        ".",
        ".",
        "why",
        change={"prompts": PROMPTS, "nag_after": 1, "max_wake_cycles": 1, "on_guard_exhausted": "block"},
        left=True,
    )
    agent.run("go")
    sent = "\n".join(m.text for m in agent.model.requests[-1])
    for words in (
        "INSTRUCT",
        "NAG 1 1",
        "Error: CUT",
        "NUDGE 1 1\n  [1] a",
        "CORRECT 1\n  [1] a",
        "EXPLAIN 1\n  [1] a",
    ):
        assert words in sent


@pytest.mark.parametrize(
    "prompts", [{"nudge": "no list at all"}, {"nag": "${rounds} of $$5"}, {"activate": ""}]
)
def test_a_replaced_prompt_may_leave_blanks_out(prompts: dict[str, str]) -> None:
    assert settings(prompts=prompts).prompts == prompts


@pytest.mark.parametrize("key", ["max_items", "in_progress"])
def test_a_fixed_setting_in_a_thread_is_refused_before_the_first_request(key: str, thread: Make) -> None:
    agent = thread()
    with pytest.raises(InputError, match=key):
        agent.run({"messages": [("user", "go")], "todo_settings": {key: FIXED[key]}})


def test_the_settings_page_names_every_setting() -> None:
    page = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()
    missing = [name for name in LoopSettings.model_fields if f"`{name}`" not in page]
    assert missing == []


@pytest.mark.parametrize("key", [key for key, value in LoopSettings() if type(value) is int])
def test_a_number_that_no_checkpoint_can_hold_is_refused(key: str) -> None:
    assert getattr(settings(**{key: 2**53}), key) == 2**53
    with pytest.raises(SettingsError, match=key):
        settings(**{key: 2**64})


def test_the_settings_page_says_who_changes_each_setting() -> None:
    page = (Path(__file__).parents[3] / "docs" / "settings.md").read_text()
    who = page.partition("## Who changes what")[2].partition("## ")[0]
    assert set(re.findall(r"`(\w+)`", who)) == set(LoopSettings.model_fields)
    presets_only = who.partition("**Only presets:**")[2]
    assert set(re.findall(r"`(\w+)`", presets_only)) == PRESET_SETTINGS

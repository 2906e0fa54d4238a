"""Which level overrides which: every pair of levels, agent files, invalid files."""

from itertools import combinations
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from wakeloop import LoopSettings, SettingsError, create_todo_agent, preset
from wakeloop.config.levels import (
    Level,
    config_folder,
    is_thread_setting,
    list_names,
    read_agent,
    read_global_levels,
    read_role,
    resolve_levels,
)
from wakeloop.loop.overrides import check_overrides
from wakeloop.settings import AgentFileSettings
from wakeloop.testing import ScriptedModel, calls, says

VALUES = {"config file": 11, "environment": 12, "role": 13, "base": 14, "thread": 15}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("roles", "agents"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("WAKELOOP_CONFIG", str(tmp_path))
    return tmp_path


def set_level(folder: Path, level: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one level set `max_wake_cycles`."""
    match level:
        case "config file":
            (folder / "config.yaml").write_text(f"max_wake_cycles: {value}\n")
        case "environment":
            monkeypatch.setenv("WAKELOOP_MAX_WAKE_CYCLES", str(value))
        case "role":
            (folder / "roles" / "r.md").write_text(f"---\nmax_wake_cycles: {value}\n---\nYou are r.\n")


def budget(folder: Path, speaking: tuple[str, ...]) -> int:
    """Run a thread under the levels, and return the budget that its activation had."""
    levels = read_global_levels(folder)
    if "role" in speaking:
        levels.append(read_role(folder, "r"))
    if "base" in speaking:
        levels.append(Level("base", "--set", {"max_wake_cycles": VALUES["base"]}))
    agent = create_todo_agent(ScriptedModel([says("hi")]), settings=resolve_levels(levels).settings)
    given = {"todo_settings": {"max_wake_cycles": VALUES["thread"]}} if "thread" in speaking else {}
    result = agent.invoke({"messages": [("user", "hi")], **given})
    return int(result["todo_session"]["budget"])


def test_built_in_values_are_the_lowest_level(folder: Path) -> None:
    assert budget(folder, ()) == 25


@pytest.mark.parametrize(("lower", "higher"), list(combinations(VALUES, 2)))
def test_the_higher_of_two_levels_wins(
    lower: str, higher: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for level in (lower, higher):
        set_level(folder, level, VALUES[level], monkeypatch)
    assert budget(folder, (lower, higher)) == VALUES[higher]


def test_levels_override_field_by_field(folder: Path) -> None:
    (folder / "config.yaml").write_text("max_wake_cycles: 7\nnag_after: 9\nmodel: m\n")
    (folder / "roles" / "r.md").write_text("---\nnag_after: 2\n---\nYou are r.\n")
    held = resolve_levels([*read_global_levels(folder), read_role(folder, "r")])
    assert (held.settings.max_wake_cycles, held.settings.nag_after) == (7, 2)
    assert (held.get("model"), held.get("system_prompt"), held.get("tools")) == ("m", "You are r.", None)
    assert held.values["nag_after"].level == "role"
    assert held.values["nag_after"].source == str(folder / "roles" / "r.md")
    assert held.values["max_wake_cycles"].level == "global"
    assert held.values["nag_every"].level == "built-in"


def test_a_named_preset_ranks_below_what_its_level_sets_explicitly(folder: Path) -> None:
    (folder / "config.yaml").write_text("preset: lesson\nnag_after: 4\n")
    held = resolve_levels(read_global_levels(folder))
    assert (held.settings.dialect, held.settings.nag_after, held.settings.nag_every) == ("checklist", 4, 1)
    assert held.values["nag_after"].explicit
    assert not held.values["nag_every"].explicit


def test_loki_names_are_accepted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "config.yaml").write_text("max_auto_continues: 3\n")
    assert resolve_levels(read_global_levels(folder)).settings.max_wake_cycles == 3
    monkeypatch.setenv("WAKELOOP_MAX_AUTO_CONTINUES", "4")
    assert resolve_levels(read_global_levels(folder)).settings.max_wake_cycles == 4
    assert LoopSettings.model_validate({"max_auto_continues": 5}).max_wake_cycles == 5
    with pytest.raises(SettingsError, match="'max_wake_cycles' is given twice"):
        LoopSettings.model_validate({"max_auto_continues": 5, "max_wake_cycles": 5})


def test_an_agent_file_overrides_everything(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in ("config file", "environment", "role"):
        set_level(folder, level, VALUES[level], monkeypatch)
    (folder / "agents" / "a.yaml").write_text(
        "model: m\ntools: [files]\nsystem_prompt: Be a.\npreset: loki\nsettings:\n  auto_continue: true\n"
    )
    levels = [*read_global_levels(folder), read_role(folder, "r")]
    held = resolve_levels(levels, whole=read_agent(folder, "a"))
    assert held.whole
    assert held.ignored == ("global", "role")
    assert held.settings.max_wake_cycles == 10
    assert (held.get("model"), held.get("tools"), held.get("system_prompt")) == (
        "m",
        ("files",),
        "Be a.",
    )
    assert isinstance(held.settings, AgentFileSettings)


def test_under_an_agent_file_a_threads_values_are_ignored() -> None:
    model = ScriptedModel([calls(("todo_write", {"items": ["a"]})), *[says("x")] * 30])
    base = AgentFileSettings(max_wake_cycles=2, max_idle_wakes=0, guard_retries=0)
    agent = create_todo_agent(model, settings=base, checkpointer=InMemorySaver())
    result = agent.invoke(
        {"messages": [("user", "go")], "todo_settings": {"max_wake_cycles": 9}},
        {"configurable": {"thread_id": "t"}},
    )
    assert (result["todo_session"]["wakes"], result["todo_session"]["budget"]) == (2, 2)


def test_a_threads_level_holds_the_differences_and_refuses_fixed_settings() -> None:
    assert check_overrides(LoopSettings(), {"max_wake_cycles": 3, "nag_after": 5}) == {"max_wake_cycles": 3}
    with pytest.raises(SettingsError, match="'dialect' is fixed when the agent is built"):
        check_overrides(LoopSettings(), {"dialect": "loki"})
    assert is_thread_setting("max_auto_continues")
    assert not is_thread_setting("dialect")
    assert not is_thread_setting("model")


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("max_wake_cycle: 3\n", 1, "unknown setting 'max_wake_cycle'. Did you mean 'max_wake_cycles'?"),
        ("\nnag_after: -1\n", 2, "Setting 'nag_after' must be greater than or equal to 0, got -1."),
        ("nag_after: no\n", 1, "Setting 'nag_after' must be a number, got False."),
        ("a: [1\n", 2, "not valid YAML"),
        ("- x\n", 1, "expected a mapping of keys to values."),
        ("preset: lessen\n", 1, "Unknown preset 'lessen'. Did you mean 'lesson'?"),
        ("nag_after: 1\ntools: [knife]\n", 2, "tools must be a list of files, shell, got ['knife']."),
        ("model: 3\n", 1, "model must be a string, got 3."),
        ("nag_after: 1\nnag_after: 2\n", 2, "the key 'nag_after' occurs twice."),
        ("max_request: 3\n", 1, "unknown setting 'max_request'. Did you mean 'max_requests'?"),
        ("max_steps: 3\n", 1, "unknown setting 'max_steps'. Did you mean 'max_requests'?"),
        ("price: {}\n", 1, "unknown setting 'price'. Did you mean 'prices'?"),
        ("max_requests: 0\n", 1, "Setting 'max_requests' must be greater than or equal to 1, got 0."),
        ("prompts: {nudge: $nothing}\n", 1, "Prompt 'nudge' has an unknown blank $nothing"),
        ("model_options: {top_p: .nan}\n", 1, "model_options must be plain JSON values: Out of range"),
        ("model_options: {user: 2020-01-01}\n", 1, "model_options must be plain JSON values: Object of"),
    ],
)
def test_an_invalid_file_is_named_with_line_and_key(text: str, line: int, why: str, folder: Path) -> None:
    (folder / "config.yaml").write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_global_levels(folder)
    assert str(refused.value).startswith(f"{folder / 'config.yaml'}, line {line}: {why}")


def test_a_path_that_exists_but_is_not_a_file_is_reported(folder: Path) -> None:
    (folder / "config.yaml").symlink_to("nowhere")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_global_levels(folder)


def test_line_numbers_in_a_front_matter_and_in_an_agents_settings_are_the_files(folder: Path) -> None:
    (folder / "roles" / "r.md").write_text("---\nmodel: m\nnag_aftre: 2\n---\nText\n")
    with pytest.raises(SettingsError, match=r"r\.md, line 3: unknown setting 'nag_aftre'"):
        read_role(folder, "r")
    (folder / "roles" / "open.md").write_text("---\nmodel: m\n")
    with pytest.raises(SettingsError, match=r"open\.md, line 1: the front matter is not closed"):
        read_role(folder, "open")
    (folder / "agents" / "a.yaml").write_text("model: m\nsettings:\n  nag_after: 1\n  nag_evry: 2\n")
    with pytest.raises(SettingsError, match=r"a\.yaml, line 4: unknown setting 'nag_evry'"):
        read_agent(folder, "a")
    (folder / "agents" / "b.yaml").write_text("nag_aftre: 1\n")
    with pytest.raises(SettingsError, match=r"b\.yaml, line 1: unknown setting 'nag_aftre'. Did you mean"):
        read_agent(folder, "b")


def test_roles_and_agents_are_found_by_name_and_only_in_their_folder(folder: Path) -> None:
    (folder / "roles" / "b.md").write_text("B")
    (folder / "roles" / "a.md").write_text("A")
    assert list_names(folder, "roles") == ["a", "b"]
    assert read_role(folder, "a").values == {"system_prompt": "A"}
    with pytest.raises(SettingsError, match=r"Unknown role 'c' in .*\. Available: a, b\."):
        read_role(folder, "c")
    with pytest.raises(SettingsError, match="Unknown agent"):
        read_agent(folder, "../roles/a")


def test_an_api_key_has_its_own_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_API_KEY", "x")
    sentence = (
        "Unknown variable WAKELOOP_API_KEY. API keys come from the environment, such as OPENAI_API_KEY."
    )
    with pytest.raises(SettingsError, match=f"^{sentence}$"):
        read_global_levels(folder)


def test_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert config_folder() == folder
    monkeypatch.setenv("WAKELOOP_AUTO_CONTINUE", "false")
    monkeypatch.setenv("WAKELOOP_MAX_ITEMS", "null")
    monkeypatch.setenv("WAKELOOP_PROMPTS", '{"nudge": "Go on: $list"}')
    monkeypatch.setenv("WAKELOOP_MODEL", "openai:m")
    monkeypatch.setenv("WAKELOOP_NAG_AFTER", "")
    held = resolve_levels(read_global_levels(folder))
    assert held.settings.model_dump(include={"auto_continue", "max_items", "prompts", "nag_after"}) == {
        "auto_continue": False,
        "max_items": None,
        "prompts": {"nudge": "Go on: $list"},
        "nag_after": 5,
    }
    assert held.get("model") == "openai:m"
    assert held.values["auto_continue"].source == "WAKELOOP_AUTO_CONTINUE"
    for given, meant in (("NAG_EVRY", "NAG_EVERY"), ("MAX_STEPS", "MAX_REQUESTS"), ("PROFIL", "PROFILE")):
        with monkeypatch.context() as patched:
            patched.setenv(f"WAKELOOP_{given}", "3")
            with pytest.raises(
                SettingsError, match=rf"Unknown variable WAKELOOP_{given}. Did you mean 'WAKELOOP_{meant}'\?"
            ):
                read_global_levels(folder)


def test_an_invalid_variable_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_NAG_AFTER", "often")
    with pytest.raises(SettingsError, match=r"^WAKELOOP_NAG_AFTER: Setting 'nag_after' must be a number"):
        read_global_levels(folder)
    monkeypatch.setenv("WAKELOOP_NAG_AFTER", "1")
    monkeypatch.setenv("WAKELOOP_PROMPTS", "{not json")
    with pytest.raises(
        SettingsError,
        match=r"^WAKELOOP_PROMPTS: Setting 'prompts' must be a valid dictionary, got '{not json'",
    ):
        read_global_levels(folder)


@pytest.mark.slow
def test_values_that_are_nested_too_deeply(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = "[" * 3_000 + "]" * 3_000
    for variable, why in (("PRICES", "must be a mapping"), ("MODEL_OPTIONS", "must be a mapping")):
        monkeypatch.setenv(f"WAKELOOP_{variable}", deep)
        with pytest.raises(SettingsError, match=why):
            read_global_levels(folder)
        monkeypatch.delenv(f"WAKELOOP_{variable}")
    (folder / "config.yaml").write_text(f"model_options: {{a: {deep}}}\n")
    with pytest.raises(SettingsError, match="its values are nested too deeply"):
        read_global_levels(folder)


def test_of_several_presets_only_the_highest_counts(folder: Path) -> None:
    (folder / "config.yaml").write_text("preset: loki\nnag_after: 4\n")
    (folder / "roles" / "r.md").write_text("---\npreset: lesson\n---\n")
    levels = [*read_global_levels(folder), read_role(folder, "r")]
    assert resolve_levels(levels).settings == preset("lesson")
    levels.append(Level("base", "--preset", {"preset": "wakeloop"}))
    assert resolve_levels(levels).settings == LoopSettings(nag_after=4)


def test_no_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOOP_TOOLS", "files, shell")
    assert resolve_levels(read_global_levels(folder)).get("tools") == ("files", "shell")
    monkeypatch.setenv("WAKELOOP_TOOLS", "none")
    assert resolve_levels(read_global_levels(folder)).get("tools") == ()


# -- prices ----------------------------------------------------------------------------------------------

EXAMPLE = '{"default": {"input": 1.25, "cached": 0.13, "output": 10}}'
CHEAP, DEAR = {"input": 1.0, "cached": None, "output": 2.0}, {"input": 3.0, "cached": 0.5, "output": 4.0}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("5", f"Setting 'prices' must be a mapping, got 5. Example of prices: {EXAMPLE}."),
        ("'{m: 1}'", f"Setting 'prices' must be a mapping, got '{{m: 1}}'. Example of prices: {EXAMPLE}."),
        (
            "{input: 1}",
            f"Setting 'prices.input' must be a mapping, got 1. Example of prices: {EXAMPLE}.",
        ),
        (
            "{m: {input: 1, outptu: 2, output: 2}}",
            "Unknown setting 'prices.m.outptu'. Did you mean 'output'?",
        ),
        (
            "{m: {input: 1, cache_read: 0, output: 2}}",
            "Unknown setting 'prices.m.cache_read'. Did you mean 'cached'?",
        ),
        ("{m: {input: 1}}", f"Setting 'prices.m.output' is missing. Example of prices: {EXAMPLE}."),
        ("{m: {input: cheap, output: 2}}", "Setting 'prices.m.input' must be a valid number, got 'cheap'."),
        (
            "{m: {input: 1, output: -2}}",
            "Setting 'prices.m.output' must be greater than or equal to 0, got -2.",
        ),
        ("{m: {input: 1, output: no}}", "Setting 'prices.m.output' must be a valid number, got False."),
    ],
)
def test_an_invalid_price_is_one_sentence(table: str, why: str, folder: Path) -> None:
    (folder / "config.yaml").write_text(f"model: m\nprices: {table}\n")
    with pytest.raises(SettingsError) as refused:
        read_global_levels(folder)
    assert str(refused.value) == f"{folder / 'config.yaml'}, line 2: {why}"


def test_prices_may_be_set_at_every_level_and_are_replaced_one_by_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "config.yaml").write_text(
        "prices: {a: {input: 1, output: 2}, b: {input: 1, output: 2}, 'llama3:8b': {input: 1, output: 2}}\n"
    )
    monkeypatch.setenv("WAKELOOP_PRICES", '{"b": {"input": 3, "cached": 0.5, "output": 4}}')
    (folder / "roles" / "r.md").write_text("---\nprices: {c: {input: 1, output: 2}}\n---\n")
    base = Level("base", "--set", {"prices": {"c": DEAR}})
    (folder / "agents" / "g.yaml").write_text("settings:\n  prices: {d: {input: 1, output: 2}}\n")
    levels = [*read_global_levels(folder), read_role(folder, "r"), base]
    held = resolve_levels(levels).settings
    assert held.model_dump()["prices"] == {"a": CHEAP, "llama3:8b": CHEAP, "b": DEAR, "c": DEAR}
    assert resolve_levels(levels, whole=read_agent(folder, "g")).settings.model_dump()["prices"] == {
        "d": CHEAP
    }

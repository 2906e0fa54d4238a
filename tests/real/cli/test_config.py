"""Configuration in the command: levels, where they come from, what a thread keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from typer.testing import CliRunner

from wakeloop.cli.agent_spec import AgentSpec, parse_options
from wakeloop.cli.commands.app import app
from wakeloop.cli.failures import CommandError
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.spec_builder import build_spec, build_stack, settings_from_spec
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.config.levels import NON_SETTINGS
from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder in which every level sets something."""
    folder = tmp_path / "config"
    for name in ("roles", "agents"):
        (folder / name).mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "max_items: 50\nnag_after: 6\nmodel: openai:small\nbase_url: http://a:1\n"
    )
    (folder / "roles" / "coder.md").write_text("---\nnag_every: 7\ntools: [shell]\n---\nYou write code.\n")
    (folder / "agents" / "ant.yaml").write_text(
        "model: big\npreset: agentparley\nsettings:\n  max_wake_cycles: 2\n"
    )
    monkeypatch.setenv("WAKELOOP_CONFIG", str(folder))
    monkeypatch.setenv("WAKELOOP_DB", str(tmp_path / "threads.sqlite"))
    monkeypatch.setenv("WAKELOOP_NUDGE_ITEMS", "9")
    monkeypatch.chdir(tmp_path)
    return folder


def wakeloop(*args: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(args))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, done.stderr


def rows(*args: str) -> dict[str, tuple[object, str, str]]:
    code, out, err = wakeloop("config", *args, "--json")
    assert (code, err) == (0, "")
    values = json.loads(out)["values"]
    return {key: (row["value"], row["level"], row["from"]) for key, row in values.items()}


@pytest.fixture
def thread(folder: Path, tmp_path: Path) -> str:
    """A thread with its own spec and values."""
    spec = build_spec(None, parse_options(role="coder", settings=["guard_retries=0"], preset="wakeloop"))
    with open_to_write(DatabaseFile(tmp_path / "threads.sqlite", named=True)) as store:
        store.remember("mine", spec, "hello")
        assert isinstance(store.saver, SqliteSaver)
        build_offline_graph(store.saver).update_state(
            {"configurable": {"thread_id": "mine"}},
            {"todo_settings": {"max_auto_continues": 3}},
            as_node="finalization_guard",
        )
    return "mine"


LEVELS: list[tuple[str, object, str, Callable[[Path], str]]] = [
    ("nag_when", "open", "built-in", lambda folder: "wakeloop"),
    ("max_items", 50, "global", lambda folder: str(folder / "config.yaml")),
    ("model", "openai:small", "global", lambda folder: str(folder / "config.yaml")),
    ("base_url", "http://a:1", "global", lambda folder: str(folder / "config.yaml")),
    ("nudge_items", 9, "global", lambda folder: "WAKELOOP_NUDGE_ITEMS"),
    ("nag_every", 7, "role", lambda folder: str(folder / "roles" / "coder.md")),
    ("tools", ["shell"], "role", lambda folder: str(folder / "roles" / "coder.md")),
    ("system_prompt", "You write code.", "role", lambda folder: str(folder / "roles" / "coder.md")),
    ("guard_retries", 0, "base", lambda folder: "--set"),
    ("preset", "wakeloop", "base", lambda folder: "--preset"),
    ("max_wake_cycles", 3, "thread", lambda folder: ".set in mine"),
]


@pytest.mark.parametrize(("key", "value", "level", "source"), LEVELS)
def test_each_level_is_shown_with_its_source(
    folder: Path, thread: str, key: str, value: object, level: str, source: Callable[[Path], str]
) -> None:
    assert rows("--thread", thread)[key] == (value, level, source(folder))


def test_every_setting_is_shown_once(folder: Path) -> None:
    assert set(rows()) == {
        *NON_SETTINGS,
        *LoopSettings.model_fields,
    }  # fmt: skip


def test_the_table_for_people(folder: Path, tmp_path: Path) -> None:
    code, out, err = wakeloop("config", "--set", "nag_after=1", "--preset", "loki")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["KEY", "VALUE", "LEVEL", "FROM"]
    cells = {line.split()[0]: line.split()[1:] for line in lines[1:] if line}
    assert cells["nag_after"] == ["1", "base", "--set"]
    assert cells["dialect"] == ['"loki"', "base", "--preset"]
    assert cells["auto_continue"] == ["true", "command", "line", "switched", "on", "under", "loki"]
    assert cells["tools"] == ['["files"]', "built-in", "wakeloop"]
    assert f"file: {folder / 'config.yaml'}" in lines
    assert f"file: {folder / 'roles' / 'coder.md'}" in lines
    assert f"file: {tmp_path / 'threads.sqlite'} (not found)" in lines
    assert not (tmp_path / "threads.sqlite").exists()


def test_an_agent_file_overrides_all_settings(folder: Path, thread: str) -> None:
    shown = rows("--agent", "ant")
    path = str(folder / "agents" / "ant.yaml")
    assert shown["max_wake_cycles"] == (2, "agent", path)
    assert shown["nag_after"] == (0, "agent", path)
    assert shown["nudge_items"] == (30, "built-in", "wakeloop")
    assert shown["model"] == ("big", "agent", path)
    _, out, _ = wakeloop("config", "--agent", "ant", "--thread", thread)
    assert f"The agent file {path} overrides all settings; ignored levels: global, role, base, thread." in out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--set", "nag_after=1"], "The agent 'ant' overrides all settings: drop --set"),
        (["--preset", "loki"], "The agent 'ant' overrides all settings: drop --preset"),
        (["--model", "m"], "The agent 'ant' sets its own model: drop --model"),
    ],
)
def test_options_next_to_an_agent_are_refused(folder: Path, given: list[str], says: str) -> None:
    code, out, err = wakeloop("run", "x", "--agent", "ant", *given)
    assert (code, out) == (2, "")
    assert err.startswith(f"wakeloop: {says}")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "args", "says"),
    [
        ("\nnag_aftre: 1\n", [], "config.yaml, line 2: unknown setting 'nag_aftre'"),
        (
            "\nbase_url: 127.0.0.1:8000",
            [],
            "line 2: base_url must be an address such as http://HOST:PORT/v1, got '127.0.0.1:8000'.",
        ),
        (
            "api_key: x",
            [],
            "unknown setting 'api_key'. API keys come from the environment, such as OPENAI_API_KEY.",
        ),
        ("max_token: 5", [], "unknown setting 'max_token'. Did you mean 'max_tokens'?"),
        (
            "settings: {nag_after: 1}",
            [],
            "unknown setting 'settings'. Write its keys at the top of the file.",
        ),
        ("", ["--role", "nobody"], "Unknown role 'nobody' in"),
        ("", ["--agent", "nobody"], "Unknown agent 'nobody' in"),
    ],
)
def test_an_invalid_file_is_one_sentence(folder: Path, text: str, args: list[str], says: str) -> None:
    (folder / "config.yaml").write_text(text)
    for command in (["config"], ["run", "x", "--model", "m"], ["chat", "--model", "m"]):
        code, out, err = wakeloop(*command, *args)
        assert (code, out) == (2, "")
        assert says in err
        assert len(err.splitlines()) == 1


def test_an_unknown_thread(folder: Path) -> None:
    assert wakeloop("config", "--thread", "nobody")[0] == 2


# -- levels in use ---------------------------------------------------------------------------------------


def test_levels_become_the_recipe(folder: Path, tmp_path: Path) -> None:
    spec = build_spec(None, parse_options(role="coder", settings=["nag_after=1"]))
    assert (spec.model, spec.base_url, spec.tools) == ("openai:small", "http://a:1", ("shell",))
    assert (spec.system, spec.root, spec.role) == ("You write code.", str(tmp_path), "coder")
    assert spec.settings == {"max_items": 50, "nudge_items": 9, "nag_after": 1, "nag_every": 7}


def test_a_thread_keeps_its_levels_and_options_are_added(folder: Path) -> None:
    kept = AgentSpec.from_json(
        build_spec(None, parse_options(role="coder", settings=["nag_after=1"])).to_json()
    )
    (folder / "config.yaml").write_text("max_items: 51\nmodel: other\n")
    (folder / "roles" / "coder.md").write_text("You are new.\n")
    assert build_spec(kept, {}).to_json() == kept.to_json()
    more = build_spec(kept, parse_options(settings=["guard_retries=0"], model="m"))
    assert (more.model, more.settings) == ("m", {**kept.settings, "guard_retries": 0})
    anew = build_spec(kept, parse_options(role="coder"))
    assert (anew.model, anew.system) == ("other", "You are new.")
    assert anew.settings == {"max_items": 51, "nudge_items": 9, "nag_after": 1}
    assert build_spec(kept, parse_options(role="none")).system == ""


@pytest.mark.parametrize(
    ("config", "given", "on", "switched"),
    [
        ("", {"preset": "loki"}, True, True),
        ("auto_continue: false\n", {"preset": "loki"}, False, False),
        ("auto_continue: true\n", {"preset": "loki"}, True, False),
        ("", {"preset": "loki", "settings": ["auto_continue=false"]}, False, False),
        ("preset: loki\n", {}, True, True),
        ("preset: loki\n", {"preset": "wakeloop"}, True, False),
        ("", {}, True, False),
    ],
)
def test_loki_is_switched_on_unless_a_level_says_otherwise(
    folder: Path, config: str, given: dict[str, object], on: bool, switched: bool
) -> None:
    (folder / "config.yaml").write_text(config)
    spec = build_spec(None, parse_options(model="m", **given))
    found = rows("--preset", "loki") if given.get("preset") == "loki" and not given.get("settings") else None
    assert spec.switched_on is switched
    assert spec.settings.get("auto_continue", spec.preset != "loki") is on
    if found is not None:
        assert found["auto_continue"][0] is on


def test_an_address_is_for_models_of_its_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_spec(None, parse_options(model="anthropic:m")).base_url == ""
    assert (
        build_spec(None, parse_options(model="anthropic:m", base_url="http://b:2")).base_url == "http://b:2"
    )
    monkeypatch.setenv("OPENAI_BASE_URL", "http://c:3")
    assert build_spec(None, parse_options()).base_url == "http://a:1"
    (folder / "config.yaml").write_text("")
    assert build_spec(None, parse_options(model="m")).base_url == "http://c:3"


def test_no_model(folder: Path) -> None:
    (folder / "config.yaml").write_text("")
    with pytest.raises(CommandError, match="No model is configured"):
        build_spec(None, {})
    with pytest.raises(SettingsError, match="Unknown setting 'max_wake'"):
        build_spec(None, parse_options(model="m", settings=["max_wake=1"]))


# -- budgets ---------------------------------------------------------------------------------------------

PRICES = "prices: {m: {input: 1, output: 2}}\n"
SHAPE = '{{"default": {{"input": 1.25, "cached": 0.13, "output": 10}}}}'
ANT = "The agent 'ant' overrides all settings"


@pytest.mark.parametrize(
    ("config", "given", "held"),
    [
        ("", {}, (500, "built-in", "wakeloop")),
        ("", {"preset": "wakeloop"}, (500, "built-in", "wakeloop")),
        ("", {"preset": "agentparley"}, (500, "command line", "a run has a limit")),
        ("", {"preset": "loki"}, (500, "command line", "a run has a limit")),
        ("preset: lesson\n", {}, (500, "command line", "a run has a limit")),
        ("max_requests: 7\n", {}, (7, "global", "config.yaml")),
        ("max_requests: 7\n", {"preset": "cubepi"}, (7, "global", "config.yaml")),
        ("max_requests: null\n", {}, (None, "global", "config.yaml")),
        ("max_requests: null\n", {"preset": "cubepi"}, (None, "global", "config.yaml")),
        ("max_requests: null\npreset: cubepi\n", {}, (None, "global", "config.yaml")),
        ("max_requests: 7\n", {"settings": ["max_requests=8"]}, (8, "base", "--set")),
        ("max_requests: 7\n", {"max_requests": "9"}, (9, "base", "--max-requests")),
        ("", {"preset": "loki", "max_requests": "9"}, (9, "base", "--max-requests")),
        ("", {"max_requests": "null"}, (None, "base", "--max-requests")),
        ("", {"preset": "loki", "settings": ["max_requests=null"]}, (None, "base", "--set")),
        ("", {"agent": "poor"}, (500, "command line", "a run has a limit")),
        ("max_requests: 7\n", {"agent": "poor"}, (500, "command line", "a run has a limit")),
        ("", {"agent": "rich"}, (None, "agent", "rich.yaml")),
    ],
)
def test_the_limit_of_requests(
    folder: Path, config: str, given: dict[str, object], held: tuple[object, str, str]
) -> None:
    (folder / "config.yaml").write_text(config)
    (folder / "agents" / "poor.yaml").write_text("preset: cubepi\n")
    (folder / "agents" / "rich.yaml").write_text("preset: cubepi\nmax_requests: null\n")
    words = parse_options(model="m", **given)
    found = build_stack(None, words).resolve().values["max_requests"]
    assert (found.value, found.level, Path(found.source).name) == held
    assert settings_from_spec(build_spec(None, words)).max_requests == held[0]


def test_the_newest_setting_wins_however_it_is_given(folder: Path) -> None:
    spec = build_spec(None, parse_options(model="m", settings=["max_requests=5", "nag_after=1"]))
    for words, limit in [
        ({"max_requests": "6"}, 6),
        ({}, 6),
        ({"preset": "loki"}, 6),
        ({"settings": ["max_requests=7"]}, 7),
        ({"max_requests": "null"}, None),
    ]:
        spec = build_spec(AgentSpec.from_json(spec.to_json()), parse_options(**words))
        assert (settings_from_spec(spec).max_requests, settings_from_spec(spec).nag_after) == (
            limit,
            1,
        )


@pytest.mark.parametrize("value", ["insist", "park", "wake"])
def test_explicit_settings_win_whoever_is_there_to_answer(folder: Path, value: str) -> None:
    spec = build_spec(None, parse_options(model="m", settings=[f"on_question={value}"]))
    spec = build_spec(AgentSpec.from_json(spec.to_json()), {})  # resumed
    for person in (True, False, None):
        assert settings_from_spec(spec, person=person).on_question == value


def test_every_budget_has_its_option(folder: Path) -> None:
    (folder / "config.yaml").write_text(PRICES)
    words = {"max_requests": "1_000", "max_tokens": "2", "max_cost": "0.5", "max_seconds": "90"}
    settings = settings_from_spec(
        AgentSpec.from_json(build_spec(None, parse_options(model="m", **words)).to_json())
    )
    dumped = settings.model_dump()
    assert {key: dumped[key] for key in words} == {
        "max_requests": 1000, "max_tokens": 2, "max_cost": 0.5, "max_seconds": 90.0,
    }  # fmt: skip
    assert dumped["prices"] == {"m": {"input": 1.0, "cached": None, "output": 2.0}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            ["--max-requests", "0"],
            "Setting 'max_requests' must be greater than or equal to 1, got 0.",
        ),
        (
            ["--max-tokens", "many"],
            "Setting 'max_tokens' must be a number, got 'many'.",
        ),
        (
            ["--max-requests", "5", "--set", "max_requests=5"],
            "max_requests is given twice, as --set and as --max-requests: use one of them.",
        ),
        (
            ["--max-requests", "5", "--agent", "ant"],
            f"{ANT}: drop --max-requests, or edit {{folder}}/agents/ant.yaml.",
        ),
        (
            ["--max-cost", "1"],
            f"max_cost needs prices: add them to '{{folder}}/config.yaml', for example prices: {SHAPE}.",
        ),
        (
            ["--set", 'prices={"m": {"inptu": 1}}'],
            "Unknown setting 'prices.m.inptu'. Did you mean 'input'?",
        ),
    ],
)
def test_an_invalid_budget_is_one_sentence(folder: Path, given: list[str], says: str) -> None:
    for command in (["run", "x"], ["chat"]):
        code, out, err = wakeloop(*command, "--model", "m", *given)
        assert (code, out, err) == (2, "", f"wakeloop: {says.format(folder=folder)}\n")


def test_a_model_without_a_price_has_no_limit_of_cost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    (folder / "config.yaml").write_text(PRICES)
    code, out, err = wakeloop("run", "x", "--model", "openai:other", "--max-cost", "1")
    told = "wakeloop: max_cost needs a price, and prices has none for model 'other'. Add one under the "
    assert (code, out, err.splitlines()) == (
        2,
        "",
        [f"{told}start of the model's name, or under 'default'."],
    )


def test_a_thread_without_prices_takes_those_of_today(folder: Path) -> None:
    kept = build_spec(None, parse_options(model="m"))
    (folder / "config.yaml").write_text(f"{PRICES}nag_after: 1\n")
    settings = settings_from_spec(build_spec(kept, parse_options(max_cost="2")))
    assert (settings.max_cost, [*settings.prices], settings.nag_after) == (2, ["m"], 6)

"""loki's own layout of files and its REPL: understood, or answered with our equivalent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from talking import does, talks

from wakeloop.cli.agent import build_agent_graph, make_model
from wakeloop.cli.agent_spec import AgentSpec, parse_options
from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.dot_commands import parse_entry
from wakeloop.cli.external_tools import ExternalTools
from wakeloop.cli.failures import CommandError
from wakeloop.cli.spec_builder import build_spec
from wakeloop.config.levels import list_names, read_agent, read_global_levels
from wakeloop.errors import ModelSetupError, SettingsError
from wakeloop.testing import ScriptedModel, calls, says

LOKIS = "model: openai:m\ninstructions: You keep the books.\nauto_continue: true\nmax_auto_continues: 4\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    where = tmp_path / "conf"
    (where / "agents" / "clerk").mkdir(parents=True)
    monkeypatch.setenv("WAKELOOP_CONFIG", str(where))
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    return where


@pytest.fixture
def talk_with(tmp_path: Path, folder: Path) -> Iterator[Callable[..., Conversation]]:
    with talks(tmp_path) as begin:
        yield begin


def test_an_agents_folder_and_keys_at_the_top_level(folder: Path) -> None:
    (folder / "agents" / "clerk" / "config.yaml").write_text(LOKIS)
    assert list_names(folder, "agents") == ["clerk"]
    level = read_agent(folder, "clerk")
    assert level.values == {
        "model": "openai:m",
        "system_prompt": "You keep the books.",
        "auto_continue": True,
        "max_wake_cycles": 4,
    }


@pytest.mark.parametrize(
    "key",
    ["save_session", "compression_threshold", "rag_top_k", "wrap", "name", "global_tools"],
)
def test_a_key_of_lokis_is_answered_with_our_equivalent(key: str, folder: Path, talk_with: Any) -> None:
    (folder / "config.yaml").write_text(f"{key}: 1\n")
    with pytest.raises(
        SettingsError, match=rf"line 1: '{key}' is a loki key that wakeloop does not have: "
    ) as told:
        read_global_levels(folder)
    assert "did you mean" not in str(told.value).lower()
    (folder / "config.yaml").unlink()
    with pytest.raises(CommandError, match="is a loki key") as told_too:
        does(talk_with(), f".set {key} 1")
    assert "did you mean" not in str(told_too.value).lower()


def test_a_key_of_lokis_without_a_value_says_nothing(folder: Path) -> None:
    """Its own example file lists most keys as null."""
    (folder / "config.yaml").write_text("temperature: null\nsave_session:\nmax_auto_continues: 4\n")
    (level,) = read_global_levels(folder)
    assert level.values == {"max_wake_cycles": 4}
    (folder / "config.yaml").write_text("zzz: null\n")
    with pytest.raises(SettingsError, match="unknown setting 'zzz'"):
        read_global_levels(folder)


def test_model_options_are_passed_to_the_model(folder: Path) -> None:
    """Each level changes single options; the thread keeps them."""
    options = "temperature: 0.2\ntop_p: 0.5\nmax_output_tokens: 99\n"
    (folder / "config.yaml").write_text(f"model: openai:m\n{options}")
    (folder / "roles").mkdir()
    (folder / "roles" / "cook.md").write_text("---\nmodel_options:\n  temperature: 0.7\n---\nYou cook.\n")
    spec = build_spec(None, {"role": "cook"})
    stored = AgentSpec.from_json(spec.to_json())
    assert stored is not None
    model: Any = make_model(stored, Event())
    assert (model.temperature, model.top_p, model.max_tokens) == (0.7, 0.5, 99)
    for wrong in ("3", "{api_key: x}", "{default_headers: {Authorization: Bearer x}}"):
        (folder / "config.yaml").write_text(f"model_options: {wrong}\n")
        with pytest.raises(SettingsError, match="line 1: model_options m"):
            read_global_levels(folder)


def test_all_unknown_keys_are_named_at_once(folder: Path) -> None:
    (folder / "config.yaml").write_text("wrap: 1\nmax_auto_continues: 4\nzzz: 2\nnag_after: x\n")
    with pytest.raises(SettingsError) as raised:
        read_global_levels(folder)
    assert [line.partition(": ")[0].rpartition(", ")[2] for line in str(raised.value).splitlines()] == [
        "line 1",
        "line 3",
        "line 4",
    ]


def test_exit_and_info_of_an_agent(folder: Path, talk_with: Any) -> None:
    (folder / "agents" / "clerk" / "config.yaml").write_text(LOKIS)
    (folder / "config.yaml").write_text("model: openai:n\n")
    talk = talk_with(agent="clerk", model=None)
    assert does(talk, ".info agent") == [
        "agent: clerk; available: clerk",
        "agent: clerk; model: openai:m",
    ]
    assert does(talk, ".exit agent") == ["agent: none; model: openai:n"]
    assert talk.spec.agent == ""
    assert does(talk, ".info role")[0].startswith("role: none; available: none in ")


@pytest.mark.parametrize("rest", ["session", "rag"])
def test_lokis_other_ways_to_exit_are_answered_with_ours(rest: str) -> None:
    with pytest.raises(CommandError, match=rf"got '{rest}'.+\.session THREAD to switch"):
        parse_entry(f".exit {rest}")


def test_ids_begin_at_1_after_clear_todo(talk_with: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = talk_with(preset="loki")
    model = ScriptedModel(
        calls(("todo__add", {"task": "a"}), ("todo__add", {"task": "b"})), says("x"), says("x")
    )
    for module in ("cli.agent", "cli.chat.conversation"):
        monkeypatch.setattr(f"wakeloop.{module}.make_model", lambda spec, stop: model)
    talk.run("go")
    assert [todo["id"] for todo in talk.snapshot.values["todos"]] == [1, 2]
    assert does(talk, ".clear todo") == ["List and goal cleared."]
    assert does(talk, ".todo add c") == ["list: 0/1 closed", "  [ ] 1 c"]


def test_a_server_without_function_calling(folder: Path, tmp_path: Path, talk_with: Any) -> None:
    """loki's function_calling_support: the tools stay away, and switching them on is refused."""
    (folder / "config.yaml").write_text("function_calling_support: false\npreset: loki\n")
    spec = build_spec(None, parse_options(model="m", root=tmp_path))
    assert (spec.function_calling, spec.tools, spec.switched_on) == (False, (), False)
    build_agent_graph(spec, ExternalTools(), ask=False, stop=Event())
    with pytest.raises(NotImplementedError):
        make_model(spec, Event()).bind_tools([])
    with pytest.raises(ModelSetupError, match="cannot call tools"):
        does(talk_with(), ".set auto_continue true")
    (folder / "config.yaml").write_text("function_calling: perhaps\n")
    with pytest.raises(SettingsError, match="true or false"):
        read_global_levels(folder)

"""Dot commands on a stored thread, with a scripted model in this process."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import ANY

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from talking import does, talks

from wakeloop.cli.chat.conversation import Conversation
from wakeloop.cli.chat.input import PipeInput, open_history
from wakeloop.cli.chat.repl import Repl
from wakeloop.cli.failures import CommandError
from wakeloop.cli.spec_builder import build_spec
from wakeloop.errors import EditError, SettingsError
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

PLAN = calls(("todo_write", {"items": ["one", "two"]}))


@pytest.fixture
def plays(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseChatModel], BaseChatModel]:
    """Put a model of the test in place of the spec's."""

    def play(model: BaseChatModel) -> BaseChatModel:
        for module in ("cli.agent", "cli.chat.conversation"):
            monkeypatch.setattr(f"wakeloop.{module}.make_model", lambda spec, stop: model)
        return model

    return play


@pytest.fixture
def talk_with(tmp_path: Path, config: Path) -> Iterator[Callable[..., Conversation]]:
    with talks(tmp_path) as begin:
        yield begin


def test_set_writes_the_whole_dict_and_the_next_activation_reads_it(talk_with, plays) -> None:
    model = plays(ScriptedModel([PLAN, says("a"), says("b"), says("c"), says("d")]))
    talk = talk_with("guard_retries=0")
    assert does(talk, ".set") == ["This thread overrides nothing."]
    assert does(talk, ".set max_auto_continues 1") == ["max_wake_cycles is 1 in this thread (default: 25)."]
    assert does(talk, ".set nag_after 9") == ["nag_after is 9 in this thread (default: 5)."]
    assert talk.overrides == {"max_wake_cycles": 1, "nag_after": 9}
    talk.run("go")
    assert talk.snapshot.values["todo_session"] == {
        "state": "idle", "reason": "wake_budget", "open": 2, "wakes": 1, "budget": 1, "list": 1, "items": 2,
        "completed": 0, "cancelled": 0, "blocked": 0, "spent": ANY,
    }  # fmt: skip
    assert does(talk, ".set max_wake_cycles null") == [
        "max_wake_cycles is 25; this thread does not override it."
    ]
    assert does(talk, ".unset nag_after") == ["nag_after is 5; this thread does not override it."]
    assert talk.overrides == {}
    assert does(talk, ".set max_wake_cycles 0")
    talk.run("again")
    assert talk.snapshot.values["todo_session"]["budget"] == 0
    assert len(model.requests) == 4


def test_a_wrong_value_changes_nothing(talk_with, plays) -> None:
    plays(ScriptedModel([]))
    talk = talk_with()
    does(talk, ".set nag_after 9")
    for line in (".set nag_after often", ".set dialect loki", ".set nothing 1", ".set model x"):
        with pytest.raises((SettingsError, CommandError)):
            does(talk, line)
    assert talk.overrides == {"nag_after": 9}


def test_switching_loki_on_adds_the_tools_and_off_removes_them(talk_with, plays) -> None:
    model = plays(ScriptedModel([says("a"), says("b"), says("c")]))
    talk = talk_with(preset="loki")
    assert talk.spec.switched_on
    talk.run("one")
    assert does(talk, ".set auto_continue false") == [
        "auto_continue is false in this thread (default: true).",
        "Your next message removes the todo tools.",
    ]
    talk.run("two")
    assert does(talk, ".set auto_continue null")[-1] == "Your next message adds the todo tools."
    talk.run("three")
    assert ["todo__init" in str(bound) for bound in model.bound] == [True, False, True]


def test_clear_ends_an_interrupted_chain(talk_with, plays) -> None:
    plays(ScriptedModel([PLAN, ConnectionError("down"), says("hello")]))
    talk = talk_with()
    with pytest.raises(ConnectionError):
        talk.run("go")
    for line in (".set nag_after 1", ".todo done 1", ".agent null"):
        with pytest.raises(
            CommandError, match=r"has not finished\. Type \.resume to continue it, or \.stop to end it"
        ):
            does(talk, line)
    assert does(talk, ".clear todo") == ["Run ended.", "List and goal cleared."]
    assert talk.snapshot.next == ()
    assert talk.snapshot.values["todos"] == []
    talk.run("hello?")
    assert talk.snapshot.values["todo_session"]["reason"] == "answered"


def test_clear_is_an_error_while_auto_continue_is_off(talk_with, plays) -> None:
    plays(ScriptedModel([]))
    talk = talk_with()
    does(talk, ".set auto_continue false")
    with pytest.raises(CommandError, match="auto_continue is off"):
        does(talk, ".clear todo")
    with pytest.raises(CommandError, match=r"\.clear takes one argument: \.clear todo"):
        does(talk, ".clear")


def test_a_stopped_run_keeps_its_work_and_the_next_message_has_a_whole_budget(talk_with, plays) -> None:
    works = calls(
        ("todo_update", {"id": 2, "status": "in_progress"})
    )  # two replies without a call would wait
    model = plays(ScriptedModel([PLAN, says("wait"), ConnectionError("down"), works, *[says("later")] * 9]))
    talk = talk_with("max_wake_cycles=2", "max_idle_wakes=0", "guard_retries=0")
    with pytest.raises(ConnectionError):
        talk.run("go")
    assert does(talk, ".stop") == ["Run ended."]
    assert does(talk, ".stop") == ["No run to end."]
    session = talk.snapshot.values["todo_session"]
    assert session == {
        "state": "idle",
        "reason": "drained",
        "open": 2,
        "wakes": 1,
        "budget": 2,
        "list": 1,
        "items": 2,
        "completed": 0,
        "cancelled": 0,
        "blocked": 0,
        "spent": ANY,
    }
    assert does(talk, ".todo done 1") == ["list: 1/2 closed", "  [x] 1 one", "  [ ] 2 two"]
    talk.run("again")
    assert talk.snapshot.values["todo_session"]["wakes"] == 2
    assert [todo["content"] for todo in talk.snapshot.values["todos"]] == ["one", "two"]
    kinds = [
        message.additional_kwargs.get("wakeloop", {}).get("kind")
        for message in talk.snapshot.values["messages"]
        if isinstance(message, HumanMessage)
    ]
    assert kinds == [None, "wake", None, "activate", "wake", "wake"]  # what is still open from before
    assert len(model.requests) == 7


def test_a_stopped_question_keeps_the_calls_next_to_it(talk_with, plays) -> None:
    both = calls(("run_shell", {"command": "exit 7"}), ("todo_write", {"items": ["one"]}))
    model = plays(ScriptedModel([both, says("hello"), says("again"), says("later"), says("and later")]))
    talk = talk_with("max_wake_cycles=0", "guard_retries=0", tools="shell")
    talk.run("go")
    assert talk.snapshot.interrupts
    with pytest.raises(CommandError, match=r"has not finished\. Type \.resume to continue it, or \.stop"):
        does(talk, ".set nag_after 1")
    assert does(talk, ".stop") == ["Run ended."]
    assert does(talk, ".todo") == ["list: 0/1 closed", "  [ ] 1 one"]
    assert does(talk, ".set nag_after 1")
    talk.run("never mind")
    assert wire_faults(model.requests) == []
    assert talk.snapshot.values["todo_session"]["reason"] == "disabled"


def test_edits_of_the_list(talk_with, plays) -> None:
    plays(ScriptedModel([]))
    talk = talk_with()
    assert does(talk, ".todo") == ["list: 0/0 closed"]
    assert does(talk, ".todo add one\ntwo") == ["list: 0/2 closed", "  [ ] 1 one", "  [ ] 2 two"]
    assert does(talk, ".todo block 2 no access")[-1] == "  [!] 2 two (blocked: no access)"
    assert does(talk, ".todo edit 1 uno")[1] == "  [ ] 1 uno"
    with pytest.raises(EditError, match="there is no item '7'"):
        does(talk, ".todo done 7")
    assert does(talk, ".info todo") == [
        "list: 0/2 closed, 1 blocked", "  [ ] 1 uno", "  [!] 2 two (blocked: no access)",
        "Nothing has been run yet; 1 open.",
    ]  # fmt: skip


def test_roles_and_agents(talk_with, plays, config: Path) -> None:
    (config / "roles" / "coder.md").write_text("---\nnag_after: 2\nmodel: big\n---\nYou write code.\n")
    (config / "agents" / "ant.yaml").write_text(
        "system_prompt: You are an ant.\npreset: agentparley\nsettings:\n  max_wake_cycles: 1\n"
    )
    model = plays(ScriptedModel([says("a"), PLAN, says("b"), *[says("c")] * 3, says("d")]))
    talk = talk_with("guard_retries=0")
    assert does(talk, ".role") == ["role: none; available: coder"]
    assert does(talk, ".role coder") == ["role: coder; model: m"]  # an option outranks a role
    assert talk.base.nag_after == 2
    talk.run("hi")
    assert model.requests[0][0].text.startswith("You write code.")
    does(talk, ".set max_idle_wakes 1")
    talk.run("plan")
    assert does(talk, ".agent ant") == [
        "agent: ant; model: m",
        "The agent fixes all settings; ignored levels: role, base, thread.",
        "Loading or leaving an agent clears the list: 2 items removed.",
    ]
    with pytest.raises(CommandError, match="The agent 'ant' fixes all settings"):
        does(talk, ".set nag_after 1")
    assert (talk.settings.max_wake_cycles, talk.settings.max_idle_wakes) == (1, 0)
    assert does(talk, ".agent null") == ["agent: none; model: m"]
    assert talk.settings.max_idle_wakes == 1
    assert does(talk, ".role null") == ["role: none; model: m"]
    with pytest.raises(SettingsError, match="Unknown role 'nobody'"):
        does(talk, ".role nobody")
    assert talk.spec.role == ""


def test_a_role_under_loki_is_switched_on_too(talk_with, plays, config: Path) -> None:
    (config / "roles" / "l.md").write_text("---\npreset: loki\n---\n")
    plays(ScriptedModel([]))
    talk = talk_with()
    assert does(talk, ".role l")[1].startswith("auto_continue is on. The preset loki leaves it off")
    assert talk.settings.auto_continue


def test_messages_to_an_agent_are_kept_with_the_thread(talk_with, plays, config: Path) -> None:
    (config / "agents" / "ant.yaml").write_text("settings:\n  max_wake_cycles: 7\n")
    plays(ScriptedModel([says("a")]))
    talk = talk_with(agent="ant")
    talk.run("hi")
    (config / "agents" / "ant.yaml").write_text("settings:\n  max_wake_cycles: 8\n")
    kept = talk.store.find("mine").spec
    assert build_spec(kept, {}).settings == {"max_wake_cycles": 7}
    assert build_spec(kept, {"agent": "ant"}).settings == {"max_wake_cycles": 8}


def test_sessions(talk_with, plays) -> None:
    plays(ScriptedModel([says("a")]))
    talk = talk_with()
    talk.run("hi")
    assert does(talk, ".session other") == ["Thread other (m)"]
    assert talk.snapshot.values == {}
    assert does(talk, ".session") == ["thread: other"]
    assert does(talk, ".session mine") == ["Continuing thread mine (m)"]
    assert talk.request == "hi"
    with pytest.raises(CommandError, match="A thread id may contain letters"):
        does(talk, ".session a b")


def test_info(talk_with, plays) -> None:
    plays(ScriptedModel([says("a")]))
    talk = talk_with("nag_after=2")
    does(talk, ".set nag_every 3")
    told = "\n".join(does(talk, ".info config"))
    rows = {line.split()[0]: line.split()[1:] for line in told.splitlines()}
    assert rows["nag_after"] == ["2", "base", "--set"]
    assert rows["nag_every"] == ["3", "thread", ".set", "in", "mine"]
    assert rows["model"] == ['"m"', "base", "--model"]
    assert "thread: mine" in does(talk, ".info session")
    with pytest.raises(CommandError, match=r"\.info shows todo, config, session, role, agent, got 'x'"):
        does(talk, ".info x")


# -- scripts ---------------------------------------------------------------------------------------------


def test_lines_of_a_pipe(talk_with, plays, capsys: pytest.CaptureFixture[str]) -> None:
    plays(ScriptedModel([says("hello to you"), says("two lines")]))
    typed = 'hello\n\n.set nag_after 3\n"""\none\ntwo\n"""\n.info todo\n.exit\nnot read\n'
    talk = talk_with()
    assert Repl(talk, PipeInput(io.StringIO(typed))).read_entries() == 0
    out, err = capsys.readouterr()
    assert "model: hello to you" in out
    assert "nag_after is 3 in this thread" in out
    assert err == ""
    texts = [m.text for m in talk.snapshot.values["messages"] if isinstance(m, HumanMessage)]
    assert texts == ["hello", "one\ntwo"]


@pytest.mark.parametrize(
    ("typed", "code", "says_"),
    [
        (".sett\nhello\n", 2, "Unknown command .sett. Did you mean .set?"),
        ("down\nhello\n", 1, "The run failed: RuntimeError: down"),
        (".todo add x\n", 3, ""),
        ("", 0, ""),
        (".resume\n", 2, "Nothing to resume"),
    ],
)
def test_a_scripts_exit_code(
    talk_with, plays, capsys: pytest.CaptureFixture[str], typed: str, code: int, says_: str
) -> None:
    plays(ScriptedModel([RuntimeError("down"), says("hello")] if "down" in typed else [says("hello")]))
    assert Repl(talk_with(), PipeInput(io.StringIO(typed))).read_entries() == code
    assert capsys.readouterr().err.startswith(says_)


def test_history_is_readable_only_by_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "state" / "chat-history"
    open_history(path).append_string("a secret")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o644)
    open_history(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(open_history(tmp_path / "state" / "chat-history" / "x").load_history_strings()) == []


def test_a_password_in_an_address_is_stored_nowhere(talk_with, plays, tmp_path: Path) -> None:
    plays(ScriptedModel([says("a")]))
    talk = talk_with(base_url="http://me:hunter22@host/v1")
    talk.run("hi")
    with sqlite3.connect(tmp_path / "threads.sqlite") as connection:
        spec = connection.execute("SELECT spec FROM wakeloop_threads").fetchone()[0]
    connection.close()
    assert "hunter22" not in spec
    assert "http://host/v1" in spec
    assert "hunter22" not in "\n".join(does(talk, ".info config"))

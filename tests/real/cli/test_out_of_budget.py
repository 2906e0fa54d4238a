"""A run that a budget ended: what every command says about it, and how to raise it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from processes import Shell, lines, wakeloop

from wakeloop.cli.agent_spec import AgentSpec, parse_options
from wakeloop.cli.final_state import format_raise_hint
from wakeloop.cli.offline_graph import build_offline_graph
from wakeloop.cli.spec_builder import build_spec
from wakeloop.cli.store import DatabaseFile, open_to_write
from wakeloop.thread.thread_status import LAST_NODE

SPENT = {
    "requests": 21,
    "input": 10_000,
    "cached": 5_000,
    "output": 2_000,
    "cost": 0.25,
    "seconds": 30.0,
    "estimated": False,
    "failed_calls": 1,
}
ITEMS: Any = [
    {"id": 1, "content": "look", "status": "pending"},
    {"id": 2, "content": "ask", "status": "blocked", "reason": "nobody is there"},
]
OUT = "Out of budget with 1 open: {} of this activation is spent."


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Leave a thread like a run that ended for a reason."""
    monkeypatch.delenv("WAKELOOP_DB", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("WAKELOOP_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-loopback-secret")
    (tmp_path / "config" / "agents").mkdir(parents=True)
    (tmp_path / "config" / "agents" / "clerk.yaml").write_text("max_requests: 20\n")
    monkeypatch.chdir(tmp_path)

    def leave(
        reason: str, *, left: bool = True, own: Any = None, name: str = "mine", url: str = "", **given: Any
    ) -> str:
        spec = build_spec(None, parse_options(model="m", base_url=url or None, **given))
        session = {
            "state": "idle" if left else "dormant", "reason": reason, "open": int(left), "wakes": 2,
            "budget": 25, "list": 1, "spent": SPENT,
        }  # fmt: skip
        values = {"todos": ITEMS if left else ITEMS[1:], "todo_session": session, "todo_settings": own or {}}
        with open_to_write(DatabaseFile.of(None)) as store:
            store.remember(name, spec, "look around")
            build_offline_graph(store.saver, spec).update_state(
                {"configurable": {"thread_id": name}}, values, as_node=LAST_NODE
            )
        return name

    return leave


PRICES = ['prices={"m": {"input": 1, "output": 2}}']
WAYS = [
    ("request_budget", {"max_requests": "20"}, "--max-requests 40"),
    ("request_budget", {"preset": "loki"}, "--max-requests 1000"),
    ("token_budget", {"max_tokens": "5000"}, "--max-tokens 10000"),
    ("cost_budget", {"max_cost": "0.25", "settings": PRICES}, "--max-cost 0.5"),
    ("time_budget", {"max_seconds": "90"}, "--max-seconds 180"),
    ("request_budget", {"max_requests": "20", "own": {"max_requests": 7}}, "--max-requests 14"),
]


@pytest.mark.parametrize(("reason", "given", "way"), WAYS)
def test_threads_and_show_say_which_budget_and_how_to_raise_it(
    ended: Callable[..., str], reason: str, given: dict[str, Any], way: str
) -> None:
    ended(reason, **given)
    told = f"To raise the budget: wakeloop resume mine {way}"
    name = way.split(maxsplit=1)[0].removeprefix("--").replace("-", "_")
    listed = wakeloop("threads")[1].splitlines()
    assert listed[1].split()[:7] == ["mine", "idle", "1", "of", "2", reason, "2"]
    assert listed[2:] == [f"mine: {told}"]
    assert json.loads(wakeloop("threads", "--json")[1])[0]["raise"] == told
    shown = wakeloop("show", "mine")[1].splitlines()
    assert shown[2:4] == [f"  {OUT.format(name)}", f"  {told}"]


def test_show_gives_a_long_command_whole(ended: Callable[..., str]) -> None:
    name = ended("request_budget", name="n" * 200)
    told = wakeloop("show", name)[1].splitlines()[3]
    assert told == f"  To raise the budget: wakeloop resume {name} --max-requests 1000"


def test_show_reports_the_spending_and_what_went_wrong(ended: Callable[..., str]) -> None:
    ended("settled")
    code, out, _ = wakeloop("show", "mine")
    assert code == 0
    spent = "2 wakes, 21 requests, 12,000 tokens (50% cached), cost 0.2500"
    assert lines(out, "spent: ") == [f"spent: {spent} in the last activation"]
    assert lines(out, "trouble: ") == ["trouble: 1 call failed, 1 item blocked"]
    assert not lines(out, "  To give")
    final = json.loads(wakeloop("show", "mine", "--json")[1])
    assert (final["failed_calls"], final["blocked"], final["session"]["spent"]) == (1, 1, SPENT)


@pytest.mark.parametrize("reason", ["looping", "stalled"])
def test_if_no_budget_ended_the_run_there_is_none_to_raise(ended: Callable[..., str], reason: str) -> None:
    ended(reason)
    assert "To raise the budget" not in wakeloop("threads")[1] + wakeloop("show", "mine")[1]


def test_nothing_open_needs_a_message_and_an_agents_file_is_raised_itself(ended: Callable[..., str]) -> None:
    ended("request_budget", left=False, max_requests="20")
    ended("request_budget", name="other", agent="clerk")
    told = wakeloop("threads")[1].splitlines()[3:]
    way = "change max_requests in the agent's file, then wakeloop resume other --agent clerk"
    assert sorted(told) == [
        "mine: To raise the budget: wakeloop resume mine 'your message' --max-requests 40",
        f"other: To raise the budget: {way}",
    ]


def test_settings_of_another_version_hide_no_thread(ended: Callable[..., str]) -> None:
    ended("request_budget", own={"max_wishes": 3})
    ended("request_budget", name="other", max_requests="20")
    told = "To raise the budget: wakeloop resume other --max-requests 40"
    code, out, _ = wakeloop("threads", "--json")
    assert (code, {row["thread"]: row["raise"] for row in json.loads(out)}) == (
        0,
        {"mine": None, "other": told},
    )
    assert wakeloop("show", "mine")[0] == 0


def test_a_chat_with_an_agents_file_names_no_other_command() -> None:
    session = {"reason": "request_budget", "state": "idle", "open": 1}
    found = format_raise_hint(session, AgentSpec(agent="clerk"), {}, "mine", None)
    assert found == "To raise the budget: change max_requests in the agent's file"


def test_a_list_is_edited_whatever_its_run_may_cost(ended: Callable[..., str]) -> None:
    ended("cost_budget", max_cost="0.25", settings=PRICES)
    assert wakeloop("todo", "mine", "add", "one more")[::2] == (0, "")


PLAN = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize(
    ("own", "typed", "base", "kept"),
    [
        (None, [], 20, {}),
        (None, ["--max-requests", "40"], 40, {}),
        (None, ["--set", "max_requests=40"], 40, {}),
        (None, ["--max-requests", "null"], None, {}),
        (
            {"max_requests": 7, "nag_after": 1},
            ["--max-requests", "40"],
            40,
            {"max_requests": 40, "nag_after": 1},
        ),
        (
            {"max_requests": 7},
            [],
            20,
            {"max_requests": 7},
        ),
    ],
)
def test_a_raised_option_stays(
    ended: Callable[..., str],
    does: Callable[..., tuple[int, str, str]],
    serve: Callable[..., Server],
    own: Any,
    typed: list[str],
    base: int | None,
    kept: dict[str, Any],
) -> None:
    server = serve(PLAN, Reply("Bye."))
    ended("request_budget", max_requests="20", own=own, url=server.url)
    code, _, err = does("resume", "mine", *typed)
    assert (code, err) == (0, ""), err
    with open_to_write(DatabaseFile.of(None)) as store:
        known = store.find("mine")
        assert known is not None
        assert known.spec is not None
        stored = build_offline_graph(store.saver).get_state({"configurable": {"thread_id": "mine"}}).values
    shown = json.loads(wakeloop("config", "--thread", "mine", "--json")[1])["values"]["max_requests"]["value"]
    assert stored["todo_settings"] == kept
    assert AgentSpec.from_json(known.spec.to_json()) == known.spec
    assert shown == kept.get("max_requests", base)


# -- real runs -------------------------------------------------------------------------------------------

ASKED = "the model is asked what is done and what is not"
NONE = "in the folder; list_files shows what there is."
LIST = Reply(calls=[("todo_write", {"items": ["a", "b"]})])


def looks(number: int) -> Reply:
    """Return a call that was never made before; it fails."""
    return Reply(calls=[("read_file", {"path": f"none{number}.txt"})])


@pytest.fixture
def does(ended: Callable[..., str], shell: Shell, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    """Run a command in another process, whose end closes a model client's connections."""
    shell.env = {key: value for key, value in shell.env.items() if not key.startswith("WAKELOOP_")}
    shell.env |= {"XDG_DATA_HOME": str(tmp_path), "WAKELOOP_CONFIG": str(tmp_path / "config")}

    def done(*args: str, typed: str | None = None) -> tuple[int, str, str]:
        process = shell(*args, typed=typed)
        return process.returncode, process.stdout, process.stderr

    return done


@pytest.fixture
def run(
    does: Callable[..., tuple[int, str, str]], serve: Callable[..., Server]
) -> Callable[..., tuple[Server, int, list[str], str]]:
    """Run against a server that plays a function; return it, exit code, lines and errors."""

    def started(script: Any, *args: str) -> tuple[Server, int, list[str], str]:
        server = serve(script=script)
        where = ["--model", "m", "--base-url", server.url, "--thread", "mine"]
        code, out, err = does("run", "go", *where, *args)
        return server, code, out.splitlines(), err

    return started


def endless(number: int, asked: dict[str, Any]) -> Reply:
    """Return a list, then a new call each time; without tools, a report."""
    if asked.get("tool_choice") == "none" or "tools" not in asked:
        return Reply("Nothing was found.")
    return LIST if number == 1 else looks(number)


def unseconded(line: str) -> str:
    """Return a summary, or the end of a call, without its seconds."""
    return re.sub(r" \([\d.]+ s\)$|, [\d.]+ s$", "", line)


@pytest.mark.loopback
def test_a_run_that_its_requests_end_says_how_to_continue(run: Any) -> None:
    server, code, out, err = run(endless, "--max-requests", "3")
    assert (code, err, len(server.requests)) == (3, "", 4)
    assert [unseconded(line) for line in out[4:]] == [
        'tool: read_file(path="none2.txt")',
        f"tool error: read_file: There is no 'none2.txt' {NONE}",
        "budget: 100% of max_requests is spent",
        'tool: read_file(path="none3.txt")',
        f"tool error: read_file: There is no 'none3.txt' {NONE}",
        f"final report: the run ends (request_budget) with 2 open; {ASKED}",
        "model: Nothing was found.",
        "  [ ] 1 a",
        "  [ ] 2 b",
        "list: 0/2 closed",
        "Out of budget with 2 open: max_requests of this activation is spent.",
        "thread mine: 0 wakes, 4 requests, 60 tokens, 133% of max_requests",
        "2 calls failed",
        "To continue: wakeloop resume mine",
        "To raise the budget: wakeloop resume mine --max-requests 6",
    ]


@pytest.mark.slow
@pytest.mark.loopback
@pytest.mark.parametrize(
    ("typed", "requests", "reason", "way"),
    [
        (["--max-tokens", "30"], 3, "token_budget", "--max-tokens 60"),
        (["--max-cost", "0.00004", *("--set", *PRICES)], 3, "cost_budget", "--max-cost 0.00008"),
        (["--max-seconds", "0.001"], 2, "time_budget", "--max-seconds 0.002"),
        (["--max-requests", "2", "--set", "on_budget=stop"], 2, "request_budget", "--max-requests 4"),
    ],
)
def test_each_budget_ends_a_run(run: Any, typed: list[str], requests: int, reason: str, way: str) -> None:
    server, code, out, err = run(endless, *typed, "--json")
    assert (code, len(server.requests)) == (3, requests)
    assert json.loads(out[0])["session"]["reason"] == reason
    assert err.splitlines()[-1] == f"To raise the budget: wakeloop resume mine {way}"


@pytest.mark.loopback
def test_without_a_list_a_spent_budget_is_a_failure(run: Any) -> None:
    server, code, out, _ = run(lambda number, asked: looks(number), "--max-requests", "2")
    assert (code, len(server.requests)) == (1, 2)
    assert [out[-4], *out[-2:]] == [
        "Out of budget with 0 open: max_requests of this activation is spent.",
        "2 calls failed",
        "To raise the budget: wakeloop resume mine 'your message' --max-requests 4",
    ]


@pytest.mark.loopback
def test_a_settled_list_over_failed_calls_is_not_plain_success(run: Any) -> None:
    script = [
        LIST,
        looks(2),
        Reply(calls=[
            ("todo_update", {"id": 1, "status": "done"}),
            ("todo_update", {"id": 2, "status": "blocked", "reason": "the disk is full"}),
        ]),
        Reply("Done."),
    ]  # fmt: skip
    _, code, out, err = run(lambda number, asked: script[number - 1], "--json")
    final = json.loads(out[0])
    assert (code, final["session"]["reason"], final["failed_calls"], final["blocked"]) == (3, "blocked", 1, 1)
    ends = err.splitlines()[-3:]
    assert ends == [
        "Blocked: 0 open, 1 completed, 1 blocked, 0 cancelled.",
        ends[1],
        "1 call failed, 1 item blocked",
    ]
    assert unseconded(ends[1]) == "thread mine: 0 wakes, 4 requests, 60 tokens"


@pytest.mark.loopback
def test_an_option_that_an_unfinished_run_would_ignore_is_refused(
    ended: Callable[..., str], does: Callable[..., tuple[int, str, str]], serve: Callable[..., Server]
) -> None:
    server = serve(Reply(calls=[("run_shell", {"command": "true"})]), Reply("Bye."))
    ended("stalled", own={"max_requests": 7}, url=server.url, tools="shell")
    assert does("resume", "mine", "more")[0] == 4
    refused = does("resume", "mine", "n", "--max-requests", "40")
    told = "The unfinished run keeps this thread's own max_requests. Leave the option out."
    assert refused == (2, "", f"wakeloop: {told}\n")
    assert does("resume", "mine", "n")[0] == 3


@pytest.mark.loopback
def test_a_broken_run_continues_with_its_spending_and_a_new_limit(
    run: Any, does: Callable[..., tuple[int, str, str]]
) -> None:
    def breaks(number: int, asked: dict[str, Any]) -> Reply:
        return Reply(status=400) if number == 2 else endless(number, asked)

    server, code, _, _ = run(breaks)
    assert (code, len(server.requests)) == (1, 2)
    code, out, err = does("resume", "mine", "--max-requests", "3")
    assert (code, err, len(server.requests)) == (3, "", 5)  # one stored before, two now, the closing request
    [told] = lines(out, "thread mine: ")
    assert unseconded(told) == "thread mine: 0 wakes, 4 requests, 60 tokens, 133% of max_requests"


@pytest.mark.loopback
def test_a_chat_says_how_to_raise_a_budget_of_its_thread(
    does: Callable[..., tuple[int, str, str]], serve: Callable[..., Server]
) -> None:
    server = serve(script=endless)
    typed = ".set max_cost 1\n.set max_tokens 30\ngo\n.exit\n"
    where = ["--model", "m", "--base-url", server.url, "--thread", "mine"]
    code, out, err = does("chat", *where, typed=typed)
    assert (code, len(server.requests)) == (2, 3)
    assert err.startswith("max_cost needs prices: add them to ")
    said = out.splitlines()
    assert said[1] == "max_tokens is 30 in this thread (default: null)."
    assert unseconded(said[-3]) == "0 wakes, 3 requests, 45 tokens, 150% of max_tokens"
    assert [said[-4], *said[-2:]] == [
        "Out of budget with 2 open: max_tokens of this activation is spent.",
        "1 call failed",
        "To raise the budget: .set max_tokens 60",
    ]

"""A run that a budget ended: what every command says of it, and how it is raised."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, Server
from processes import lines, wakeloop

from wakeloop.cli.configured import configured
from wakeloop.cli.reader import reader
from wakeloop.cli.recipe import Recipe, options
from wakeloop.cli.store import Place, writing
from wakeloop.thread.standing import LAST

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
    """Leave a thread as a run that ended for a reason does."""
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
        recipe = configured(None, options(model="m", base_url=url or None, **given))
        session = {
            "state": "idle" if left else "dormant", "reason": reason, "open": int(left), "wakes": 2,
            "budget": 25, "list": 1, "spent": SPENT,
        }  # fmt: skip
        values = {"todos": ITEMS if left else ITEMS[1:], "todo_session": session, "todo_settings": own or {}}
        with writing(Place.of(None)) as store:
            store.remember(name, recipe, "look around")
            reader(store.saver, recipe).update_state(
                {"configurable": {"thread_id": name}}, values, as_node=LAST
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
    told = f"To give it more: wakeloop resume mine {way}"
    name = way.split(maxsplit=1)[0].removeprefix("--").replace("-", "_")
    listed = wakeloop("threads")[1].splitlines()
    assert listed[1].split()[:5] == ["mine", "idle", reason, "1/2", "2"]
    assert listed[2:] == [f"mine: {told}"]
    assert json.loads(wakeloop("threads", "--json")[1])[0]["raise"] == told
    shown = wakeloop("show", "mine")[1].splitlines()
    assert shown[2:4] == [f"  {OUT.format(name)}", f"  {told}"]


def test_show_tells_what_was_spent_and_what_went_wrong(ended: Callable[..., str]) -> None:
    ended("settled")
    code, out, _ = wakeloop("show", "mine")
    assert code == 0
    spent = "2 wakes, 21 requests, 12,000 tokens (50% cached), cost 0.2500"
    assert lines(out, "spent: ") == [f"spent: {spent} in the last activation, 0 tokens in all"]
    assert lines(out, "trouble: ") == ["trouble: 1 call failed, 1 item blocked"]
    assert not lines(out, "  To give")
    final = json.loads(wakeloop("show", "mine", "--json")[1])
    assert (final["failed_calls"], final["blocked"], final["session"]["spent"]) == (1, 1, SPENT)


@pytest.mark.parametrize("reason", ["looping", "stalled"])
def test_where_no_budget_ended_the_run_there_is_none_to_raise(ended: Callable[..., str], reason: str) -> None:
    ended(reason)
    assert "To give it more" not in wakeloop("threads")[1] + wakeloop("show", "mine")[1]


def test_nothing_open_needs_a_message_and_an_agents_file_is_raised_itself(ended: Callable[..., str]) -> None:
    ended("request_budget", left=False, max_requests="20")
    ended("request_budget", name="other", agent="clerk")
    told = wakeloop("threads")[1].splitlines()[3:]
    way = "raise max_requests in the agent's file, then wakeloop resume other --agent clerk"
    assert sorted(told) == [
        "mine: To give it more: wakeloop resume mine 'your message' --max-requests 40",
        f"other: To give it more: {way}",
    ]


PLAN = Reply(calls=[("todo_update", {"id": 1, "status": "done"})])
ITS = "Its last run spent its max_requests; "


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("own", "typed", "said", "base", "kept"),
    [
        (None, [], "this one has 20 (--max-requests 40 gives it more).", 20, {}),
        (None, ["--max-requests", "40"], "this one has 40.", 40, {}),
        (None, ["--set", "max_requests=40"], "this one has 40.", 40, {}),
        (None, ["--max-requests", "null"], "this one has no limit.", None, {}),
        (
            {"max_requests": 7, "nag_after": 1},
            ["--max-requests", "40"],
            "this one has 40.",
            40,
            {"max_requests": 40, "nag_after": 1},
        ),
        (
            {"max_requests": 7},
            [],
            "this one has 7 (--max-requests 14 gives it more).",
            20,
            {"max_requests": 7},
        ),
    ],
)
def test_resume_says_what_the_thread_has_and_a_raised_option_stays(
    ended: Callable[..., str],
    serve: Callable[..., Server],
    own: Any,
    typed: list[str],
    said: str,
    base: int | None,
    kept: dict[str, Any],
) -> None:
    server = serve(PLAN, Reply("Bye."))
    ended("request_budget", max_requests="20", own=own, url=server.url)
    code, out, err = wakeloop("resume", "mine", *typed)
    assert (code, err) == (0, ""), err
    assert lines(out, ITS) == [ITS + said]
    with writing(Place.of(None)) as store:
        known = store.find("mine")
        assert known is not None
        assert known.recipe is not None
        stored = reader(store.saver).get_state({"configurable": {"thread_id": "mine"}}).values
    shown = json.loads(wakeloop("config", "--thread", "mine", "--json")[1])["values"]["max_requests"]["value"]
    assert stored["todo_settings"] == kept
    assert Recipe.read(known.recipe.written()) == known.recipe
    assert shown == kept.get("max_requests", base)

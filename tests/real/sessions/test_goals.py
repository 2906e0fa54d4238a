"""Rule 24 in sessions: kicks, conditions, peers and subagents."""

from typing import Any

import pytest
from host_stage import Stage

from wakeloop import wait
from wakeloop.testing import calls


class Goal:
    """Answers from a script, repeats the last answer forever, and counts how often it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), 0

    def __call__(self, state: Any) -> Any:
        self.asked += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def kick(host: Stage, thread: str, key: str) -> None:
    host.send(thread, {"kind": "kick", "id": key})
    host.settle()


def test_a_session_waits_for_a_condition_and_a_kick_asks_before_any_request(host: Stage) -> None:
    goal = Goal(wait("the build", 600), wait("the build"), None)
    host.agent("ada", "Done.", done_when=goal)
    host.say("ada", "go")
    assert host.ending("ada") == ("waiting", "waiting", "condition")
    kick(host, "ada", "k1")
    assert (host.ending("ada"), goal.asked) == (("waiting", "waiting", "condition"), 2)
    kick(host, "ada", "k2")
    assert (host.ending("ada"), goal.asked) == (("dormant", "goal_met"), 3)
    host.done()


@pytest.mark.slow
def test_a_clock_asks_at_the_end_of_its_turn(host: Stage) -> None:
    goal = Goal(None)
    host.agent("ada", "Good morning.", done_when=goal)
    host.send("ada", {"kind": "cron", "id": "c", "text": "It is eight."})
    host.settle()
    assert (host.ending("ada"), goal.asked) == (("dormant", "goal_met"), 1)


@pytest.mark.slow
def test_a_kick_on_an_unmet_goal_continues_with_the_reason(host: Stage) -> None:
    goal = Goal("2 fail", None)
    host.agent("ada", "Done.", "Now.", done_when=goal, max_wake_cycles=0)
    host.say("ada", "go")
    assert (host.ending("ada"), host.status("ada").state) == (("idle", "disabled"), "idle")
    kick(host, "ada", "k")
    assert (host.ending("ada"), goal.asked) == (("dormant", "goal_met"), 2)
    assert "It says what is missing: 2 fail" in host.models["ada"].requests[-1][-1].text
    host.done()


def test_a_kick_on_a_met_goal_with_open_items_costs_no_request(host: Stage) -> None:
    goal = Goal(None)
    host.agent("ada", calls(("todo_write", {"items": ["a"]})), "Done.", done_when=goal)
    host.say("ada", "go")
    kick(host, "ada", "k")
    assert (host.ending("ada"), goal.asked, host.asked("ada")) == (("dormant", "goal_met"), 2, 2)


def test_a_peers_message_does_not_ask(host: Stage) -> None:
    goal = Goal("never")
    ask = calls(("talk_to_agent", {"agent": "ada", "message": "How are you?"}))
    answer = calls(("reply_to_peer", {"message": "Fine."}))
    host.agent("ada", answer, "Done.", done_when=goal).agent("bob", ask, "Asked.", "She is fine.")
    host.say("bob", "Ask Ada.")
    assert (host.ending("ada"), goal.asked) == (("dormant", "answered"), 0)

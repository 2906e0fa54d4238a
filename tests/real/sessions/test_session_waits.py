"""Rules 26 and 29 in sessions: questions, holds and subagents cost exactly what they cost in a graph."""

from typing import Any

import pytest
from host_stage import Stage
from rig import write

from wakeloop import answer_of, hold_thread, release_thread
from wakeloop.testing import calls

ASK = "I found 14 files. Shall I delete them?"


def spawn_and_plan(task: str) -> Any:
    return calls(("todo_write", {"items": ["use it"]}), ("spawn_subagent", {"task": task, "agent": "worker"}))


def close(key: int) -> Any:
    return calls(("todo_update", {"id": key, "status": "done"}))


def test_c68_a_session_with_a_working_subagent_waits_for_it_and_answers(host: Stage) -> None:
    host.agent("ada", spawn_and_plan("find it"), "Soon.", "Soon.", close(1), "Here it is.")
    host.agent("worker", "Found it.")
    host.send("ada", {"kind": "human", "text": "Find it."})
    host.turn("ada")
    assert host.ending("ada") == ("waiting", "waiting", "subagent")
    status = host.status("ada")
    assert (host.asked("ada"), status.wakes, status.waits_for) == (3, 1, (host.queue[0][0],))
    assert status.until is not None
    host.settle()
    assert "Found it." in host.last("ada", 3)
    assert (host.ending("ada"), answer_of(host.values("ada"))) == (("dormant", "settled"), "Here it is.")
    assert host.asked("ada") == 5
    host.done()


def test_c58_a_question_in_words_waits_for_the_person(host: Stage) -> None:
    host.agent("ada", write("tidy"), ASK, "I am waiting.", close(1), "Deleted.", on_question="insist")
    host.say("ada", "Tidy up.")
    assert host.ending("ada") == ("waiting", "waiting", "human")
    assert (host.status("ada").question, host.asked("ada")) == (ASK, 3)
    host.send("ada", {"kind": "kick", "id": "k"})
    host.settle()
    assert (host.ending("ada"), host.asked("ada")) == (("waiting", "waiting", "human"), 3)
    host.say("ada", "Yes.")
    assert (host.ending("ada"), host.status("ada").question) == (("dormant", "settled"), "")
    host.done()


def test_a_peers_question_is_the_reply_that_it_owes(host: Stage) -> None:
    asked = calls(("talk_to_agent", {"agent": "bob", "message": "Tidy up."}))
    told = calls(("send_message", {"agent": "bob", "message": "Yes."}))
    host.agent("ada", asked, "I wait.", told, "Told.")
    host.agent("bob", write("tidy"), ASK, "I am waiting.", close(1), "Deleted.", on_question="insist")
    host.say("ada", "Let bob tidy up.")
    assert host.sent("peer_reply", "ada") == [ASK]
    assert (host.ending("ada"), host.ending("bob")) == (("dormant", "answered"), ("dormant", "settled"))
    host.done()


@pytest.mark.parametrize("ended", [False, True])
def test_a_subagent_waits_for_its_parent_only_if_the_parent_has_not_ended(host: Stage, ended: bool) -> None:
    """A parent that has ended may still read the question, and move the subagent with a message."""
    spawn = calls(("spawn_subagent", {"task": "Tidy up.", "agent": "worker"}))
    planned = [spawn_and_plan("Tidy up."), "Soon.", "Soon.", close(1), "Read."]
    host.agent("ada", *([spawn, "Started.", "Read."] if ended else planned))
    host.agent("worker", write("tidy"), ASK, "I am waiting.", on_question="insist")
    host.send("ada", {"kind": "human", "text": "Have it tidied."})
    host.turn("ada")
    handle = host.queue[0][0]
    host.turn(handle)
    assert host.ending(handle) == (("idle", "stalled") if ended else ("waiting", "waiting", "peer"))
    assert bool(host.values(handle)["waiting_on"]) == (not ended)
    host.settle()
    assert ASK in host.sent("subagent_done", "ada")[0]
    assert host.ending("ada")[0] == "dormant"
    host.done()


def test_on_hold_events_queue_up_until_a_person_speaks(host: Stage) -> None:
    host.agent("ada", "Hello.", "Read.")
    host.say("ada", "Hi.")
    config: Any = {"configurable": {"thread_id": "ada"}}
    assert hold_thread(host.graph("ada"), config)
    host.send("ada", {"kind": "cron", "id": "c", "text": "It is nine."})
    host.settle()
    assert (host.status("ada").on, host.status("ada").queued, host.asked("ada")) == ("hold", 1, 1)
    assert release_thread(host.graph("ada"), config)
    host.send("ada", {"kind": "kick", "id": "k"})
    host.settle()
    assert (host.last("ada"), host.ending("ada")) == ("[cron] It is nine.", ("dormant", "answered"))
    host.done()


def test_a_person_moves_a_thread_that_is_on_hold(host: Stage) -> None:
    host.agent("ada", "Hello.", "Of course.", "Read.")
    host.say("ada", "Hi.")
    hold_thread(host.graph("ada"), {"configurable": {"thread_id": "ada"}})
    host.send("ada", {"kind": "cron", "id": "c", "text": "It is nine."})
    host.say("ada", "Are you there?")
    assert (host.asked("ada"), host.ending("ada")) == (3, ("dormant", "answered"))
    assert host.last("ada") == "[cron] It is nine."
    host.done()

"""What happened in more old threads of the first preset, and how each goes on."""

from __future__ import annotations

from typing import Any

from stories import ASK, BAD, EDIT, MORE, RISKY, Row, does, look, says


def broken_off(one: Any, settled: Any) -> list[Row]:
    """Runs that ended with their process, at every place where the graph keeps a note for later."""
    end = [does(*settled), says("all done")]
    stop, stops = says("stop"), [says(f"stop {n}") for n in range(3)]
    rows: list[tuple[str, str, list[Row], list[Row]]] = [
        ("not activated", "activate 1", [], [does(*one), *end]),
        ("activated", "call_model 1", [], [does(*one), *end]),
        ("todo calls pending", "in a tool", [does(*one), does(EDIT, *settled)], [says("all done")]),
        ("round not begun", "run_tools 1", [does(*one), does(EDIT, look("p"))], end),
        ("between two rounds", "call_model 3", [does(*one), does(EDIT)], end),
        ("at the nag", "nag 1", [does(*one), does(look("p")), does(look("q"))], end),
        ("malformed", "run_tools 3", [does(*one), BAD, BAD, BAD], []),
        ("malformed twice", "call_model 4", [does(*one), BAD, BAD], [BAD]),
        ("spoken", "call_model 3", [does(*one), does(*settled)], [says("")]),
        ("turn ended", "finalization_guard 1", [does(*one), stop], end),
        ("empty", "finalization_guard 1", [says("")], [says("nothing to do")]),
        ("cut", "finalization_guard 1", [does(*one), says("hal", finish="length")], [says("half"), *end]),
        ("asked again", "call_model 3", [does(*one), says("hal", finish="length")], [says("half"), *end]),
        ("to wake", "wake 1", [does(*one), stop], end),
        ("woken", "call_model 3", [does(*one), stop], [does(EDIT), *stops[1:], *end]),
        ("corrected", "call_model 5", [does(*one), *stops], [does(EDIT), says("no")]),
        ("in a correction", "in a tool", [does(*one), *stops, does(EDIT, RISKY)], [says("no")]),
        ("list by a tool", "call_model 2", [does(("draft", {}))], end),
    ]
    told: list[Row] = [
        {"thread": thread, "dies": where, "before": before, "after": after}
        for thread, where, before, after in rows
    ]
    next(story for story in told if story["thread"] == "todo calls pending")["verified"] = "accepts"
    limit = {"dies": "in a tool", "limit": 11, "before": [does(*one), does(look("p")), does(EDIT, RISKY)]}
    return [*told, {"thread": "step limit", "after": [], **limit}]


def sessions() -> list[Row]:
    """Threads that others wait for, or that wait for others."""
    asked = {"kind": "peer_message", "id": "e1", "text": "How far?", "sender": "ada", "correlation_id": "q1"}
    inbox = {"begin": {"todo_inbox": [asked]}, "sessions": True}
    came: Row = {"kind": "peer_reply", "id": "e2", "text": "That one.", "sender": "bob"}
    talk = does(("talk_to_agent", {"agent": "bob", "message": "Which one?"}))
    answer = does(("reply_to_peer", {"message": "So far."}))
    spawn = does(("spawn_subagent", {"task": "dig"}), ("todo_write", {"items": ["a"]}))
    done = [does(("todo_update", {"id": 1, "status": "done"})), says("all done")]
    return [
        {
            "thread": "peers",
            **inbox,
            "before": [talk, says("waiting")],
            "go_on": {"todo_inbox": [came]},
            "reply_to": "correlation_id",
            "after": [answer, says("told her")],
        },
        {"thread": "inbox", **inbox, "before": [], "dies": "activate 1", "after": [answer, says("told her")]},
        {
            "thread": "owed",
            **inbox,
            "before": [says("busy")],
            "dies": "call_model 2",
            "after": [answer, says("told her")],
        },
        {
            "thread": "subagent",
            "sessions": True,
            "before": [spawn, {"wait_for": True}, says("waiting")],
            "go_on": {"todo_inbox": [{"kind": "subagent_done", "text": "Found.", "id": "e3"}]},
            "reply_to": "correlation_id",
            "after": done,
        },
        {
            "thread": "event again",
            **inbox,
            "before": [answer, says("told her")],
            "go_on": {"todo_inbox": [asked]},
            "after": [],
        },
    ]


def progress() -> list[Row]:
    """What a thread remembers of a wake's progress, and of the guard that called."""
    one, two = does(("todo_write", {"items": ["a"]})), does(("todo_write", {"items": ["a", "b"]}))
    first, second, reopened = (
        does(("todo_update", {"id": key, "status": status}))
        for key, status in ((1, "done"), (2, "done"), (1, "open"))
    )
    stops, end = [says(f"stop {n}") for n in range(5)], [second, says("all done")]
    seen, new, on = does(look("p")), does(look("q")), [stops[1], first, *end]
    rows: list[tuple[str, int, str, list[Row], list[Row]]] = [
        ("seen before", 1, "call_model 5", [one, stops[0], seen, stops[1]], [seen, *stops[2:4]]),
        ("worked", 1, "run_tools 3", [two, seen, stops[0], new, seen], on),
        ("no progress", 2, "call_model 5", [one, seen, *stops[:2]], [seen, *stops[2:4]]),
        ("open at the wake", 1, "call_model 3", [two, stops[0]], [first, stops[1], *end]),
        ("most settled", 2, "call_model 6", [two, first, stops[0], reopened, stops[1]], [first, *stops[2:4]]),
        ("called by a stall", 1, "call_model 4", [one, *stops[:2]], [new, stops[2]]),
    ]
    told = []
    for thread, idle, where, before, after in rows:
        settings = {"max_wake_cycles": 5, "max_idle_wakes": idle, "nag_after": 0}
        told.append({"thread": thread, "settings": settings, "dies": where, "before": before, "after": after})
    return told


def others() -> list[Row]:
    """Formats, edits by hand, a thread's own settings, a refused input."""
    one, done = does(("todo_write", {"items": ["a"]})), does(("todo_update", {"id": 1, "status": "done"}))
    ended = [one, done, says("all done")]
    two = does(("todo_update", {"id": 2, "status": "done"}))
    refusal = {"id": 1, "status": "done"}
    seven = says('{"number": 7}')
    own = {"messages": [["user", "go"]], "todo_settings": {"max_wake_cycles": 1, "guard_retries": 0}}
    return [
        {
            "thread": "formatted",
            "format": True,
            "before": [*ended, says('{"number": 42}')],
            "go_on": MORE,
            "after": [says("again"), seven],
        },
        {
            "thread": "format asked for",
            "format": True,
            "before": ended,
            "dies": "call_model 4",
            "after": [says("seven"), seven],
        },
        {
            "thread": "edited",
            "before": ended,
            "edit": {
                "add": ["b", "c", "d"],
                "reopen": [1],
                "block": {3: "no access"},
                "remove": [4],
                "goal": "by hand",
            },
            "go_on": MORE,
            "after": [done, two, one, does(("todo_update", {"id": 5, "status": "done"})), says("all done")],
        },
        {
            "thread": "own settings",
            "begin": own,
            "before": [one, says("stop"), says("no")],
            "go_on": MORE,
            "after": [says("not yet"), does(look("z")), says("never")],
        },
        {
            "thread": "own settings, killed",
            "begin": own,
            "before": [one, says("stop")],
            "dies": "call_model 3",
            "after": [says("no")],
        },
        {
            "thread": "refused",
            "begin": {"messages": [["user", "go"]], "todo_settings": {"dialect": "loki"}},
            "before": [],
            "fails": "InputError",
            "go_on": MORE,
            "after": ended,
        },
        {
            "thread": "refused later",
            "before": [one, says("stop"), says("stop"), says("stop"), says("stop")],
            "then": {"todos": [{"content": " "}]},
            "fails": "InputError",
            "go_on": MORE,
            "after": [done, says("all done")],
        },
        {
            "thread": "refused work",
            "verified": "refuses",
            "before": [one, does(("todo_update", refusal)), does(("todo_update", refusal))],
            "dies": "call_model 4",
            "after": [does(("todo_update", refusal)), says("blocked, then")],
        },
        {
            "thread": "trimmed",
            "trimmed": True,
            "before": [one, says("stop")],
            "dies": "call_model 3",
            "after": [does(look("p")), says("stop 1"), done, says("all done")],
        },
        {
            "thread": "trimmed, idle",
            "trimmed": True,
            "before": [one, *(says(f"stop {n}") for n in range(4))],
            "go_on": MORE,
            "after": [does(look("p")), done, says("all done")],
        },
        {
            "thread": "in a parent",
            "parent": True,
            "before": [does(ASK, EDIT, *one["calls"])],
            "go_on": {"resume": "that one"},
            "after": [done, says("all done")],
        },
    ]

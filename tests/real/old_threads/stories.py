"""What happened in the old threads of every preset, and how each goes on."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def says(text: str, **more: Any) -> Row:
    """A reply of text."""
    return {"text": text, **more}


def does(*made: tuple[str, Any], **more: Any) -> Row:
    """A reply of calls."""
    return {"calls": [list(one) for one in made], **more}


def look(path: str) -> tuple[str, Any]:
    return "look", {"path": path}


EDIT, RISKY = ("edit", {"what": "x"}), ("risky", {"what": "y"})
ASK = ("ask", {"question": "Which?"})
BAD: Row = {"malformed": [["look", "{"]]}
MORE = {"messages": [["user", "go on"]]}


def parley(*stand: str) -> list[tuple[str, Any]]:
    """A list of the items a, b, … as calls: all new where all are open, else the first closed one."""
    if "done" not in stand:
        return [("todo_write", {"items": ["a", "b"][: len(stand)]})]
    return [("todo_update", {"id": stand.count("done"), "status": "done"})]


def loki(*stand: str) -> list[tuple[str, Any]]:
    if "done" not in stand:
        return [
            ("todo__init", {"goal": "the whole"}),
            *(("todo__add", {"task": t}) for t in "ab"[: len(stand)]),
        ]
    return [("todo__done", {"id": stand.count("done")})]


def statuses(stand: tuple[str, ...]) -> list[str]:
    """Closed ones first, one in progress."""
    done = stand.count("done")
    left = len(stand) - done
    return ["completed"] * done + ["in_progress"] * min(left, 1) + ["pending"] * (left - 1)


def checklist(*stand: str) -> list[tuple[str, Any]]:
    items = zip("ab", statuses(stand), strict=False)
    return [("todo", {"items": [{"id": t * 2, "text": t, "status": s} for t, s in items]})]


def write_todos(*stand: str) -> list[tuple[str, Any]]:
    items = zip("ab", statuses(stand), strict=False)
    return [("write_todos", {"todos": [{"content": t, "status": s} for t, s in items]})]


PRESETS: dict[str, tuple[Any, Row]] = {
    "wakeloop": (parley, {"max_wake_cycles": 2, "nag_after": 2}),
    "agentparley": (parley, {"max_wake_cycles": 2}),
    "loki": (loki, {"auto_continue": True, "max_wake_cycles": 2}),
    "lesson": (checklist, {"nag_after": 2}),
    "cubepi": (write_todos, {"nag_after": 2}),
    "cubepi-strict": (write_todos, {"nag_after": 2}),
}


def everywhere(name: str) -> list[Row]:
    """The stories of every preset."""
    listed, settings = PRESETS[name]
    plan, half, whole = listed("open", "open"), listed("done", "open"), listed("done", "done")
    one, settled = listed("open"), listed("done")
    stops = {"wakeloop": 4, "agentparley": 3, "loki": 3, "lesson": 1, "cubepi": 2, "cubepi-strict": 4}[name]
    told = [
        {
            "thread": "idle",
            "before": [does(*plan), *(says(f"stop {n}") for n in range(stops))],
            "go_on": MORE,
            "after": [does(*half, look("z")), does(*whole), says("all done")],
        },
        {
            "thread": "parked",
            "before": [does(ASK, EDIT, *one)],
            "go_on": {"resume": "that one"},
            "after": [does(*settled), says("all done")],
        },
        {
            "thread": "in a round",
            "before": [does(*plan), does(EDIT, RISKY, *half)],
            "dies": "in a tool",
            "after": [does(*whole), says("all done")],
        },
    ]
    if "nag_after" in settings:
        told.append({
            "thread": "nag due",
            "before": [does(*one), does(look("p")), does(EDIT, RISKY)],
            "dies": "in a tool",
            "after": [does(*settled), says("all done")],
        })  # fmt: skip
    if name == "loki":
        stop = says("stop")
        told.append(
            {"thread": "repeating", "before": [does(*one), stop], "dies": "call_model 3", "after": [stop]}
        )
    if name == "cubepi-strict":
        told += strict(one, settled)
    if name == "wakeloop":  # what it was in the midst of is left for a new message
        anew = {"parked": [does(*one), does(*settled), says("all done")]}
        anew["in a round"] = [does(*half), does(*whole), says("all done")]
        told += [
            {**story, "thread": f"{story['thread']}, left", "go_on": MORE, "after": anew[story["thread"]]}
            for story in told
            if story["thread"] in anew
        ]
    return told


def strict(one: Any, settled: Any) -> list[Row]:
    """An escalation: awaited, and told."""
    two = [says("no"), says("never")]
    end = [does(look("q")), does(look("r")), does(*settled), says("all done")]
    return [
        {
            "thread": "explaining",
            "before": [does(*one), says("stop"), *two],
            "dies": "call_model 5",
            "after": [says("It cannot be done.")],
        },
        {
            "thread": "explained",
            "before": [does(*one), says("stop"), *two, says("It cannot be done.")],
            "go_on": MORE,
            "after": end,
        },
        {
            "thread": "correction's second",
            "before": [does(*one), says("stop"), says("no")],
            "dies": "call_model 4",
            "after": [does(look("q")), says("never"), says("It cannot be done.")],
        },
    ]

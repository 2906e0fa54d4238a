"""The notes: each key is declared once, with its lifetime and its check."""

from contextlib import nullcontext
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from wakeloop import DamagedError
from wakeloop.loop.ledger import (
    ROUND_KEYS,
    RUN_KEYS,
    THREAD_KEYS,
    Ledger,
    keys_living,
    read_notes,
)

WRONG: list[Any] = [
    5,
    -1,
    2**53,
    1.5,
    "x",
    True,
    None,
    [5],
    ["x"],
    [["x"]],
    [None],
    {"x": None},
    {5: "x"},
    {},
]
RIGHT: dict[str, Any] = {  # a valid value for each key
    **dict.fromkeys(
        (
            "wake_cycles",
            "idle_wakes",
            "todo_stale_iterations",
            "bad_replies",
            "peak",
            "next_id",
            "writes",
            "budget",
            "idle_rounds",
        ),
        1,
    ),
    **dict.fromkeys(("writes", "budget"), 1),
    **dict.fromkeys(
        (
            "todo_guard_suppressed",
            "unasked",
            "nag",
            "waking",
            "worked",
            "spoke",
            "reported",
            "listed",
            "planned",
            "formats",
            "called",
            "force",
            "unforced",
            "audited",
            "wrote",
            "judged",
            "check",
            "emptied",
            "outdated",
        ),
        True,
    ),
    **dict.fromkeys(
        (
            "again",
            "seen",
            "last_wake",
            "shown",
            "tail",
            "refused",
            "pairs",
            "missing",
            "reasons",
            "vocabulary",
        ),
        "x",
    ),
    **{k: ["x"] for k in ("summaries", "injected", "events", "todo_calls", "standing", "told")},
    "reviews": {"x": {"allowed": ["approve"]}},
    "plan_when": "first",
    **{k: {"x": 1} for k in ("todo_guard_retries", "refusals")},
    "formats": True,
    "spent": [1, 2, 0, 3, 4, 0, None],
    "todo_finalization_correction": True,
    "todo_guard_blocked": {"guard": "x", "message": "y"},
    "called_by": "stalled",
    "end": "truncated",
    "asking": "format",
    "ruling": "wake",
    "uncalled": "said",
    "woken": "question",
    "steered": ["k1"],
    "looked": True,
    "faults": {"x": "y"},
    "open_at_wake": [1, "x"],
    "settings": {"max_wake_cycles": 1},
    "began": ["x", 1, 2],
    "asked_at": ["x", 1],
    "best": [1, 2],
    "settled": [1, 2],
    "hooks": [-1, 2, 0],
    "unlisted": "ran",
    "goal": "due",
    "plan": "due",
    "push": "words",
    "checked": "x",
    "unclaimed": 1,
    "completed": [1, "x"],
    "suspects": [1, "x"],
    "looks": {"x": "due"},
    "reopened": ["x"],
    "verdicts": [[1, "x", ""]],
    "held": [{"x": 1}],
    "base": [{"x": 1}],
    "unseen": {"x": 1},
    "own": 5,
    "given_up": {"x": "blocked"},
    "passed": [1, "x"],
    "cleared": {"results": "x", "head": 5, "kept": ["x"]},
    "counted": [1, 2, 400, 5],
    "window": ["x", 5],
    "last_step": 26,
    "limit_waits": 1,
}
TAKES: dict[str, list[Any]] = {  # which values of WRONG are valid for a key
    "todo_finalization_correction": [True, None],
    "todo_guard_blocked": [{}, None],
    "end": [None],
    "push": ["call"],
    "completed": [[5], ["x"]],
    "suspects": [[5], ["x"]],
    **{
        k: []
        for k in (
            "called_by",
            "asking",
            "ruling",
            "began",
            "asked_at",
            "spent",
            "best",
            "settled",
            "hooks",
            "counted",
            "window",
            "unlisted",
            "goal",
            "plan",
            "plan_when",
            "verdicts",
            "held",
            "base",
            "uncalled",
            "woken",
        )
    },
    "passed": [[5], ["x"]],
    "open_at_wake": [[5], ["x"]],
    "settings": [{}, {"x": None}],
    "unseen": [{}, {"x": None}],
    "cleared": [{}],
}
SAME_KIND: dict[type, list[Any]] = {int: [5], bool: [True], str: ["x"], list: [["x"]], dict: [{}]}


def test_a_key_has_one_lifetime() -> None:
    for key, hint in get_type_hints(Ledger, include_extras=True).items():
        lives = [word for word in hint.__metadata__ if word in ("thread", "activation", "run", "round")]
        assert len(lives) == 1, key
    assert (
        keys_living("thread", "activation", "run", "round") == Ledger.__annotations__.keys() == RIGHT.keys()
    )
    assert get_origin(get_args(Ledger.__annotations__["ruling"])[0]) is not None


def test_which_keys_are_dropped_when() -> None:
    assert sorted(THREAD_KEYS) == [
        "cleared", "counted", "events", "goal", "limit_waits", "listed", "missing", "next_id", "own",
        "passed", "refusals", "shown", "steered", "summaries", "suspects", "tail", "todo_guard_suppressed",
        "todo_stale_iterations", "told", "unclaimed", "unseen", "vocabulary", "window", "writes",
    ]  # fmt: skip
    assert sorted(ROUND_KEYS) == [
        "base", "check", "completed", "faults", "held", "judged", "looked", "nag", "outdated", "plan",
        "plan_when", "reviews", "todo_calls", "verdicts",
    ]  # fmt: skip
    assert sorted(RUN_KEYS - ROUND_KEYS) == [
        "again", "asking", "bad_replies", "began", "called", "called_by", "emptied", "end", "force",
        "formats", "hooks", "last_step", "open_at_wake", "push", "reopened", "standing", "unasked", "waking",
        "woken", "worked",
    ]  # fmt: skip


@pytest.mark.parametrize("key", RIGHT)
def test_every_key_and_every_wrong_type(key: str) -> None:
    taken = [RIGHT[key], *TAKES.get(key, SAME_KIND[type(RIGHT[key])])]
    for value in taken:
        read_notes({"todo_ledger": {key: value}})
    for value in WRONG:
        if not any(type(value) is type(one) and value == one for one in taken):
            with pytest.raises(DamagedError, match=rf"todo_ledger has .+ under '{key}'"):
                read_notes({"todo_ledger": {key: value}})


@pytest.mark.parametrize("ledger", [[1], "x", 5, [["a", 1]], True])
def test_what_is_not_a_mapping(ledger: Any) -> None:
    with pytest.raises(DamagedError, match="todo_ledger must be a mapping"):
        read_notes({"todo_ledger": ledger})


def test_a_state_without_notes() -> None:
    assert read_notes({}) == read_notes({"todo_ledger": None}) == {}


@pytest.mark.parametrize(
    ("spent", "fits"),
    [
        ([1, 2, 0, 3, 4, 0, 5], True),
        ([1, 2, 0, 3, 4, 0, None, 1], True),
        ([1, 2, 0, 3, 4, 0], False),
        ([1, 2, 0, 3, 4, 0, 5, 1, 1], False),
        ([None, 2, 0, 3, 4, 0, 5], False),
        ([1, 2, 0, 3, 4, 0, 5, None], False),
        ([1, 2, 0, 3, 4, 0, 5.5], False),
        ([1, 2, 0, 3, -4, 0, 5], False),
        ([1, 2, 0, 3, 2**53, 0, 5], False),
        ([True, 2, 0, 3, 4, 0, 5], False),
    ],
)
def test_spending_is_a_list_of_integers(spent: list[Any], fits: bool) -> None:
    with nullcontext() if fits else pytest.raises(DamagedError, match="under 'spent'"):
        read_notes({"todo_ledger": {"spent": spent}})

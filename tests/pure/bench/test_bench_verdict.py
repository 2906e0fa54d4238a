"""The verdict of a run: one line per agent, and whether this model needs a list."""

from __future__ import annotations

from typing import Any

import pytest
from rows import STUDY, row

from wakeloop.bench.verdict import describe_partial_verdict, describe_verdict

PRICED = STUDY.with_changes(prices={"input": 10, "cached": 1, "output": 80})
DONE: dict[str, Any] = {"completed": True}
NOT: dict[str, Any] = {"completed": False}


def some(agent: str, done: int, of: int = 10, **values: Any) -> list[dict[str, Any]]:
    return [row(agent, seed, **(DONE if seed <= done else NOT), **values) for seed in range(1, of + 1)]


CASES = {
    "a plain loop is enough": (
        [*some("plain", 10), *some("wakeloop", 10, input=1200)],
        "plain completes 100% for $0.0104, wakeloop completes 100% for $0.0124: you do not need a list.",
    ),
    "both, and a list costs less": (
        [*some("plain", 10, input=1200), *some("wakeloop", 10)],
        "plain completes 100% for $0.0124, wakeloop completes 100% for $0.0104: a list costs less.",
    ),
    "a list completes more": (
        [*some("plain", 2), *some("wakeloop", 10)],
        "wakeloop completes 100% for $0.0104, plain completes 20% for $0.052: a list pays.",
    ),
    "too few runs": (
        [*some("plain", 2, 4), *some("wakeloop", 4, 4)],
        "wakeloop completes 100% for $0.0104, plain completes 50% for $0.0208: too few runs to tell.",
    ),
    "nobody": (
        [*some("plain", 0), *some("wakeloop", 0)],
        "weak completes none of these jobs under any agent: try shorter ones, or another model.",
    ),
    "no control": (
        some("wakeloop", 10),
        "To learn whether weak needs a list, compare wakeloop with plain or asked 3.",
    ),
}


@pytest.mark.parametrize(("rows", "sentence"), CASES.values(), ids=CASES)
def test_one_sentence(rows: list[dict[str, Any]], sentence: str) -> None:
    assert [*describe_verdict(rows, PRICED)][-1] == sentence


def test_one_line_per_agent() -> None:
    rows = [*some("plain", 0), *some("wakeloop", 10)]
    assert [*describe_verdict(rows, STUDY)][:3] == [
        "weak:",
        "  plain completes 0% (10 runs)",
        "  wakeloop completes 100% for 1,040 tokens (10 runs)",
    ]


def test_a_partial_verdict_is_one_sentence_about_the_jobs_that_every_agent_finished() -> None:
    rows = [*some("plain", 2, 3), *some("wakeloop", 2, 2)]  # wakeloop's third job was not run
    [sentence] = describe_partial_verdict(rows, PRICED.with_changes(agents=["plain", "wakeloop"]))
    assert sentence == (
        "Partial verdict on weak, 2 runs per agent: plain completes 100% for $0.0104, "
        "wakeloop completes 100% for $0.0104: you do not need a list."
    )


def test_a_partial_verdict_has_one_sentence_per_model() -> None:
    study = PRICED.with_changes(agents=["plain", "wakeloop"])
    rows = [*some("plain", 1, 1), *some("wakeloop", 1, 1), *some("plain", 1, 1, model="weak:stop=0.1")]
    first, second = describe_partial_verdict(rows, study)
    assert first.startswith("Partial verdict on weak, 1 run per agent: ")
    assert second == "No verdict on weak:stop=0.1 yet: no job was finished by every agent."

"""Sentences with numbers in them, for one and for two."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from wakeloop.bench.study import load_study
from wakeloop.cli import bench_study
from wakeloop.cli.mcp_tools import MAX_RESULT, cut_middle, format_base64_size
from wakeloop.cli.sessions.commands import format_status
from wakeloop.display import formatting
from wakeloop.display.screen import Screen
from wakeloop.sessions.host import SessionStatus

ODD = re.compile(r"\b1 (?:\w+ )?(\w+s)\b|\(s\)|\b1\b[^,;:.]*\b(?:are|remain|have|were)\b")
INNOCENT = ("is", "was", "has", "s", "remains")


def spent(count: int) -> dict[str, Any]:
    counts = dict.fromkeys(("requests", "input", "cached", "output", "failed_calls"), count)
    return {**counts, "output": 0, "cost": None, "seconds": 0.0, "estimated": False}


def event(kind: str, **more: Any) -> Callable[[int], str]:
    return lambda n: (
        Screen()
        .handle_event({"type": kind, "reasons": [], **more, **{k: n for k, v in more.items() if v is int}})[0]
        .text
    )


def estimated(count: int) -> str:
    found = bench_study.Estimate(*[count] * 8)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bench_study, "plan_study", lambda *_, **__: ())
        patched.setattr(bench_study, "estimate_run", lambda *_: found)
        return "\n".join(bench_study.format_estimate(load_study("quick"), count))


def session(count: int) -> str:
    status = SessionStatus("t", "main", "idle", reason="stalled", open=count, wakes=count, budget=count)
    return format_status(status)


SENTENCES: dict[str, Callable[[int], str]] = {
    **{
        reason: lambda n, reason=reason: formatting.format_ending(
            {"state": "idle", "reason": reason, "open": n, "budget": n}
        )
        for reason in formatting.SENTENCES
    },
    "spending": lambda n: formatting.format_spent(spent(n)),  # type: ignore[arg-type]
    "trouble": lambda n: formatting.format_trouble(
        {"spent": spent(n)}, n * [{"id": 1, "content": "a", "status": "blocked"}]
    ),
    "first line": lambda n: formatting.format_first_line("a\n" + n * "b\n"),
    "unseen": lambda n: "\n".join(formatting.format_full_text(n * "\x1b")),
    "wake": event("wake", cycle=1, budget=1, open=int),
    "nag": event("nag", rounds=int, open=int),
    "guard": event("guard", action="correct", reason="stalled", retry=1, retries=1, open=int),
    "final report": event("guard", action="report", reason="stalled", open=int),
    "a long result": lambda n: cut_middle((MAX_RESULT + n) * "a").split("\n")[1],
    "bytes": lambda n: format_base64_size("QUJD"[: n + 1]),
    "estimate": estimated,
    "seconds": bench_study.format_duration,
    "a session": session,
}


@pytest.mark.parametrize("which", SENTENCES)
def test_grammar_at_one(which: str) -> None:
    one, two = SENTENCES[which](1), SENTENCES[which](2)
    assert one != two or which in ("settled", "answered", "interrupted", "waiting")
    assert [found[0] for found in ODD.finditer(one) if (found[1] or "") not in INNOCENT] == []

"""Made-up result rows."""

from __future__ import annotations

from typing import Any

from wakeloop.bench.study import Study

STUDY = Study(
    name="one",
    hypothesis="It completes more.",
    reference="plain",
    smallest=0.1,
    agents=("plain", "wakeloop"),
    models=("weak",),
    tasks=("make-files:5",),
    seeds=2,
)


def row(agent: str = "plain", seed: int = 1, **values: Any) -> dict[str, Any]:
    """Return the row of a job completed in two requests, unless `values` say otherwise."""
    return {
        "agent": agent,
        "model": "weak",
        "family": "make-files",
        "parts": 5,
        "seed": seed,
        "results": 0,
        "kind": "work",
        "completed": True,
        "share": 1.0,
        "end": "done",
        "reason": "",
        "claims": True,
        "listed": 0,
        "wakes": 0,
        "damage": 0,
        "calls": 5,
        "failed": 0,
        "requests": 2,
        "input": 1000,
        "cached": 400,
        "output": 50,
        "estimated": False,
        "seconds": 0.5,
        **values,
    }

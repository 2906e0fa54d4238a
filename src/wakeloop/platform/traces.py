"""Adds activations, wake cycles and events to traces.

A tracer that keeps runs (LangSmith's, OpenInference's) reads a run's metadata when the run ends, so metadata
can be added until then. OpenTelemetry's current span takes attributes and events. Nothing is imported for
that: a tracer that listens has been imported already.
"""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from wakeloop.platform.direct_calls import has_no_listeners

RUN_EVENTS = frozenset(("activated", "wake", "spent", "parked"))
"""Events that are also noted on the run of the whole graph."""
TRACED_EVENTS = RUN_EVENTS | {"guard", "nag", "steered"}


def mark_as_agent(config: RunnableConfig | None, graph: Runnable[Any, Any]) -> RunnableConfig | None:
    """Return a config whose run, and none below it, counts as an agent in OpenTelemetry's convention.

    In the config's own metadata the name would be stored with every checkpoint and passed to agents inside.
    Without listeners the config is returned unchanged, because LangGraph copies a manager in each step.
    """
    callbacks: Any = (config or {}).get("callbacks")
    if isinstance(callbacks, BaseCallbackManager):
        manager = callbacks.copy()
    else:
        manager = BaseCallbackManager([*(callbacks or ())], [*(callbacks or ())])
    outer = (var_child_runnable_config.get(), getattr(graph, "config", None))
    if not manager.handlers and all(has_no_listeners(other or {}) for other in outer):
        return config
    manager.add_metadata({"agent_name": graph.get_name()}, inherit=False)
    return {**(config or {}), "callbacks": manager}


def stream_event(event: Mapping[str, Any]) -> None:
    """Stream an event with the time at which it happened."""
    get_runtime().stream_writer({**event, "at": round(time.time(), 3)})


def emit_event(event: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
    """Stream an event, and add it to the traces; `ledger` has its activation and wake cycle."""
    stream_event(event)
    config = get_config()
    if event["type"] not in TRACED_EVENTS or has_no_listeners(config):
        return
    notes = _event_notes(event, ledger)
    on_graph = event["type"] in RUN_EVENTS
    for run in _find_runs(config["callbacks"], on_graph=on_graph):
        metadata = {f"wakeloop_{key}": value for key, value in notes.items()}
        run.extra["metadata"] = {**run.extra.get("metadata", {}), **metadata}
    opentelemetry = sys.modules.get("opentelemetry.trace")
    if opentelemetry is not None:
        attributes = {f"wakeloop.{key}": value for key, value in notes.items() if value is not None}
        span = opentelemetry.get_current_span()
        span.add_event(f"wakeloop.{event['type']}", attributes)
        if on_graph:
            span.set_attributes(attributes)


def _event_notes(event: Mapping[str, Any], ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's values as flat notes, with the activation and wake cycle it belongs to."""
    notes: dict[str, Any] = {}
    if ledger.get("began"):
        notes["activation"] = ledger["began"][0]
    notes["cycle"] = ledger.get("wake_cycles", 0)
    # what one exchange used is on the model's own run
    notes |= dict(_flatten({key: value for key, value in event.items() if key != "exchange"}))
    return notes


def _flatten(event: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an event and of the mappings in it; those of the session get no prefix."""
    for key, value in event.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, "" if key == "session" else f"{key}_")
        elif key != "type":
            yield f"{prefix}{key}", value


def _find_runs(callbacks: Any, *, on_graph: bool) -> Iterator[Any]:
    """Yield the run of the current node, and with `on_graph` the graph's, of each tracer that keeps runs."""
    for handler in callbacks.handlers:
        runs: Any = getattr(handler, "run_map", None)
        run: Any = runs.get(str(callbacks.parent_run_id)) if isinstance(runs, dict) else None
        if not isinstance(getattr(run, "extra", None), dict):
            continue
        yield run
        parent = runs.get(str(run.parent_run_id))
        if on_graph and parent is not None:
            yield parent

"""What tracers are told beyond what LangChain tells them.

A tracer that keeps runs (LangSmith's, OpenInference's) reads a run's metadata when the run ends: until then
it can be added to. OpenTelemetry's own span, where one is current, takes attributes and events. Neither is
imported here: what listens is there already.
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
"""Events that are noted on the run of the whole graph, too."""
TRACED_EVENTS = RUN_EVENTS | {"guard", "nag"}


def mark_as_agent(config: RunnableConfig | None, graph: Runnable[Any, Any]) -> RunnableConfig | None:
    """Return a config whose run, and none below it, is an agent to OpenTelemetry's convention.

    As the config's own metadata the name would be stored with every checkpoint, and given to agents within.
    Where nobody listens the config stays as it is: LangGraph copies a manager in each step.
    """
    given: Any = (config or {}).get("callbacks")
    if isinstance(given, BaseCallbackManager):
        manager = given.copy()
    else:
        manager = BaseCallbackManager([*(given or ())], [*(given or ())])
    around = (var_child_runnable_config.get(), getattr(graph, "config", None))
    if not manager.handlers and all(has_no_listeners(other or {}) for other in around):
        return config
    manager.add_metadata({"agent_name": graph.get_name()}, inherit=False)
    return {**(config or {}), "callbacks": manager}


def stream_event(event: Mapping[str, Any]) -> None:
    """Stream an event, and when it happened."""
    get_runtime().stream_writer({**event, "at": round(time.time(), 3)})


def emit_event(event: Mapping[str, Any], ledger: Mapping[str, Any]) -> None:
    """Stream an event, and note it where a tracer listens; `ledger` knows the activation and the cycle."""
    stream_event(event)
    config = get_config()
    if event["type"] not in TRACED_EVENTS or has_no_listeners(config):
        return
    notes = _event_notes(event, ledger)
    for run in _find_runs(config["callbacks"], whole=event["type"] in RUN_EVENTS):
        metadata = {f"wakeloop_{key}": value for key, value in notes.items()}
        run.extra["metadata"] = {**run.extra.get("metadata", {}), **metadata}
    if (traces := sys.modules.get("opentelemetry.trace")) is not None:
        attributes = {f"wakeloop.{key}": value for key, value in notes.items() if value is not None}
        span = traces.get_current_span()
        span.add_event(f"wakeloop.{event['type']}", attributes)
        if event["type"] in RUN_EVENTS:
            span.set_attributes(attributes)


def _event_notes(event: Mapping[str, Any], ledger: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's values side by side, and which activation and cycle it belongs to.

    What one exchange took stands on the model's own run.
    """
    began = {"activation": ledger["began"][0]} if ledger.get("began") else {}
    return {
        **began,
        "cycle": ledger.get("wake_cycles", 0),
        **dict(_flatten({k: v for k, v in event.items() if k != "exchange"})),
    }


def _flatten(event: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in event.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, "" if key == "session" else f"{key}_")
        elif key != "type":
            yield f"{prefix}{key}", value


def _find_runs(callbacks: Any, *, whole: bool) -> Iterator[Any]:
    """Find the run of the node that is at work, and the graph's, with each tracer that keeps runs."""
    for handler in callbacks.handlers:
        kept: Any = getattr(handler, "run_map", None)
        run: Any = kept.get(str(callbacks.parent_run_id)) if isinstance(kept, dict) else None
        if isinstance(getattr(run, "extra", None), dict):
            yield run
            if whole and (parent := kept.get(str(run.parent_run_id))) is not None:
                yield parent

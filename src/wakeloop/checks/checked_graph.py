"""A compiled graph that checks inputs and configs."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any

from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from wakeloop.checks.run_inputs import (
    check_context,
    check_fork,
    check_run,
    check_serializable,
    check_thread,
    drop_list_changes,
    is_nested_run,
    refuse_dropping,
    refuse_empty,
    refuse_lost_answer,
)
from wakeloop.platform.checkpointers import find_interrupt_values
from wakeloop.platform.saver_aware_graph import stored_channels
from wakeloop.platform.traces import mark_as_agent
from wakeloop.text.drawing import draw_svg, graph_edges


def _checked(method: Callable[..., Any]) -> Any:
    """Return a method that checks the config of a thread to read or edit, and the updates of a fork."""

    @wraps(method)
    def call(self: Any, config: Any, *supersteps: Any, **more: Any) -> Any:
        check_thread(config, keeps=self._keeps_threads())
        for updates in (*supersteps, more.get("supersteps", ())):
            check_fork(config, updates)
        return method(self, config, *supersteps, **more)

    return call


class CheckedGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """A compiled agent. A misspelled key of an input or config raises `InputError` with the right one."""

    get_state = _checked(CompiledStateGraph.get_state)
    aget_state = _checked(CompiledStateGraph.aget_state)
    get_state_history = _checked(CompiledStateGraph.get_state_history)
    aget_state_history = _checked(CompiledStateGraph.aget_state_history)
    bulk_update_state = _checked(CompiledStateGraph.bulk_update_state)  # update_state calls it
    abulk_update_state = _checked(CompiledStateGraph.abulk_update_state)

    def stream(self, input: Any, config: Any = None, **more: Any) -> Iterator[Any]:  # noqa: A002 - LangGraph's own word
        """Run; `invoke` calls this."""
        self._check_run(input, config, more)
        if (saver := self._find_saver_to_ask(input, config)) is not None:
            found = saver.get_tuple(self._find_thread(config))
            asked = list(find_interrupt_values(found))
            if input is None:
                refuse_empty(found, self._find_thread(config))
            elif not isinstance(input, Command):
                refuse_dropping(asked)
            elif not asked:
                refuse_lost_answer(super().get_state(self._find_thread(config)))
        return super().stream(drop_list_changes(input), mark_as_agent(config, self), **more)

    def astream(self, input: Any, config: Any = None, **more: Any) -> AsyncIterator[Any]:  # noqa: A002
        """Run in an event loop; `ainvoke` calls this."""
        self._check_run(input, config, more)
        run = super().astream(drop_list_changes(input), mark_as_agent(config, self), **more)
        saver = self._find_saver_to_ask(input, config)
        return run if saver is None else self._stream_if_it_fits(run, saver, input, config)

    async def _stream_if_it_fits(
        self, run: Any, saver: BaseCheckpointSaver[Any], given: Any, config: Any
    ) -> AsyncIterator[Any]:
        async with aclosing(run):
            found = await saver.aget_tuple(self._find_thread(config))
            asked = list(find_interrupt_values(found))
            if given is None:
                refuse_empty(found, self._find_thread(config))
            elif not isinstance(given, Command):
                refuse_dropping(asked)
            elif not asked:
                refuse_lost_answer(await super().aget_state(self._find_thread(config)))
            async for part in run:
                yield part

    def _find_thread(self, config: Any) -> Any:
        return ensure_config(merge_configs(self.config, config))

    def _find_saver_to_ask(self, given: Any, config: Any) -> BaseCheckpointSaver[Any] | None:
        """Return the saver to ask what waits in the thread; None if this input does nothing to it."""
        saver = self.checkpointer
        if isinstance(given, Command) and given.resume is None:
            return None
        return saver if isinstance(saver, BaseCheckpointSaver) and not is_nested_run(config) else None

    def _keeps_threads(self) -> bool:
        """Tell whether a config has to name a thread: there is a checkpointer, and no binding names one."""
        bound = (self.config or {}).get("configurable", {})
        return isinstance(self.checkpointer, BaseCheckpointSaver) and "thread_id" not in bound

    def _check_run(self, given: Any, config: Any, more: dict[str, Any]) -> None:
        if is_nested_run(config):
            return  # a nested graph is given its parent's whole state: unknown keys are normal there
        check_run(given, config, self.builder.input_schema.__annotations__, keeps=self._keeps_threads())
        check_context(more.get("context"), getattr(self.builder.context_schema, "__annotations__", ()))
        saver = self.checkpointer
        if given is None and saver is None:
            refuse_empty(None, {})
        if isinstance(saver, BaseCheckpointSaver) and given is not None:
            at_exit = more.get("durability") == "exit" or more.get("checkpoint_during") is False
            check_serializable(
                given, saver.serde.dumps_typed, stored_channels(self.channels), at_exit=at_exit
            )

    def _repr_pretty_(self, printer: Any, *_: Any) -> None:
        printer.text(self._describe())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Show the graph in a notebook. LangGraph would ask a server on the network to draw it."""
        drawn = self.get_graph()
        edges = graph_edges(drawn)
        ways = []  # in words, too: a notebook that is not trusted shows no SVG
        for start, end, label in edges:
            ways.append(f"  {start} → {end}: {label}" if label else f"  {start} → {end}")
        return {
            "text/plain": "\n".join([self._describe(), *ways]),
            "image/svg+xml": draw_svg(self.get_name(), drawn.nodes, edges),
        }

    def _describe(self) -> str:
        return f"<{type(self).__name__} {self.get_name()!r}: {', '.join(self.builder.nodes)}>"

"""`WakeLoopMiddleware`: the rules of the graph for an agent."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain.agents.middleware.types import (
    AgentMiddleware,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
    hook_config,
)
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import Command

from wakeloop.checks import argument_values
from wakeloop.checks.argument_names import MIDDLEWARE_HINTS, reject_unknown_arguments
from wakeloop.dialects import get_dialect
from wakeloop.errors import SettingsError
from wakeloop.loop.ledger import read_notes
from wakeloop.loop.overrides import build_context_form
from wakeloop.middleware.agent_request import AgentRequest
from wakeloop.middleware.agent_state import WakeLoopState
from wakeloop.middleware.agent_tools import answer_tool_error, bind_result, wall_off_call
from wakeloop.middleware.draft import with_message_ids
from wakeloop.middleware.list_place import take_place
from wakeloop.middleware.turns import Turns
from wakeloop.middleware.watched_request import TRACE_POLICY, acall_handler, call_handler
from wakeloop.model.request import Systems
from wakeloop.nodes.nag import Nag
from wakeloop.platform.tool_boundary import arun_within, run_within
from wakeloop.settings import LoopSettings
from wakeloop.text.wording import describe_type
from wakeloop.thread.interrupts import run_approved
from wakeloop.thread.judges import DoneWhen, Judges, Verifier, Verify
from wakeloop.thread.tool_reviews import ToolReviews


class WakeLoopMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keep a `create_agent` agent awake by its own todo list; it replaces `TodoListMiddleware`.

    Its place in the list of middleware does not matter.

    >>> from langchain.agents import create_agent
    >>> from wakeloop.middleware import WakeLoopMiddleware
    >>> from wakeloop.testing import ScriptedModel
    >>> agent = create_agent(ScriptedModel(["Hello."]), middleware=[WakeLoopMiddleware()])
    >>> agent.invoke({"messages": [("user", "Hi.")]})["todo_session"]["reason"]
    'answered'
    """

    state_schema = WakeLoopState
    trace_policy = TRACE_POLICY

    @reject_unknown_arguments(MIDDLEWARE_HINTS)
    def __init__(
        self,
        *,
        system_prompt: str | None = None,
        tool_description: str | None = None,
        settings: str | LoopSettings | Mapping[str, Any] = "langchain",
        verify: Verify | None = None,
        done_when: DoneWhen | None = None,
    ) -> None:
        """Take the arguments of `TodoListMiddleware`, and those of `create_todo_agent` that concern the list.

        Args:
            system_prompt: Instructions in place of the dialect's.
            tool_description: The description of the main todo tool.
            settings: A preset's name, `LoopSettings`, or a mapping of some settings over a preset (the one
                under the key `preset`, else `langchain`).
            verify: `verify(todo, state)`, sync or async, called before an item becomes completed. It returns
                None to accept, or a string that says why not.
            done_when: `done_when(state)`, sync or async, asked at the end of each turn whether the goal is
                met: None, a string that says what is missing, `impossible("why")` or `wait("for what")`.

        Raises:
            SettingsError: An unknown preset, dialect or setting.
            ArgumentError: An unknown argument, or a `verify` or `done_when` that cannot be called.
        """
        super().__init__()
        argument_values.check_callable("verify", verify, "todo", "state")
        argument_values.check_callable("done_when", done_when, "state")
        self.settings = _settings(settings, system_prompt, tool_description)
        self.dialect = get_dialect(self.settings.dialect).for_settings(self.settings)
        judges = self._judges = Judges(Verifier(verify), done_when)
        self._turns = Turns.build(self.dialect, self.settings, judges)
        self._nag = Nag(self.dialect, self.settings)
        self._systems: Systems = {}

    @property
    def tools(self) -> Sequence[BaseTool]:  # type: ignore[override]
        """None: the todo tools are bound to each request. Asking for them is the moment to take a place."""
        take_place(self)
        return ()

    @property
    def context_schema(self) -> type[Any]:
        """The schema of a context with `todo_settings`, for `create_agent(context_schema=...)`.

        LangSmith Studio makes a form of it. A context's settings rank above the thread's.
        """
        return build_context_form(self.settings)

    @hook_config(can_jump_to=["model", "end"])
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Open an activation."""
        config = get_config()
        opening = self._turns.activate(with_message_ids(state), config)
        return self._judges.finish(self._turns.open_activation(state, opening, config))  # type: ignore[no-any-return]

    @hook_config(can_jump_to=["model", "end"])
    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same."""
        config = get_config()
        opening = await self._turns.activate.acall(with_message_ids(state), config)
        return await self._judges.afinish(self._turns.open_activation(state, opening, config))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Ask the model by the rules, and read its reply."""
        way = AgentRequest(self._turns, self._nag, request, get_config(), self._systems)
        self._judges.finish(way.check_items())
        while (asked := self._judges.finish(way.prepare())) is not None:
            ear = way.watch_reply()
            if not way.take_reply(call_handler(handler, asked, ear, way.config), ear):
                break
        return way.build_response()

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ExtendedModelResponse[Any]:
        """Do the same; the model is awaited."""
        way = AgentRequest(self._turns, self._nag, request, get_config(), self._systems)
        await self._judges.afinish(way.check_items())
        while (asked := await self._judges.afinish(way.prepare())) is not None:
            ear = way.watch_reply()
            if not way.take_reply(await acall_handler(handler, asked, ear, way.config), ear):
                break
        return way.build_response()

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Run a call inside its boundary; if it waits for a person, as they decided it."""
        call, answered = self._decide(request)
        if answered is not None:
            return answered
        request, limit = wall_off_call(request)
        try:
            with run_approved(call):
                return bind_result(request, run_within(limit, partial(handler, request)))
        except BaseException as error:  # noqa: BLE001 - of a tool
            return answer_tool_error(call, request.tool, error)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Do the same; the tool is awaited."""
        call, answered = self._decide(request)
        if answered is not None:
            return answered
        request, limit = wall_off_call(request)
        try:
            with run_approved(call):
                return bind_result(request, await arun_within(limit, handler(request)))
        except BaseException as error:  # noqa: BLE001 - of a tool
            return answer_tool_error(call, request.tool, error)

    def _decide(self, request: ToolCallRequest) -> tuple[dict[str, Any], ToolMessage | None]:
        return ToolReviews().decide_noted({**request.tool_call}, request.tool, read_notes(request.state))

    @hook_config(can_jump_to=["model", "end"])
    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Answer a round's todo calls, or rule on a turn's end and wake."""
        return self._turns.follow_reply(state, get_config())  # type: ignore[no-any-return]

    @hook_config(can_jump_to=["model", "end"])
    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same; an asynchronous verify is awaited."""
        return await self._turns.afollow_reply(state, get_config())  # type: ignore[no-any-return]

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Write how the run has ended."""
        return self._judges.finish(self._turns.park(state))

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Do the same."""
        return await self._judges.afinish(self._turns.park(state))


def _settings(given: Any, system_prompt: str | None, tool_description: str | None) -> LoopSettings:
    if given == "auto":
        raise SettingsError(
            "settings='auto' needs the name of a model. Write settings=LoopSettings.for_model('NAME')."
        )
    if isinstance(given, Mapping) and "preset" not in given:
        given = {"preset": "langchain", **given}
    settings = argument_values.resolve_settings("langchain" if given is None else given)
    update: dict[str, Any] = {}
    if system_prompt is not None:
        if not isinstance(system_prompt, str):
            raise SettingsError(f"system_prompt must be a string, not {describe_type(system_prompt)}.")
        update["prompts"] = {**settings.prompts, "instructions": system_prompt.replace("$", "$$")}
    if tool_description is not None:
        update["tool_description"] = tool_description
    return settings.model_copy(update=update) if update else settings

"""Builds an agent: checks the arguments, makes the nodes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, get_type_hints

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import BaseTool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from typing_extensions import TypedDict  # pydantic makes schemas of typing's from 3.12 on

from wakeloop.checks import argument_values
from wakeloop.checks.argument_names import AGENT_HINTS, reject_unknown_arguments
from wakeloop.checks.argument_values import split_tools, unapprovable_tools
from wakeloop.checks.models import check_model
from wakeloop.dialects import get_dialect
from wakeloop.errors import SettingsError
from wakeloop.graph import Schemas, draw_graph
from wakeloop.loop.overrides import build_context_form
from wakeloop.loop.spending import check_price
from wakeloop.model.bindings import ModelBindings
from wakeloop.model.chat_models import create_model
from wakeloop.model.usage import model_name_of
from wakeloop.model.user_code import wall_off_exit
from wakeloop.nodes.activate import Activate
from wakeloop.nodes.call_model import CallModel
from wakeloop.nodes.finalization_guard import FinalizationGuard
from wakeloop.nodes.nag import Nag
from wakeloop.nodes.review_calls import ReviewCalls
from wakeloop.nodes.run_tools import RunTools
from wakeloop.nodes.validate_todos import ValidateTodos
from wakeloop.nodes.wake import Wake
from wakeloop.platform.runnables import Node
from wakeloop.settings import LoopSettings
from wakeloop.state import INPUT_CHANNELS, OUTPUT_CHANNELS, Steps, TodoState
from wakeloop.thread.judges import DoneWhen, Judges, Verifier, Verify
from wakeloop.thread.tool_reviews import InterruptMode, ToolReviews

DEFAULT_NAME = "wakeloop"  # of an agent without a name
Tool = BaseTool | Callable[..., Any] | dict[str, Any]
InterruptOn = Mapping[str, bool | Sequence[str] | Mapping[str, Any]]


@reject_unknown_arguments(AGENT_HINTS)
def build_todo_graph(
    model: str | BaseChatModel,
    tools: Sequence[Tool] = (),
    system_prompt: str | SystemMessage | None = None,
    settings: str | LoopSettings | Mapping[str, Any] = "wakeloop",
    verify: Verify | None = None,
    done_when: DoneWhen | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    pre_model_hook: Runnable[Any, Any] | Callable[..., Any] | None = None,
    interrupt_on: InterruptOn | None = None,
    interrupt_mode: InterruptMode = "batched",
    name: str = DEFAULT_NAME,
) -> StateGraph[Any, Any, Any, Any]:
    """Return the graph of `create_todo_agent`, not compiled; the arguments are the same.

    `name` is the one that replies carry; the graph gets its own name from `compile`.

    >>> from wakeloop import build_todo_graph
    >>> from wakeloop.testing import ScriptedModel
    >>> graph = build_todo_graph(ScriptedModel(["Done."]))
    >>> graph.compile().invoke({"messages": [("user", "Hello.")]})["messages"][-1].content
    'Done.'
    """
    base = argument_values.resolve_settings(settings, model)
    dialect = get_dialect(base.dialect).for_settings(base)
    runnable, provided = split_tools(argument_values.list_tools(tools), dialect)
    argument_values.check_response_format(response_format)
    argument_values.check_callable("verify", verify, "todo", "state")
    argument_values.check_callable("done_when", done_when, "state")
    argument_values.check_callable("pre_model_hook", pre_model_hook, "state")
    argument_values.check_name(name)
    hook = pre_model_hook
    if hook is not None and not isinstance(hook, Runnable):
        hook = RunnableLambda(wall_off_exit(hook))
    schemas = _build_schemas(
        state_schema or TodoState, context_schema or build_context_form(base), dialect.tool_names
    )
    check_model(model)
    chat = create_model(model) if isinstance(model, str) else model
    check_price(base, model_name_of(chat))
    reviews = ToolReviews.parse(
        interrupt_on, runnable, unapprovable_tools(provided, dialect), base.prompts, interrupt_mode
    )
    judges = Judges(Verifier(verify, chat), done_when)
    bindings = ModelBindings.create(chat, [*runnable.values(), *provided], dialect, base, response_format)
    nodes: dict[str, Node] = {
        "activate": Activate(
            dialect, base, judges, bindings.full is not None, bool(reviews.by_tool), model=bindings.name
        ),
        "call_model": CallModel(
            dialect,
            base,
            bindings,
            tools=runnable,
            prompt=argument_values.make_system_message(system_prompt),
            hook=hook,
            channels=frozenset(get_type_hints(state_schema or TodoState)),
            speaker=None if name == DEFAULT_NAME else name,
            reviews=reviews,
            verifies=verify is not None,
        ),
        "run_tools": RunTools.sort_tools(runnable, chat, todo_tools=dialect.tool_names, reviews=reviews),
        "review_calls": ReviewCalls(runnable, reviews),
        "validate_todos": ValidateTodos(dialect, base, judges.verifier),
        "nag": Nag(dialect, base),
        "finalization_guard": FinalizationGuard(
            dialect, base, judges, formats=response_format is not None, reviews=reviews.are_together
        ),
        "wake": Wake(dialect, base, whole=pre_model_hook is not None),
    }
    return draw_graph(nodes, schemas)


@reject_unknown_arguments(AGENT_HINTS)
def create_todo_agent(
    model: str | BaseChatModel,
    tools: Sequence[Tool] = (),
    system_prompt: str | SystemMessage | None = None,
    settings: str | LoopSettings | Mapping[str, Any] = "wakeloop",
    verify: Verify | None = None,
    done_when: DoneWhen | None = None,
    response_format: Any = None,
    state_schema: type[Any] | None = None,
    context_schema: type[Any] | None = None,
    pre_model_hook: Runnable[Any, Any] | Callable[..., Any] | None = None,
    interrupt_on: InterruptOn | None = None,
    interrupt_mode: InterruptMode = "batched",
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,  # noqa: FBT001 - as LangGraph's own compile
    store: BaseStore | None = None,
    name: str = DEFAULT_NAME,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build an agent whose own todo list keeps it awake.

    Args:
        model: `"openai:NAME"`, another provider's `"PROVIDER:NAME"`, or any chat model that can call tools.
        tools: LangChain tools, callables, or a provider's own tools as dicts, which the provider runs.
        system_prompt: The same for the life of the agent; the todo instructions follow it.
        settings: The base of every thread: a preset's name, `LoopSettings`, or a mapping of some settings
            over a preset (the one under the key `preset`, else `wakeloop`). "auto" takes what `wakeloop bench
            profile` measured for the model.
        verify: `verify(todo, state)`, sync or async, called before an item becomes completed. It returns None
            to accept, or a string that says why not.
        done_when: `done_when(state)`, sync or async, asked at the end of each turn whether the goal is met.
            It returns None if it is, a string that says what is missing, `impossible("why")` or
            `wait("for what")`. The model continues until it is met, or until a gate ends the run.
        response_format: A schema for one extra request at a settled end; `structured_response` holds its
            answer as plain JSON.
        state_schema: A subclass of `TodoState` with more channels.
        context_schema: The type of the run's context. A context may carry `todo_settings`, which rank above
            the thread's. By default a form of just these, which Studio and other clients can show.
        pre_model_hook: Called with the state before each request; returns `llm_input_messages` or `messages`.
        interrupt_on: `{tool: True | [decisions]}`: the tools whose calls a person approves before they run.
        interrupt_mode: `"batched"` asks once about all such calls of a reply, `"per_call"` about each on its
            own, as LangChain's `HumanInTheLoopMiddleware` does.
        checkpointer: Where threads are stored. With None nothing is, or a parent's is used, as a subgraph.
        store: LangGraph's store, for tools that take one.
        name: The graph's name, in a parent and in traces. Replies carry it if it is given.

    Raises:
        ArgumentError: An unknown argument, or a value of the wrong type.
        SettingsError: An unknown preset, dialect or setting, or a schema that is not a `TodoState`.
        ToolNameError: Two tools with one name, a tool named like a todo tool, or an unknown name in
            `interrupt_on`.
        ToolError: A tool with `return_direct`, or a value that is not a tool.
        ModelSetupError: A model that cannot be created, or that cannot call tools.

    >>> from wakeloop import create_todo_agent
    >>> from wakeloop.testing import ScriptedModel, calls
    >>> plan = calls(("todo_write", {"items": ["sweep"]}))
    >>> done = calls(("todo_update", {"id": 1, "status": "done"}))
    >>> agent = create_todo_agent(ScriptedModel([plan, "Later.", done, "Swept."]))
    >>> agent.invoke({"messages": [("user", "Please sweep.")]})["todo_session"]["wakes"]
    1
    """
    arguments: Any = {key: value for key, value in locals().items() if key not in ("checkpointer", "store")}
    argument_values.check_checkpointer(checkpointer)
    argument_values.check_store(store)
    graph = build_todo_graph(**arguments)
    return graph.compile(checkpointer=checkpointer, store=store, name=name)


def _build_schemas(state: Any, context: type[Any], todo_tools: Collection[str]) -> Schemas:
    """Return the schemas of input, output and nodes: the package's channels and the caller's own."""
    hints = get_type_hints(state, include_extras=True) if isinstance(state, type) else {}
    ours = get_type_hints(TodoState, include_extras=True)
    if missing := [name for name in ours if name not in hints]:
        raise SettingsError(f"state_schema must be a subclass of TodoState; it lacks {', '.join(missing)}.")
    more = [name for name in hints if name not in ours]

    def schema(name: str, *names: str, total: bool = True) -> type[Any]:
        fields = {key: hints[key] for key in (*names, *more)}
        return TypedDict(name, fields, total=total)  # type: ignore[operator,no-any-return]

    nodes = TypedDict("NodeState", {**hints, **get_type_hints(Steps, include_extras=True)})  # type: ignore[misc]
    given = schema("TodoInput", *INPUT_CHANNELS, total=False)  # no channel is required
    return Schemas(state, nodes, given, schema("TodoOutput", *OUTPUT_CHANNELS), context, todo_tools)

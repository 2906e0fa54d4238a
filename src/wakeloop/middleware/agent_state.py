"""What travels in a `create_agent` graph with the middleware."""

from typing import Annotated, Any, NotRequired, Required

from langchain.agents import AgentState
from langchain.agents.middleware.types import OmitFromOutput, PrivateStateAttr
from langchain_core.messages import AnyMessage
from langgraph.managed.is_last_step import RemainingStepsManager

from wakeloop.channels.conversation import merge_messages
from wakeloop.channels.reducers import merge_entries, merge_goal, merge_settings
from wakeloop.channels.todo_channels import PlainTodosChannel, SessionChannel, TodosChannel
from wakeloop.channels.todo_list import merge_one_write, merge_todos
from wakeloop.loop.inbox import WakeEvent
from wakeloop.loop.ledger import Ledger
from wakeloop.platform.channels import CheapDeltaChannel, CheapReducerChannel
from wakeloop.stream import Session
from wakeloop.todos.items import Todo

Entries = Annotated[list[Any], PrivateStateAttr, CheapReducerChannel(list, merge_entries)]


class WakeLoopState(AgentState[Any]):
    """The channels of the middleware. The list and its session go in and out, settings and events only in.

    >>> from wakeloop.middleware import WakeLoopState
    >>> "todos" in WakeLoopState.__annotations__
    True
    """

    todos: Annotated[list[Todo], PlainTodosChannel(list, merge_one_write)]
    todo_session: NotRequired[Annotated[Session, SessionChannel(Session)]]
    todo_inbox: NotRequired[Annotated[list[WakeEvent], OmitFromOutput]]
    todo_settings: Annotated[dict[str, Any], OmitFromOutput, CheapReducerChannel(dict, merge_settings)]
    todo_goal: Annotated[str, PrivateStateAttr, CheapReducerChannel(str, merge_goal)]
    todo_ledger: NotRequired[Annotated[Ledger, PrivateStateAttr]]
    owed_replies: NotRequired[Entries]
    waiting_on: NotRequired[Entries]
    todo_subagents: NotRequired[Entries]
    remaining_steps: NotRequired[Annotated[int, PrivateStateAttr, RemainingStepsManager]]


class ChangesState(AgentState[Any]):
    """A state for `create_agent(state_schema=...)` that stores conversation and list as changes.

    >>> from langchain.agents import create_agent
    >>> from wakeloop.middleware import ChangesState, WakeLoopMiddleware
    >>> from wakeloop.testing import ScriptedModel
    >>> middleware = [WakeLoopMiddleware()]
    >>> agent = create_agent(ScriptedModel(["Hello."]), middleware=middleware, state_schema=ChangesState)
    """

    messages: Required[Annotated[list[AnyMessage], CheapDeltaChannel(merge_messages, snapshot_frequency=500)]]
    todos: Annotated[list[Todo], TodosChannel(merge_todos, snapshot_frequency=25)]

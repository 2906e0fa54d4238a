"""The middleware's place in the list does not matter: all of LangChain's own, before it and after it."""

from collections.abc import Callable
from inspect import isclass
from typing import Any

import pytest
from deepagents import create_deep_agent
from laid_over import GO, THREAD, busy, ended, kinds, look, looks, over, plan, settled
from langchain.agents import create_agent, middleware
from langchain.agents.middleware import (
    AgentMiddleware,
    AutoModeMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    FilesystemFileSearchMiddleware,
    HumanInTheLoopMiddleware,
    LLMToolEmulator,
    LLMToolSelectorMiddleware,
    ModelCallLimitMiddleware,
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRetryMiddleware,
    ModelRouterMiddleware,
    PIIMiddleware,
    ProviderToolSearchMiddleware,
    ShellToolMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from langchain.agents.middleware.model_router import ModelChoice
from langchain_core.decisions import BaseDecisionModel, ClassifierResponse
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import SettingsError
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

APPROVE: Any = Command(resume={"decisions": [{"type": "approve"}]})
REJECT: Any = Command(resume={"decisions": [{"type": "reject", "message": "no"}]})


def job() -> list[Any]:
    """Return a script: a plan, a look, a stop, a wake, the item done: five requests."""
    return [calls(plan("a")), calls(looks("me@example.org")), says("I stop."), calls(plan("a!")), says("bye")]


def side(*said: Any) -> ScriptedModel:
    """Return a model that a middleware asks by itself."""
    return ScriptedModel(*said)


class Decides(BaseDecisionModel):
    """Answers a question about a risk with a probability, and one about a route with its name."""

    model: str = "decides"
    risk: float = 0.0

    @property
    def _provider(self) -> str:
        return "nobody"

    def _classify(self, state: Any, questions: Any) -> ClassifierResponse:
        route = {"type": "choice", "choice": "only", "probabilities": {"only": 1.0}, "confidence": 1.0}
        answers = {"is_risky": {"type": "noul", "noul": self.risk}, "model_route": route}
        return ClassifierResponse(id="1", model="m", answers={name: answers[name] for name in questions})


class Provider(ScriptedModel):
    """A provider's model that searches tools itself."""

    def _get_ls_params(self, **_: Any) -> Any:
        return {"ls_provider": "openai"}


BESIDE: dict[str, Callable[[], AgentMiddleware[Any, Any, Any]]] = {
    "model calls, limit reached": lambda: ModelCallLimitMiddleware(run_limit=3),
    "model calls, the last one settles": lambda: ModelCallLimitMiddleware(run_limit=5),
    "model calls, on the thread": lambda: ModelCallLimitMiddleware(thread_limit=4),
    "tool calls, continue": lambda: ToolCallLimitMiddleware(tool_name="look", run_limit=0),
    "tool calls, end": lambda: ToolCallLimitMiddleware(run_limit=0, tool_name="look", exit_behavior="end"),
    "tool calls, far away": lambda: ToolCallLimitMiddleware(run_limit=9),
    "pii in results": lambda: PIIMiddleware("email", apply_to_tool_results=True),
    "pii in replies": lambda: PIIMiddleware("email", apply_to_output=True),
    "person, look": lambda: HumanInTheLoopMiddleware(interrupt_on={"look": True}),
    "person, list": lambda: HumanInTheLoopMiddleware(interrupt_on={"write_todos": True}),
    "person, per call": lambda: HumanInTheLoopMiddleware({"look": True}, interrupt_mode="per_call"),
    "summary": lambda: SummarizationMiddleware(
        side(*[says("so far")] * 9), trigger=("messages", 4), keep=("messages", 2)
    ),
    "context": lambda: ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=100_000)]),
    "fallback": lambda: ModelFallbackMiddleware(side()),
    "model retry": lambda: ModelRetryMiddleware(max_retries=1, initial_delay=0),
    "tool retry": lambda: ToolRetryMiddleware(initial_delay=0),
    "tool error": lambda: ToolErrorMiddleware(on_error=lambda error, request: str(error)),
    "selector": lambda: LLMToolSelectorMiddleware(model=side(*[_selects] * 9)),
    "emulator": lambda: LLMToolEmulator(model=side(says("emulated")), tools=["look"]),
    "risk, allowed": lambda: AutoModeMiddleware(tools=["look"], classifier=Decides()),
    "risk, blocked": lambda: AutoModeMiddleware(tools=["look"], classifier=Decides(risk=0.9)),
    "router": lambda: ModelRouterMiddleware(
        choices={"only": ModelChoice(side(*job()), "all")}, instructions="?", classifier=Decides()
    ),
    "refusal": ModelRefusalMiddleware,
    "tool search": lambda: ProviderToolSearchMiddleware(searchable_tools=["look"]),
    "file search": lambda: FilesystemFileSearchMiddleware(root_path="/nowhere"),
}


def _selects(_: Any) -> Any:
    return calls(("ToolSelectionResponse", {"tools": ["look"]}))


async def outcome(name: str, *, first: bool, door: str) -> Any:
    """Return a run's conversation, list, ending and number of requests."""
    other, ours = BESIDE[name](), WakeLoopMiddleware()
    model = Provider(*job())
    agent = over(model, *([ours, other] if first else [other, ours]))
    given: Any = GO
    for _ in range(5):
        await agent.ainvoke(given, THREAD) if door == "async" else agent.invoke(given, THREAD)
        found = agent.get_state(THREAD).interrupts
        if not found:
            break
        per_call = {one.id: {"type": "approve"} for one in found}
        given = Command(resume=per_call) if name == "person, per call" else APPROVE
    values = agent.get_state(THREAD).values
    told = [(m.type, m.text) for m in values["messages"]]
    return told, [(todo["content"], todo["status"]) for todo in values["todos"]], *ended(agent)


ENDS: dict[str, Any] = {
    "model calls, limit reached": ("idle", "ended_elsewhere", 3),
    "model calls, on the thread": ("dormant", "ended_elsewhere", 4),
    "tool calls, continue": ("idle", "ended_elsewhere", 3),
    "tool calls, end": ("idle", "ended_elsewhere", 2),
}
"""The variants that end the run."""


BETA = pytest.mark.filterwarnings("ignore:The middleware `ModelRouterMiddleware` is in beta")


@BETA
def test_no_middleware_of_langchain_is_missing() -> None:
    """The shell, which starts a process, is in `test_shell_beside.py`; the other todo list is refused."""
    found = [getattr(middleware, name) for name in middleware.__all__]
    own = {one for one in found if isclass(one) and issubclass(one, AgentMiddleware)} - {AgentMiddleware}
    missing = own - {type(make()) for make in BESIDE.values()}
    assert missing == {ShellToolMiddleware, TodoListMiddleware}


@pytest.mark.slow
@BETA
@pytest.mark.parametrize("name", BESIDE)
async def test_before_it_or_after_it_the_run_is_the_same(name: str) -> None:
    seen = [
        await outcome(name, first=first, door=door) for first in (True, False) for door in ("sync", "async")
    ]
    assert seen[0][2:] == ENDS.get(name, ("dormant", "settled", 5))
    assert seen == [seen[0]] * 4


# -- a person's answers, and hooks that count --------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_a_todo_call_waits_for_the_person_and_is_answered_once(first: bool) -> None:
    model = ScriptedModel(calls(plan("a"), looks(1)), says("bye"))
    person = HumanInTheLoopMiddleware(interrupt_on={"write_todos": True})
    ours = WakeLoopMiddleware()
    agent = over(model, *([ours, person] if first else [person, ours]))
    agent.invoke(GO, THREAD)
    assert agent.get_state(THREAD).values["todos"] == []
    agent.invoke(REJECT, THREAD)
    assert kinds(agent) == ["human", "ai", "tool", "tool", "ai"]
    assert ended(agent) == ("dormant", "answered", 2)


class Watcher(AgentMiddleware[Any, Any, Any]):
    """Records which of its hooks have run."""

    def __init__(self) -> None:
        super().__init__()
        self.met: list[str] = []

    def after_model(self, state: Any, runtime: Any) -> None:
        self.met.append("after model")

    def after_agent(self, state: Any, runtime: Any) -> None:
        self.met.append("after agent")


@pytest.mark.parametrize("first", [True, False])
def test_hooks_after_the_model_run_each_time_and_those_after_the_agent_once(first: bool) -> None:
    watcher, ours = Watcher(), WakeLoopMiddleware()
    over(ScriptedModel(*settled()), *([ours, watcher] if first else [watcher, ours])).invoke(GO, THREAD)
    assert watcher.met == [*["after model"] * 4, "after agent"]


def test_it_keeps_its_place_after_those_without_a_hook_after_the_model() -> None:
    """Whatever wraps the model in front of it still does."""
    listed = [ToolRetryMiddleware(), Watcher(), ModelRetryMiddleware(), WakeLoopMiddleware()]
    create_agent(ScriptedModel(), middleware=listed)
    assert [type(one).__name__ for one in listed] == [
        "ToolRetryMiddleware", "WakeLoopMiddleware", "Watcher", "ModelRetryMiddleware",
    ]  # fmt: skip


def test_an_immutable_list_is_refused_when_the_agent_is_built() -> None:
    with pytest.raises(SettingsError, match="as a list, or put WakeLoopMiddleware before Watcher"):
        create_agent(ScriptedModel(), middleware=(Watcher(), WakeLoopMiddleware()))
    create_agent(ScriptedModel(), middleware=(WakeLoopMiddleware(), Watcher()))


def test_deepagents_asynchronous_subagents_come_after_it() -> None:
    """Their hook after the model comes before any given list of middleware."""
    model = ScriptedModel(busy())
    remote: Any = {"name": "far", "description": "far", "graph_id": "far", "url": "http://127.0.0.1:9"}
    agent: Any = create_deep_agent(
        model,
        [look],
        subagents=[remote],
        middleware=[WakeLoopMiddleware(settings={"max_requests": 6})],
        checkpointer=InMemorySaver(),
    )
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("idle", "request_budget", 7)

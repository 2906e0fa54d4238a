"""The agents of a study: controls, peers, and this package."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from wakeloop.agent import create_todo_agent
from wakeloop.bench.peers import MOST_RESTARTS, run_create_agent, run_deepagents
from wakeloop.bench.study import require_known
from wakeloop.bench.task import CONTINUE_PROMPT, Ending, Job
from wakeloop.loop.gates import ExitCode, choose_exit_code
from wakeloop.model.chat_models import bind_tools
from wakeloop.presets import PRESETS, preset
from wakeloop.settings import LoopSettings
from wakeloop.testing.jobs import seeded_random
from wakeloop.text.characters import pluralize
from wakeloop.thread.thread_status import answer_of
from wakeloop.thread.verifier import Verify
from wakeloop.todos.items import is_open

MOST_NAMED = 5  # checks that the words about what is missing name


@dataclass(frozen=True)
class Agent:
    """One column of a study.

    Attributes:
        about: A description in a few words.
        run: Plays a job.
        package: A package that has to be installed.
    """

    about: str
    run: Callable[[Job], Ending]
    package: str = "wakeloop"

    @property
    def exists(self) -> bool:
        """Whether its package is installed."""
        return find_spec(self.package) is not None


# -- the controls: no list, no graph ----------------------------------------------------------------------


def run_plain_loop(job: Job, *, asks: int = 0, told: bool = False) -> Ending:
    """Loop over model and tools until a reply has no call, or until `asks` more such replies in a row.

    If it is `told`, code says what is missing instead of asking, and the loop ends once nothing is.
    """
    model = bind_tools(job.model, job.tools)
    tools = {tool.name: tool for tool in job.tools}
    messages: list[AnyMessage] = [HumanMessage(job.task.prompt)]
    silent = wakes = 0
    while True:
        reply = model.invoke(messages, job.config)
        messages.append(reply)
        made = [*reply.tool_calls, *reply.invalid_tool_calls]
        if made:
            silent = 0
            for call in made:
                messages.append(answer_call(tools, call))
            continue
        missing = find_missing(job, {}) if told else CONTINUE_PROMPT
        if silent == asks or missing is None:
            signal: Literal["done", "open"] = "open" if told and missing else "done"
            return Ending(str(reply.text), signal, wakes=wakes)
        silent, wakes = silent + 1, wakes + 1
        messages.append(HumanMessage(missing))


def answer_call(tools: Mapping[str, BaseTool], call: Any) -> ToolMessage:
    """Return the result of a call; errors go to the model."""
    try:
        if call.get("error") or not isinstance(call["args"], dict):
            raise ValueError(call.get("error") or "These arguments are not valid JSON.")  # noqa: TRY301
        said, status = tools[call["name"]].invoke(call["args"]), "success"
    except KeyError:
        said, status = f"There is no tool {call['name']!r}; there are {', '.join(tools)}.", "error"
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        said, status = f"{error}", "error"
    return ToolMessage(
        str(said), tool_call_id=call["id"] or "none", name=call["name"] or "none", status=status
    )


# -- this package -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extras:
    """What code adds to an agent of this package.

    Attributes:
        given: Passes it the list.
        verified: Verifies items by the checks.
        goal: Says at the end of a turn what is missing.
        misjudges: The chance that a verdict on an item is wrong.
        confirmations: How many verdicts in a row have to accept an item.
    """

    given: bool = False
    verified: bool = False
    goal: bool = False
    misjudges: float = 0.0
    confirmations: int = 1


def run_wakeloop(settings: LoopSettings, job: Job, *, extras: Extras = Extras()) -> Ending:
    """Play a job with this package."""
    agent = create_todo_agent(
        job.model,
        job.tools,
        settings=settings,
        verify=make_verifier(job, extras) if extras.verified else None,
        done_when=partial(find_missing, job) if extras.goal else None,
    )
    asked: dict[str, Any] = {"messages": [HumanMessage(job.task.prompt)]}
    if extras.given:
        asked["todos"] = [{"content": step.label} for step in job.task.steps if not step.found]
    return _read_ending(agent.invoke(asked, job.config))


def run_middleware(job: Job) -> Ending:
    """Play a job with LangChain's agent and this package's middleware."""
    from langchain.agents import create_agent  # noqa: PLC0415 - of an extra

    from wakeloop.middleware import WakeLoopMiddleware  # noqa: PLC0415

    agent: Any = create_agent(job.model, job.tools, middleware=[WakeLoopMiddleware()])
    return _read_ending(agent.invoke({"messages": [HumanMessage(job.task.prompt)]}, job.config))


def _read_ending(state: Mapping[str, Any]) -> Ending:
    session = state["todo_session"]
    return Ending(
        text=answer_of(state),
        signal="done" if choose_exit_code(session) == ExitCode.SETTLED else "open",
        reason=session["reason"],
        listed=len(state["todos"]),
        wakes=session["wakes"],
    )


def find_missing(job: Job, _state: Mapping[str, Any]) -> str | None:
    """Return what is missing, as `--done-when COMMAND` would with tests for the job."""
    failing = [check.name for check in job.task.check(job.folder) if not check.passed]
    return f"{len(failing)} checks fail: {', '.join(failing[:MOST_NAMED])}" if failing else None


def make_verifier(job: Job, extras: Extras) -> Verify:
    """Return a verifier of items that errs as often as it is told to."""
    dice = seeded_random(f"{job.task.family}/{job.task.seed}/verdicts")

    def verify(todo: Mapping[str, Any], state: Mapping[str, Any]) -> str | None:
        why = explain_refusal(job, todo, state)
        for _ in range(extras.confirmations):
            errs = dice.random() < extras.misjudges
            if errs != (why is not None):
                return why or "this does not look done"
        return None

    return verify


def explain_refusal(job: Job, todo: Mapping[str, Any], state: Mapping[str, Any]) -> str | None:
    """Return why an item is not done yet, as `--verify COMMAND` would with tests for the job.

    An item needs the checks whose names contain one of its words with a digit. The last open item needs
    every check.
    """
    failing = [check.name for check in job.task.check(job.folder) if not check.passed]
    others = [one for one in state["todos"] if is_open(one) and one["id"] != todo["id"]]
    if not others and failing:
        return f"not everything is there yet; {len(failing)} checks fail, the first is: {failing[0]}"
    words = [word for word in todo["content"].split() if any(map(str.isdigit, word))]
    for name in failing:
        for word in words or [todo["content"]]:
            if word in name:
                return f"this is not done yet: {name}"
    return None


WAKELOOP = preset("wakeloop")
SWITCHED_OFF = {"max_wake_cycles": 0, "nag_after": 0, "guard_retries": 0, "max_idle_rounds": 0}
LADDER = {  # each row has one factor more than the row before it
    "list only": ("our list, which never wakes the model", ()),
    "+ wake": ("list only, and it wakes while items are open", ("max_wake_cycles",)),
    "+ nag": ("+ wake, and reminders of the list", ("max_wake_cycles", "nag_after")),
    "+ guard": (
        "+ nag, and a correction before the end",
        ("max_wake_cycles", "nag_after", "guard_retries"),
    ),
}


def preset_without(kept: Collection[str]) -> LoopSettings:
    """Return the default preset with all factors switched off but those `kept`."""
    return _varied(**{name: value for name, value in SWITCHED_OFF.items() if name not in kept})


def _varied(**changes: Any) -> LoopSettings:
    return WAKELOOP.model_copy(update=changes)


BY_ROUND = _varied(verify_when="round")


def _asking_agent(asks: int) -> Agent:
    return Agent(
        f"the plain loop, asked to continue at most {pluralize(asks, 'time')} in a row",
        partial(run_plain_loop, asks=asks),
    )


def _wakeloop_agent(about: str, settings: LoopSettings = WAKELOOP, **extras: Any) -> Agent:
    return Agent(about, partial(run_wakeloop, settings, extras=Extras(**extras)))


def _preset_agent(name: str) -> Agent:
    awake = preset(name).model_copy(update={"auto_continue": True})  # as the command line switches loki on
    return _wakeloop_agent(f"our preset `{name}`", awake)


AGENTS: Mapping[str, Agent] = MappingProxyType(
    {
        "plain": Agent("model and tools in a loop, no list", run_plain_loop),
        "asked 1": _asking_agent(1),
        "asked 3": _asking_agent(3),
        "asked 5": _asking_agent(5),
        "asked 10": _asking_agent(10),
        "told 5": Agent(
            "the plain loop, told by code what is missing, at most 5 times in a row",
            partial(run_plain_loop, asks=5, told=True),
        ),
        "create_agent": Agent("LangChain's agent, no list", run_create_agent, "langchain"),
        "TodoList": Agent(
            "LangChain's agent with TodoListMiddleware", partial(run_create_agent, listed=True), "langchain"
        ),
        "TodoList, looped": Agent(
            "TodoList, started again while items are open",
            partial(run_create_agent, listed=True, restarts=MOST_RESTARTS),
            "langchain",
        ),
        "deepagents": Agent("Deep Agents, no list", run_deepagents, "deepagents"),
        "deepagents + TodoList": Agent(
            "Deep Agents with TodoListMiddleware", partial(run_deepagents, listed=True), "deepagents"
        ),
        "deepagents + rubric": Agent(
            "Deep Agents, graded by its model", partial(run_deepagents, graded=True), "deepagents"
        ),
        **{name: _preset_agent(name) for name in PRESETS},
        **{name: _wakeloop_agent(about, preset_without(kept)) for name, (about, kept) in LADDER.items()},
        "+ idle rounds": _wakeloop_agent("+ guard, and an end after rounds without anything new"),
        "never forced": _wakeloop_agent(
            "`wakeloop`, which never asks the client for a call", _varied(force_call="never")
        ),
        "never forced, 8 idle": _wakeloop_agent(
            "the same, with `max_idle_wakes` 8", _varied(force_call="never", max_idle_wakes=8)
        ),
        "+ verify": _wakeloop_agent(
            "`wakeloop`, and the checks are asked before an item is closed", verified=True
        ),
        "+ verify round": _wakeloop_agent("+ verify, and after each round of calls", BY_ROUND, verified=True),
        "+ verify round, errs": _wakeloop_agent(
            "+ verify round, and a tenth of the verdicts is wrong", BY_ROUND, verified=True, misjudges=0.1
        ),
        "+ verify round, errs, twice": _wakeloop_agent(
            "the same, and an item needs two verdicts",
            BY_ROUND,
            verified=True,
            misjudges=0.1,
            confirmations=2,
        ),
        "+ goal": _wakeloop_agent("`wakeloop`, and code says what is missing (`done_when`)", goal=True),
        "+ audit": _wakeloop_agent(
            "`wakeloop`, and an audit of items that were closed without work", _varied(audit="once")
        ),
        "on_question=park": _wakeloop_agent(
            "`wakeloop`, and after a question it waits at once", _varied(on_question="park")
        ),
        "on_question=wake": _wakeloop_agent(
            "`wakeloop`, and after a question it wakes on", _varied(on_question="wake")
        ),
        "list given": _wakeloop_agent("our preset `wakeloop`, the list from the caller", given=True),
        "middleware": Agent("LangChain's agent with `WakeLoopMiddleware`", run_middleware, "langchain"),
    }
)


def agent_named(name: str) -> Agent:
    """Return an agent by its name. Raises `BenchError`."""
    return AGENTS[require_known("agent", name, AGENTS)]

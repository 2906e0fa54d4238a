"""The agents of a study: controls, peers, and this package."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.agent import create_todo_agent
from wakeloop.bench.study import require_known
from wakeloop.bench.task import CONTINUE_PROMPT, Ending, Job
from wakeloop.config.files import read_yaml
from wakeloop.loop.gates import ExitCode, choose_exit_code
from wakeloop.model.bindings import bind_tools
from wakeloop.presets import PRESETS, preset
from wakeloop.settings import LoopSettings
from wakeloop.testing.jobs import seeded_random
from wakeloop.thread.judges import Verify
from wakeloop.thread.thread_status import answer_of
from wakeloop.todos.items import is_open

MOST_RESTARTS = 25  # of a looped peer: as often as the preset `wakeloop` may wake
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
    run: partial[Ending]
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


# -- agents of other packages ---------------------------------------------------------------------------


def run_create_agent(job: Job, *, listed: bool = False, looped: bool = False) -> Ending:
    """Play a job with LangChain's agent, which is started again while its list has open items."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import TodoListMiddleware
    from langgraph.checkpoint.memory import InMemorySaver

    agent = create_agent(
        job.model,
        [*map(_plain_tool, job.tools)],
        middleware=[TodoListMiddleware()] if listed else [],
        checkpointer=InMemorySaver(),
    )
    return _run_agent(agent, job, MOST_RESTARTS if looped else 0)


def run_deepagents(job: Job, *, listed: bool = False, graded: bool = False) -> Ending:
    """Play a job with Deep Agents, with the job's tools in place of its own file tools."""
    from deepagents import (  # type: ignore[import-not-found,unused-ignore]
        FilesystemMiddleware,
        RubricMiddleware,
        create_deep_agent,
    )
    from langchain.agents.middleware import TodoListMiddleware

    verdicts: list[Any] = []
    # It does not work without this tool; the job's tool of the same name replaces it.
    middleware: list[Any] = [FilesystemMiddleware(tools=["read_file"])]
    more: dict[str, Any] = {}
    if listed:
        middleware.append(TodoListMiddleware())
    if graded:
        with warnings.catch_warnings(action="ignore"):  # that it is in beta
            middleware.append(RubricMiddleware(model=job.model, on_evaluation=verdicts.append))
        more = {"rubric": f"Everything that was asked for is done, every part of it:\n{job.task.prompt}"}
    agent = create_deep_agent(job.model, [*map(_plain_tool, job.tools)], middleware=middleware)
    ended = _run_agent(agent, job, **more)
    if not verdicts:
        return ended
    reason = verdicts[-1]["result"]
    return Ending(
        text=ended.text,
        signal="done" if reason == "satisfied" else "open",
        reason=reason,
        listed=ended.listed,
        wakes=len(verdicts) - 1,
    )


def _run_agent(agent: Any, job: Job, restarts: int = 0, **more: Any) -> Ending:
    """Run an agent, and again while its list has open items, as often as it may restart."""
    config = {**job.config, "configurable": {"thread_id": "1"}}
    state = agent.invoke({"messages": [HumanMessage(job.task.prompt)], **more}, config)
    wakes = 0
    while _has_open_todos(state) and wakes < restarts:
        wakes += 1
        state = agent.invoke({"messages": [HumanMessage(CONTINUE_PROMPT)]}, config)
    return Ending(
        text=str(state["messages"][-1].text),
        signal="open" if _has_open_todos(state) else "done",
        listed=len(state.get("todos") or ()),
        wakes=wakes,
    )


def _has_open_todos(state: Any) -> bool:
    return any(todo["status"] != "completed" for todo in state.get("todos") or ())


def _plain_tool(tool: BaseTool) -> BaseTool:
    """Return the tool so that its every error is a result that the model reads."""

    def run(**args: Any) -> str:
        try:
            return str(tool.invoke(args))
        except Exception as error:
            raise ToolException(str(error)) from error

    offered = convert_to_openai_tool(tool)["function"]
    return StructuredTool(
        name=tool.name,
        description=offered["description"],
        args_schema=offered["parameters"],
        func=run,
        handle_tool_error=True,
    )


# -- this package -----------------------------------------------------------------------------------------


def run_wakeloop(
    job: Job,
    *,
    settings: LoopSettings | None = None,
    given: bool = False,
    goal: bool = False,
    verified: bool = False,
    **errs: Any,
) -> Ending:
    """Play a job with this package: the list is given, a goal is checked, or items are verified by code.

    `errs` are the arguments of `make_verifier`.
    """
    agent = create_todo_agent(
        job.model,
        job.tools,
        settings=settings or preset("wakeloop"),
        verify=make_verifier(job, **errs) if verified else None,
        done_when=partial(find_missing, job) if goal else None,
    )
    asked: dict[str, Any] = {"messages": [HumanMessage(job.task.prompt)]}
    if given:
        asked["todos"] = [{"content": step.label} for step in job.task.steps if not step.found]
    return _read_ending(agent.invoke(asked, job.config))


def run_middleware(job: Job) -> Ending:
    """Play a job with LangChain's agent and this package's middleware."""
    from langchain.agents import create_agent

    from wakeloop.middleware import WakeLoopMiddleware

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


def make_verifier(job: Job, *, misjudges: float = 0.0, confirmations: int = 1) -> Verify:
    """Return a verifier of items that is wrong by chance; `confirmations` in a row have to accept one."""
    dice = seeded_random(f"{job.task.family}/{job.task.seed}/verdicts")

    def verify(todo: Mapping[str, Any], state: Mapping[str, Any]) -> str | None:
        why = explain_refusal(job, todo, state)
        for _ in range(confirmations):
            errs = dice.random() < misjudges
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


RUNS: Mapping[str, tuple[Callable[..., Ending], str]] = {  # with the package that has to be installed
    "plain": (run_plain_loop, "wakeloop"),
    "create_agent": (run_create_agent, "langchain"),
    "deepagents": (run_deepagents, "deepagents"),
    "middleware": (run_middleware, "langchain"),
    "wakeloop": (run_wakeloop, "wakeloop"),
}


def _load_agents() -> Mapping[str, Agent]:
    """Return our presets, awake as the command line switches loki on, and the agents of `agents.yaml`."""
    agents = {}
    for name in PRESETS:
        settings = preset(name).model_copy(update={"auto_continue": True})
        agents[name] = Agent(f"our preset `{name}`", partial(run_wakeloop, settings=settings))
    for name, sheet in read_yaml(Path(__file__).with_name("agents.yaml")).values.items():
        about, changes = sheet.pop("about"), sheet.pop("settings", None)
        run, package = RUNS[sheet.pop("run", "wakeloop")]
        if changes:
            sheet["settings"] = preset("wakeloop").model_copy(update=changes)
        agents[name] = Agent(about, partial(run, **sheet), package)
    return agents


AGENTS = _load_agents()


def agent_named(name: str) -> Agent:
    """Return an agent by its name. Raises `BenchError`."""
    return AGENTS[require_known("agent", name, AGENTS)]

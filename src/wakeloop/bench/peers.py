"""Agents of other packages, with the same model and tools."""

import warnings
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from wakeloop.bench.task import CONTINUE_PROMPT, Ending, Job

# A looped peer may start again as often as the preset `wakeloop` may wake.
MOST_RESTARTS = 25


def run_create_agent(job: Job, *, listed: bool = False, restarts: int = 0) -> Ending:
    """Play a job with LangChain's agent, which is started again while its list has open items."""
    from langchain.agents import create_agent  # noqa: PLC0415 - of an extra
    from langchain.agents.middleware import TodoListMiddleware  # noqa: PLC0415
    from langgraph.checkpoint.memory import InMemorySaver  # noqa: PLC0415

    agent = create_agent(
        job.model,
        _plain_tools(job),
        middleware=[TodoListMiddleware()] if listed else [],
        checkpointer=InMemorySaver(),
    )
    return _run_agent(agent, job, restarts)


def run_deepagents(job: Job, *, listed: bool = False, graded: bool = False) -> Ending:
    """Play a job with Deep Agents, with the job's tools in place of its own file tools."""
    from deepagents import (  # type: ignore[import-not-found,unused-ignore] # noqa: PLC0415 - no extra of ours
        FilesystemMiddleware,
        RubricMiddleware,
        create_deep_agent,
    )
    from langchain.agents.middleware import TodoListMiddleware  # noqa: PLC0415

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
    agent = create_deep_agent(job.model, _plain_tools(job), middleware=middleware)
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


def _plain_tools(job: Job) -> list[BaseTool]:
    """Return the job's tools, whose every error is a result that the model reads."""
    return [*map(_plain_tool, job.tools)]


def _plain_tool(tool: BaseTool) -> BaseTool:
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

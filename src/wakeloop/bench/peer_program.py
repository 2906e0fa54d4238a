"""Runs a peer's agents in its own environment, by JSON lines.

It imports nothing of this package. Each model request and each tool call is one line, answered by one line.
"""

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from threading import Lock
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, messages_from_dict, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

REPLIES, LOCK = sys.stdout, Lock()
Job = dict[str, Any]


def exchange(line: Job) -> Job:
    """Write a line and return the answer; parallel calls take turns."""
    with LOCK:
        REPLIES.write(json.dumps(line) + "\n")
        REPLIES.flush()
        answer = json.loads(sys.stdin.readline())
    if "broken" in answer:
        raise RuntimeError(answer["broken"])
    return dict(answer)


class RemoteModel(BaseChatModel):
    """The model of the bench's process."""

    @property
    def _llm_type(self) -> str:
        return "asked"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **kwargs: Any) -> Any:  # noqa: ARG002
        """Return the model with tools."""
        options = {}
        if tool_choice is not None:
            options["tool_choice"] = tool_choice
        return self.bind(tools=[*map(convert_to_openai_tool, tools)], options=options)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        tools, options = kwargs.get("tools") or [], kwargs.get("options") or {}
        asked = {"messages": messages_to_dict(messages), "tools": tools, "options": options}
        reply = messages_from_dict([exchange({"ask": asked})["reply"]])[0]
        return ChatResult(generations=[ChatGeneration(message=reply)])


def remote_tool(offered: Job) -> BaseTool:
    """Return a tool that runs in the bench's process."""

    def run(**args: Any) -> str:
        answer = exchange({"call": {"name": offered["name"], "args": args}})
        if answer["failed"]:
            raise ToolException(answer["result"])
        return str(answer["result"])

    return StructuredTool(
        name=offered["name"],
        description=offered["description"],
        args_schema=offered["parameters"],
        func=run,
        handle_tool_error=True,
    )


def run_agent(agent: Any, job: Job, more: Job | None = None) -> Job:
    """Run an agent, and again while its list has open items, as often as the job allows."""
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": job["steps"]}
    state = agent.invoke({"messages": [HumanMessage(job["prompt"])], **(more or {})}, config)
    wakes = 0
    while has_open_todos(state) and wakes < job["outer"]:
        wakes += 1
        state = agent.invoke({"messages": [HumanMessage(job["go_on"])]}, config)
    signal = "open" if has_open_todos(state) else "done"
    text = state["messages"][-1].text
    return {"text": str(text), "signal": signal, "listed": len(state.get("todos") or ()), "wakes": wakes}


def has_open_todos(state: Job) -> bool:
    """Return whether the list has open items."""
    return any(todo["status"] != "completed" for todo in state.get("todos") or ())


# -- the agents -------------------------------------------------------------------------------------------


def run_create_agent(job: Job, *, listed: bool = False, looped: bool = False) -> Job:
    """Run LangChain's agent."""
    from langchain.agents import create_agent as create
    from langchain.agents.middleware import TodoListMiddleware
    from langgraph.checkpoint.memory import InMemorySaver

    middleware = [TodoListMiddleware()] if listed else []
    agent = create(RemoteModel(), job["tools"], middleware=middleware, checkpointer=InMemorySaver())
    return run_agent(agent, job if looped else {**job, "outer": 0})


def run_deepagents(job: Job, *, listed: bool = False, graded: bool = False) -> Job:
    """Run Deep Agents, with the job's tools in place of its own file tools."""
    from deepagents import (  # type: ignore[import-not-found,unused-ignore]
        FilesystemMiddleware,
        RubricMiddleware,
        create_deep_agent,
    )
    from langchain.agents.middleware import TodoListMiddleware

    verdicts: list[Any] = []
    # It does not work without this tool; the job's tool of the same name replaces it.
    middleware: list[Any] = [FilesystemMiddleware(tools=["read_file"])]
    if listed:
        middleware.append(TodoListMiddleware())
    if graded:
        middleware.append(RubricMiddleware(model=RemoteModel(), on_evaluation=verdicts.append))
    agent = create_deep_agent(RemoteModel(), job["tools"], middleware=middleware)
    rubric = {"rubric": f"Everything that was asked for is done, every part of it:\n{job['prompt']}"}
    ended = run_agent(agent, {**job, "outer": 0}, rubric if graded else None)
    if verdicts:
        ended |= {"reason": verdicts[-1]["result"], "wakes": len(verdicts) - 1}
        ended["signal"] = "done" if ended["reason"] == "satisfied" else "open"
    return ended


AGENTS: dict[str, Callable[[Job], Job]] = {
    "create_agent": run_create_agent,
    "todos": lambda job: run_create_agent(job, listed=True),
    "looped": lambda job: run_create_agent(job, listed=True, looped=True),
    "deep": run_deepagents,
    "deep todos": lambda job: run_deepagents(job, listed=True),
    "deep rubric": lambda job: run_deepagents(job, graded=True),
}


def main() -> None:
    """Import the packages, which takes seconds, report readiness, and play jobs until the input ends."""
    sys.stdout = sys.stderr  # output of libraries must not mix with our lines
    for package in ("langchain.agents.middleware", "deepagents"):
        with suppress(ModuleNotFoundError):
            import_module(package)
    REPLIES.write("{}\n")
    REPLIES.flush()
    while line := sys.stdin.readline():
        job = json.loads(line)
        job["tools"] = [*map(remote_tool, job["tools"])]
        try:
            ended = AGENTS[job["agent"]](job)
        except Exception as error:  # noqa: BLE001 - the other process judges it
            ended = {"error": f"{type(error).__name__}: {error}"[:300]}
        REPLIES.write(json.dumps({"end": ended}) + "\n")
        REPLIES.flush()


if __name__ == "__main__":
    main()

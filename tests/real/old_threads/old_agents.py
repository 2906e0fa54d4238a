"""The agents of the old threads, and what is read of a thread; public names alone."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, StateSnapshot, interrupt
from words import in_todays_words

from wakeloop import TodoState, answer_of, create_todo_agent, preset, session_of
from wakeloop.sessions import list_outstanding, session_tools
from wakeloop.testing import ScriptedModel, awalk, calls, malformed, walk

FORMAT = {
    "title": "Answer",
    "description": "What the run came to.",
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
Note = Callable[[str], None]
Row = dict[str, Any]  # a reply: text, calls [[name, args]], malformed [[name, args]], finish


class Letters:
    """Stands for a host: keeps what session tools send."""

    agents = dict.fromkeys(("main", "ada", "bob"), "a colleague")

    def __init__(self) -> None:
        self.sent: list[list[Any]] = []

    def send(self, thread: str, event: Any) -> str:
        self.sent.append([thread, dict(event)])
        return str(event["id"])


def tools_for(note: Note, die: Callable[[], None] | None, letters: Letters | None) -> list[Any]:
    """The tools; each notes that it ran to its end. With `die` the one called `risky` does not."""

    @tool
    def look(path: str) -> str:
        """Look at a path."""
        note(f"look {path}")
        return f"saw {path}"

    @tool
    def edit(what: str) -> str:
        """Change something, once."""
        note(f"edit {what}")
        return f"edited {what}"

    @tool
    def risky(what: str) -> str:
        """Do something that may not end well."""
        if die is not None:
            time.sleep(1)  # the other calls of the round are stored by then
            die()
        note(f"risky {what}")
        return f"survived {what}"

    @tool
    def ask(question: str) -> str:
        """Ask the person."""
        answer = str(interrupt(question))
        note(f"ask {question}")
        return answer

    @tool
    def draft() -> Command[Any]:
        """Write the list from outside."""
        note("draft")
        return Command(update={"todos": [{"content": "drafted", "status": "pending"}]})

    more = session_tools(lambda: letters, agents=letters.agents) if letters else []  # type: ignore[arg-type, return-value]
    return [look, edit, risky, ask, draft, *more]


def reply(row: Row, key: str) -> AIMessage:
    """One reply; its ids and those of its calls derive from its place in the script."""
    made = [(name, args, f"{key}-{n}") for n, (name, args) in enumerate(row.get("calls", ()))]
    bad = [malformed(name, raw, f"{key}-bad{n}") for n, (name, raw) in enumerate(row.get("malformed", ()))]
    return calls(*made, *bad, text=row.get("text", ""), finish_reason=row.get("finish"), id=f"m-{key}")


def script(rows: Sequence[Row], part: str) -> ScriptedModel:
    """The model that plays one part of a story."""
    return ScriptedModel([reply(row, f"{part}{n}") for n, row in enumerate(rows)])


def agent_of_story(
    story: Row, model: ScriptedModel, saver: Any, note: Note, die: Any = None, letters: Any = None
) -> Any:
    """The agent that a story tells of; with `die` its verifier and `risky` end the process."""

    def verify(todo: Any, state: Any) -> str | None:
        if die is not None:
            time.sleep(1)
            die()
        note(f"verify {todo['content']}")
        return None if story["verified"] == "accepts" else "not good enough"

    agent = create_todo_agent(
        model,
        tools_for(note, die, letters if story.get("sessions") else None),
        system_prompt="Work.",
        settings=preset(story["preset"]).model_copy(update=story.get("settings", {})),
        verify=verify if story.get("verified") else None,
        response_format=FORMAT if story.get("format") else None,
        pre_model_hook=newest if story.get("trimmed") else None,
        checkpointer=None if story.get("parent") else saver,
    )
    if not story.get("parent"):
        return agent
    parent = StateGraph(TodoState)
    parent.add_node("agent", agent)
    parent.add_edge(START, "agent")
    return parent.compile(checkpointer=saver)


def newest(state: Any) -> Row:
    """A hook that shows the model what came with and after the newest user message."""
    messages = state["messages"]
    last = max(place for place, message in enumerate(messages) if message.type == "human")
    return {"llm_input_messages": messages[last:]}


def given_to(given: Any) -> Any:
    """An input: a text, a state, the answer to an interrupt, or None."""
    return Command(resume=given["resume"]) if isinstance(given, dict) and "resume" in given else given


# -- what is read ----------------------------------------------------------------------------------------


def reads(snapshot: StateSnapshot) -> Row:
    """How a thread stands, as plain JSON."""
    values, session = snapshot.values, session_of(snapshot)
    kept = ("structured_response", "todo_settings", "todo_inbox", "owed_replies", "waiting_on")
    return {
        "todos": list(values.get("todos", ())),
        "goal": values.get("todo_goal", ""),
        "session": {key: told for key, told in session.items() if key != "spent"},  # older ones do not count
        "answer": answer_of(snapshot),
        "messages": len(values.get("messages", ())),
        "next": sorted(snapshot.next),
        "interrupts": [i.value for i in snapshot.interrupts],
        "channels": {name: values[name] for name in kept if values.get(name)},
        "outstanding": [[o.thread, dict(o.event)] for o in list_outstanding("main", values, session)],
    }


def told(message: AnyMessage) -> list[Any]:
    """A message as it was sent, without its own id."""
    row: list[Any] = [message.type, message.content]
    more: Row = {}
    if isinstance(message, AIMessage):
        made = [*message.tool_calls, *message.invalid_tool_calls]
        more["calls"] = [[call["name"], call["args"], call["id"]] for call in made]
    elif message.type == "tool":
        more = {"answers": message.tool_call_id, "status": message.status}
    more["kind"] = message.additional_kwargs.get("wakeloop", {}).get("kind")
    return [*row, kept] if (kept := {key: value for key, value in more.items() if value}) else row


def in_steps(requests: Sequence[Sequence[Any]], preset: str) -> list[Row]:
    """Each request as the number of messages that it repeats of the one before it, and what follows.

    The first one's, which may have been stored, are read in today's words; what is said now stands as it is.
    """
    rows: list[Row] = []
    before: Sequence[Any] = ()
    for request in requests:
        now = [*request[:1], *in_todays_words(request[1:], preset)]  # the system prompt is never stored
        pairs = enumerate(zip(before, now, strict=False))
        same = next((n for n, (old, new) in pairs if old != new), min(len(before), len(now)))
        rows.append({"same": same, "then": list(request[same:] if rows else now)})
        before = now
    return rows


def asked(model: ScriptedModel, preset: str) -> list[Row]:
    """The requests, and the tools bound at each."""
    rows = in_steps([[told(message) for message in request] for request in model.requests], preset)
    names = (" ".join(one["function"]["name"] for one in bound) for bound in model.bound)
    return [{**row, "tools": name} for row, name in zip(rows, names, strict=True)]


def continued(database: Path, story: Row, door: str = "sync") -> tuple[Row, Row]:
    """Go on with a thread by one door; return how it stood, and what that brought."""
    model, letters, ran = script(story["after"], "after"), Letters(), []
    config: Any = {"configurable": {"thread_id": story["thread"]}}
    given, visited = given_to(story["go_on"]), []

    async def by_the_other_door() -> tuple[Row, Row]:
        async with AsyncSqliteSaver.from_conn_string(str(database)) as saver:
            await saver.conn.execute("PRAGMA synchronous = OFF")
            agent = agent_of_story(story, model, saver, ran.append, letters=letters)
            before = reads(await agent.aget_state(config))
            await awalk(agent, given, config, visited=visited)
            return before, reads(await agent.aget_state(config))

    if door == "async":
        before, after = asyncio.run(by_the_other_door())
    else:
        with closing(sqlite3.connect(database, check_same_thread=False)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            saver = SqliteSaver(connection)
            agent = agent_of_story(story, model, saver, ran.append, letters=letters)
            before = reads(agent.get_state(config))
            walk(agent, given, config, visited=visited)
            after = reads(agent.get_state(config))
    model.assert_done()
    requests = asked(model, story["preset"])
    brought = {"walk": visited, "requests": requests, "ran": sorted(ran), "sent": letters.sent}
    return before, {**brought, "reads": after}

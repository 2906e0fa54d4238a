"""One thread of an agent under a preset, and what a run leaves."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import create_todo_agent, preset, session_of
from wakeloop.testing import ScriptedModel, calls, prompt_faults, wire_faults

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "thread"}}
ELSEWHERE = Path(__file__).with_name("elsewhere.py")


def look(path: str) -> str:
    """Look at a path."""
    return f"saw {path}"


def looks(*paths: str, text: str = "") -> Any:
    """Return a reply whose calls look at paths."""
    return calls(*(("look", {"path": path}) for path in paths), text=text)


def wait_for(on: str) -> Command[Any]:
    """Wait for a human, a peer or an approval."""
    return Command(update={"waiting_on": [{"id": f"waits-{on}", "on": on}]})


def owe(peer: str) -> Command[Any]:
    """Owe a peer a reply."""
    return Command(update={"owed_replies": [{"id": f"owed-{peer}", "sender": peer}]})


class Stage:
    """An agent under a preset, on one thread; each run has its own script.

    `change` varies the preset, other options go to `create_todo_agent`. After every run nothing of the script
    may be left over, unless it is endless.
    """

    def __init__(self, name: str, change: dict[str, Any] | None = None, **options: Any) -> None:
        self.settings = preset(name).model_copy(update=change or {})
        self.options = {"checkpointer": InMemorySaver(), "tools": [look], **options}
        self.models: list[ScriptedModel] = []
        self.events: list[dict[str, Any]] = []
        self.values: dict[str, Any] = {}
        self.rewritten = False
        self.build()

    def build(self, *replies: Any, **model: Any) -> ScriptedModel:
        """Return a new agent with another script, as a new process would make it."""
        self.model = ScriptedModel(*replies, **model)
        self.models.append(self.model)
        self.agent = create_todo_agent(self.model, settings=self.settings, **self.options)
        return self.model

    def run(self, *replies: Any, given: Any = "go", endless: bool = False, **more: Any) -> "Stage":
        """Run once over these replies; a string is the user's message, `more` goes into the input."""
        self.build(*replies)
        message = {"messages": [("user", given)]} if isinstance(given, str) else given
        self.play({**message, **more} if message is not None else None)
        if not endless:
            self.model.assert_done()
        return self

    def play(self, given: Any) -> None:
        """Run with this input, and keep the stream."""
        self.events = []
        for mode, part in self.agent.stream(given, CONFIG, stream_mode=["custom", "values"]):
            if mode == "custom":
                self.events.append(part)
        self.values = self.snapshot.values

    # -- what the model gets -----------------------------------------------------------------------------

    @property
    def asked(self) -> int:
        """Return how many requests the last run made."""
        return len(self.model.requests)

    @property
    def system(self) -> str:
        """Return the system prompt of the last request."""
        first = self.model.requests[-1][0]
        return str(first.content) if first.type == "system" else ""

    @property
    def tools(self) -> list[str]:
        """Return the names of the tools bound in the last request."""
        return names_of(self.model.bound[-1])

    # -- what is kept ------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Any:
        return self.agent.get_state(CONFIG)

    @property
    def messages(self) -> list[BaseMessage]:
        return list(self.values["messages"])

    @property
    def results(self) -> list[ToolMessage]:
        return [message for message in self.messages if isinstance(message, ToolMessage)]

    @property
    def result(self) -> str:
        """Return the text of the last tool result."""
        return str(self.results[-1].content)

    def results_of(self, name: str) -> list[str]:
        """Return the contents of all results of one tool."""
        return [str(message.content) for message in self.results if message.name == name]

    @property
    def todos(self) -> list[Any]:
        return list(self.values["todos"])

    @property
    def listed(self) -> list[tuple[str, str]]:
        """Return content and status of every item."""
        return [(todo["content"], todo["status"]) for todo in self.todos]

    @property
    def ledger(self) -> dict[str, Any]:
        return dict(self.values["todo_ledger"])

    @property
    def session(self) -> dict[str, Any]:
        return dict(session_of(self.snapshot))

    @property
    def ending(self) -> tuple[str, str | None]:
        session = self.session
        return session["state"], session["reason"]

    # -- what the graph wrote ----------------------------------------------------------------------------

    def injected(self, kind: str) -> list[str]:
        """Return the user messages of this kind that the graph wrote, in order."""
        return injected(self.messages, kind)

    @property
    def notices(self) -> list[str]:
        """Return `cycle/budget` of each wake of the last run."""
        return [f"{e['cycle']}/{e['budget']}" for e in self.events if e["type"] == "wake"]

    @property
    def reminded(self) -> list[int]:
        """Return the positions, among all results, of those that carry a reminder."""
        return [place for place, message in enumerate(self.results) if kind_of(message) == "nag"]

    # -- what always holds -------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that no run's requests break the wire order or the prefix."""
        requests = [request for model in self.models for request in model.requests]
        assert wire_faults(requests) == []
        if not self.rewritten:
            assert [f for f in prompt_faults(requests) if "no system message" not in f] == []


Make = Callable[..., Stage]
"""The fixture `stage`: `stage("loki", {"max_wake_cycles": 3}, tools=[...])`."""


def kind_of(message: BaseMessage) -> str | None:
    """Return the kind of a message that the graph wrote, or None for anybody else's."""
    return message.additional_kwargs.get("wakeloop", {}).get("kind")


def injected(messages: Sequence[BaseMessage], kind: str) -> list[str]:
    """Return the user messages of this kind that the graph wrote."""
    return [str(m.content) for m in messages if isinstance(m, HumanMessage) and kind_of(m) == kind]


def names_of(tools: Sequence[Any]) -> list[str]:
    return [tool["function"]["name"] for tool in tools]


def elsewhere(
    db: Path, name: str, *replies: Any, given: Any = "go", change: dict[str, Any] | None = None
) -> Any:
    """Run once in another process over a SQLite file.

    A reply is a string, a list of `[tool, arguments]`, or None, where the process is killed. Returns what
    `elsewhere.py` prints, or None if it was killed.
    """
    job = {"db": str(db), "preset": name, "change": change or {}, "replies": replies, "given": given}
    done = subprocess.run(
        [sys.executable, str(ELSEWHERE)],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if done.returncode == -9:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

"""The demo's audit of a small folder, by its offline model."""

from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from wakeloop import create_todo_agent
from wakeloop.demo.history import events
from wakeloop.demo.job import demo_tools
from wakeloop.demo.offline import OfflineAuditor

REPORT = "wakeloop-report.md"
GO = {"configurable": {"thread_id": "1"}}


class Watched(OfflineAuditor):
    """The same, keeping the requests."""

    _requests: list = PrivateAttr(default_factory=list)

    def _generate(self, messages, *args, **kwargs):
        self._requests.append(list(messages))
        return super()._generate(messages, *args, **kwargs)


def project(tmp_path):
    """A folder with a finding in each of its three files."""
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "a.py").write_text("def f():\n    # TODO: x | y\n    return 1\n")
    (root / "b.py").write_text("def broken(:\n")
    (root / "docs" / "c.md").write_text("# C\n\n[gone](gone.md) [here](../a.py)\n")
    return root


def agent_for(root, model=None, saver=None, settings="wakeloop", tools=None):
    return create_todo_agent(
        model or Watched(),
        tools or demo_tools(root),
        settings=settings,
        checkpointer=saver or InMemorySaver(),
    )


def ask(text):
    return {"messages": [("user", text)]}


def values(graph):
    return graph.get_state(GO).values


def check_reads_nothing_twice(messages):
    """No file is read again once its item is closed."""
    by_id = {str(number): path for number, path in enumerate(paths_of(messages), 1)}
    closed = set()
    for event in events(messages):
        if event.name == "todo_update" and event.state == "ok":
            closed.add(by_id.get(str(event.args["id"])))
        elif event.name == "read_file":
            assert event.args["path"] not in closed


def paths_of(messages):
    plans = [e for e in events(messages) if e.name == "todo_write" and e.state == "ok"]
    return [item.removeprefix("Audit ") for item in plans[0].args["items"]]

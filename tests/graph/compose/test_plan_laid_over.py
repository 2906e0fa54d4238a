"""The middleware shows the plan to a person before the work, with and without a verifier."""

from typing import Any

import pytest
from laid_over import GO, THREAD, ended, looks, over, plan
from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import session_of
from wakeloop.middleware import ChangesState, WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says, wire_faults

ACCEPT = Command(resume={"decisions": [{"type": "approve"}]})
REJECT = Command(resume={"decisions": [{"type": "reject", "message": "Smaller."}]})
GIVEN = {**GO, "todos": [{"content": "a", "status": "pending"}]}
# one item is completed and one is new: the verifier is asked, and then the person
ROUND = calls(
    (
        "write_todos",
        {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]},
    ),
    looks("x"),
)


def edit(*items: str) -> Any:
    action = {"name": "approve_plan", "args": {"todos": list(items)}}
    return Command(resume={"decisions": [{"type": "edit", "edited_action": action}]})


class Desk:
    """An agent whose tool calls, verifications and requests are recorded in order."""

    def __init__(
        self, door: str, *replies: Any, beside: Any = (), verified: bool = True, **options: Any
    ) -> None:
        self.door, self.log, self.saver = door, [], InMemorySaver()
        self.model, self.beside, self.verified, self.options = (
            ScriptedModel(*replies),
            beside,
            verified,
            options,
        )
        self.agent = self.made()

    def made(self) -> Any:
        def look(path: str) -> str:
            """Look at a path."""
            self.log.append(f"look {path}")
            return f"saw {path}"

        def verify(todo: Any, state: Any) -> None:
            self.log.append(f"verify {todo['content']}")

        async def averify(todo: Any, state: Any) -> None:
            verify(todo, state)

        settings = self.options.pop("settings", {"approve_plan": "changes"})
        judge: Any = averify if self.door == "async" else verify
        layer = WakeLoopMiddleware(settings=settings, verify=judge if self.verified else None)
        return over(self.model, layer, *self.beside, tools=[look], checkpointer=self.saver, **self.options)

    async def run(self, given: Any, limit: int | None = None) -> list[str]:
        """Return the nodes that a run walks through."""
        config: Any = THREAD if limit is None else {**THREAD, "recursion_limit": limit}
        if self.door == "sync":
            parts = [*self.agent.stream(given, config, stream_mode="updates")]
        else:
            parts = [part async for part in self.agent.astream(given, config, stream_mode="updates")]
        return [node.removeprefix("WakeLoopMiddleware.") for part in parts for node in part]

    @property
    def values(self) -> Any:
        return self.agent.get_state(THREAD).values

    @property
    def put(self) -> list[Any]:
        """Return what a person is asked, item by item."""
        asked = [one.value["action_requests"][0]["args"] for one in self.agent.get_state(THREAD).interrupts]
        return [[(todo["content"], todo["status"]) for todo in args["todos"]] for args in asked]

    @property
    def results(self) -> list[str]:
        return [m.text for m in self.values["messages"] if m.type == "tool"]

    @property
    def empty(self) -> list[Any]:
        return [
            m for m in self.values["messages"] if isinstance(m, AIMessage) and not (m.text or m.tool_calls)
        ]


DOORS = pytest.mark.parametrize("door", ["sync", "async"])
OPENED = ["before_agent"]
ASKED = ["model", "after_model"]
PUT = ["model", "__interrupt__"]
REST = [calls(plan("a!", "b!")), says("bye")]


@DOORS
@pytest.mark.parametrize("schema", [None, ChangesState])
async def test_the_verifier_is_asked_once_and_then_the_person(door: str, schema: Any) -> None:
    desk = Desk(door, ROUND, *REST, state_schema=schema)
    assert await desk.run(GIVEN) == [*OPENED, *ASKED, *PUT]
    assert (desk.put, desk.log) == ([[("a", "completed"), ("b", "pending")]], ["verify a"])
    assert len(desk.model.requests) == 1
    assert session_of(desk.agent.get_state(THREAD))["on"] == "approval"
    walked = await desk.run(ACCEPT)
    assert walked == ["after_model", "tools", *ASKED, *ASKED, "after_agent"]
    assert desk.log == [
        "verify a",
        "look x",
        "verify b",
        "verify a",
    ]  # its second look: x was looked at since
    assert [m.type for m in desk.values["messages"]] == [
        "human",
        "human",
        "ai",
        "tool",
        "tool",
        "ai",
        "tool",
        "ai",
    ]
    assert (ended(desk.agent), desk.empty) == (("dormant", "settled", 3), [])
    assert wire_faults(desk.model.requests) == []


@DOORS
async def test_without_a_verifier_the_person_is_asked_at_once(door: str) -> None:
    desk = Desk(door, ROUND, *REST, verified=False)
    assert await desk.run(GIVEN) == [*OPENED, "model", "__interrupt__"]
    assert (desk.put, desk.log) == ([[("a", "completed"), ("b", "pending")]], [])
    assert await desk.run(ACCEPT) == ["after_model", "tools", *ASKED, *ASKED, "after_agent"]
    assert (desk.log, ended(desk.agent)) == (["look x"], ("dormant", "settled", 3))


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize(
    ("answer", "todos", "held"),
    [
        (REJECT, [("a", "pending")], "the user rejected the list sent with it."),
        (
            edit("c"),
            [("c", "pending")],
            "the user changed the list sent with it. Repeat what still fits the list.",
        ),
    ],
    ids=["rejected", "edited"],
)
async def test_calls_next_to_an_unapproved_list_are_not_run(
    answer: Any, todos: Any, held: str, verified: bool
) -> None:
    last = calls(plan(*[f"{content}!" for content, _ in todos]))
    desk = Desk("sync", ROUND, last, says("bye"), verified=verified)
    await desk.run(GIVEN)
    walked = await desk.run(answer)
    assert walked == ["after_model", *ASKED, *ASKED, "after_agent"]
    assert desk.results[1] == f"Error: this call was not run, because {held}"
    assert ("accepted the list with changes" in desk.results[0], "did not accept" in desk.results[0]) == (
        answer is not REJECT,
        answer is REJECT,
    )
    assert desk.log == (["verify a", f"verify {todos[0][0]}"] if verified else [])
    assert (ended(desk.agent), desk.empty) == (("dormant", "settled", 3), [])
    assert wire_faults(desk.model.requests) == []


@pytest.mark.parametrize("answer", [ACCEPT, REJECT, edit("c")])
async def test_a_faulty_call_next_to_a_list_is_answered_once(answer: Any) -> None:
    faulty = calls(plan("a!", "b"), ("no_tool", {}), looks("x"))
    desk = Desk("sync", faulty, calls(plan("c!")), says("bye"))
    await desk.run(GIVEN)
    assert desk.results == []
    await desk.run(answer)
    first, last = desk.model.requests[:2]
    behind = [m for m in last[len(first) :] if m.type == "tool"]
    assert [m.tool_call_id for m in behind] == [c["id"] for c in last[len(first)].tool_calls]
    assert (desk.log[:2] == ["verify a", "look x"]) == (answer is ACCEPT)
    assert wire_faults(desk.model.requests) == []


@pytest.mark.parametrize("verified", [True, False])
async def test_c65_new_input_does_not_take_the_place_of_the_answer(verified: bool) -> None:
    """The plan is asked about again, and the verifier is not asked twice."""
    desk = Desk(
        "sync",
        ROUND,
        says("As you like."),
        verified=verified,
        settings={"approve_plan": "changes", "auto_continue": False},
    )
    await desk.run(GIVEN)
    await desk.run({"messages": [("user", "Never mind.")]})
    assert (desk.results, len(desk.model.requests)) == ([], 1)
    await desk.run(REJECT)
    assert [result.partition(".")[0] for result in desk.results] == [
        '{"error": "the user did not accept this list, so nothing of it was stored',
        "Error: this call was not run, because the user rejected the list sent with it",
    ]
    assert (len(desk.model.requests), desk.empty) == (2, [])
    assert desk.log.count("verify a") == verified
    assert wire_faults(desk.model.requests) == []


async def test_hooks_after_it_see_a_single_round() -> None:
    """A person is asked once about each call, and edits stay; a limit counts the turn without a request."""
    hitl = HumanInTheLoopMiddleware(interrupt_on={"look": True, "write_todos": True})
    desk = Desk("sync", ROUND, *REST, beside=[hitl, ModelCallLimitMiddleware(run_limit=9)])
    await desk.run(GIVEN)
    todos = [{"content": "a", "status": "completed"}, {"content": "c", "status": "pending"}]
    decisions = [
        {"type": "edit", "edited_action": {"name": "write_todos", "args": {"todos": todos}}},
        {"type": "approve"},
    ]
    await desk.run(Command(resume={"decisions": decisions}))
    assert (desk.put, desk.log) == ([[("a", "completed"), ("c", "pending")]], ["verify a"])
    await desk.run(ACCEPT)
    assert desk.log == ["verify a", "look x"]
    assert desk.values["thread_model_call_count"] == 3
    [again] = desk.agent.get_state(THREAD).interrupts
    assert [one["name"] for one in again.value["action_requests"]] == ["write_todos"]


def busier() -> Any:
    """Yield endless rounds whose calls wait for each list."""
    for number in range(1, 40):
        items = [f"{n}!" for n in range(1, number)] + [str(number)]
        yield calls(plan(*items), looks(number))


@pytest.mark.parametrize(
    ("beside", "least", "enough"), [([], 8, 12), ([ModelCallLimitMiddleware(run_limit=99)], 12, 18)]
)
async def test_near_the_step_limit_it_parks_and_asks_the_verifier_once(
    beside: Any, least: int, enough: int
) -> None:
    """The turn in which nothing is asked counts within a round's maximum: a question ends the run."""
    ends = []
    for limit in range(least, enough + 2):
        desk = Desk("sync", *busier(), beside=beside)
        await desk.run(GO, limit=limit)
        for _ in range(5):
            if desk.put:
                await desk.run(ACCEPT, limit=limit)
        asked = [line for line in desk.log if line.startswith("verify")]
        assert asked == [f"verify {n}" for n in range(1, len(asked) + 1)]
        ends.append("interrupted" if desk.put else ended(desk.agent)[1])
    assert ends == ["step_limit"] * (enough - least) + ["interrupted"] * 2

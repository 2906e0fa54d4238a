"""The middleware next to others: what each sees, and how their endings are reported."""

from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.middleware.rubric import RubricMiddleware
from laid_over import GO, THREAD, busy, ended, kinds, laid, looks, over, plan, settled
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
    hook_config,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from wakeloop import session_of
from wakeloop.middleware import WakeLoopMiddleware
from wakeloop.testing import ScriptedModel, calls, says

# -- its place -------------------------------------------------------------------------------------------


def test_a_call_limit_counts_every_request_of_the_first_in_the_list() -> None:
    model = ScriptedModel(busy())
    agent = laid(model, ModelCallLimitMiddleware(run_limit=4))
    agent.invoke(GO, THREAD)
    assert len(model.requests) == 4
    assert ended(agent) == ("idle", "ended_elsewhere", 4)


def test_approvals_per_call_ask_where_tools_run_and_not_about_the_list() -> None:
    model = ScriptedModel(calls(plan("a"), looks("x"), looks("y")), calls(plan("a!")), says("bye"))
    on = {"look": True, "write_todos": True}
    agent = laid(model, HumanInTheLoopMiddleware(interrupt_on=on, interrupt_mode="per_call"))
    agent.invoke(GO, THREAD)
    first, second = agent.get_state(THREAD).interrupts
    assert [one.value["args"] for one in (first, second)] == [{"path": "x"}, {"path": "y"}]
    assert [item["content"] for item in agent.get_state(THREAD).values["todos"]] == ["a"]
    answers = {first.id: {"type": "approve"}, second.id: {"type": "reject", "message": "no"}}
    told = [m.text for m in agent.invoke(Command(resume=answers), THREAD)["messages"] if m.type == "tool"]
    assert told[1:3] == ["saw x", "User rejected the tool call for `look` with reason: no"]
    assert ended(agent) == ("dormant", "settled", 3)


class Picky(AgentMiddleware):
    """Has the first reply made again, as a guardrail does."""

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        again = state["messages"][-1].text == "bad"
        return {"jump_to": "model", "messages": [("user", "Again.")]} if again else None


def test_a_middleware_that_asks_again_by_itself_is_not_taken_for_a_later_one() -> None:
    """Its jump back is shorter than the middleware's own."""
    model = ScriptedModel(says("bad"), calls(looks(1)), *settled())
    agent = laid(model, Picky())
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("dormant", "settled", 6)


# -- people ----------------------------------------------------------------------------------------------

EDIT = {"type": "edit", "edited_action": {"name": "write_todos", "args": plan("mine")[1]}}
SPOILT = {"type": "edit", "edited_action": {"name": "write_todos", "args": {"todos": "all of them"}}}


@pytest.mark.parametrize(
    ("decision", "items", "reason", "requests"),
    [
        ({"type": "approve"}, ["a"], "wake_budget", 3),
        (EDIT, ["mine"], "wake_budget", 3),
        (SPOILT, [], "answered", 2),
        ({"type": "reject", "message": "no"}, [], "answered", 2),
    ],
    ids=["approve", "edit", "spoilt", "reject"],
)
@pytest.mark.parametrize("door", ["sync", "async"])
async def test_a_persons_decision_about_a_todo_call_counts(
    decision: Any, items: list[str], reason: str, requests: int, door: str
) -> None:
    approvals = HumanInTheLoopMiddleware(interrupt_on={"write_todos": True})
    model = ScriptedModel(calls(plan("a")), says("one"), says("two"))
    agent = laid(model, approvals, settings={"max_wake_cycles": 1, "guard_retries": 0})
    agent.invoke(GO, THREAD)
    assert session_of(agent.get_state(THREAD))["reason"] == "interrupted"
    answer: Any = Command(resume={"decisions": [decision]})
    await agent.ainvoke(answer, THREAD) if door == "async" else agent.invoke(answer, THREAD)
    values = agent.get_state(THREAD).values
    assert [todo["content"] for todo in values["todos"]] == items
    assert ended(agent)[1:] == (reason, requests)
    assert sum(message.type == "tool" for message in values["messages"]) == 1


# -- others that end a run, or continue it ---------------------------------------------------------------


class Guard(AgentMiddleware):
    """Ends the run after the first reply, as a guardrail does."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"} if state["messages"][-1].type == "tool" else None


def test_an_ending_caused_by_another_has_a_name() -> None:
    agent = laid(ScriptedModel(calls(plan("a"))), Guard())
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("idle", "ended_elsewhere", 1)


def graded(result: str) -> Any:
    gap = "more" if result == "needs_revision" else ""
    criteria = [{"name": "c", "passed": not gap, "gap": gap}]
    return calls(("GraderResponse", {"result": result, "explanation": "e", "criteria": criteria}))


@pytest.mark.filterwarnings("ignore:The middleware `RubricMiddleware` is in beta")
def test_a_rubrics_second_round_is_not_an_ending() -> None:
    grader = ScriptedModel(graded("needs_revision"), graded("satisfied"))
    model = ScriptedModel(*settled(), calls(plan("b")), says("stop"), calls(plan("b!")), says("end"))
    agent = laid(model, RubricMiddleware(model=grader))
    stream = agent.stream({**GO, "rubric": "be good"}, THREAD, stream_mode=["custom", "values"])
    told: list[Any] = []
    for mode, part in stream:
        told.append(part["type"] if mode == "custom" else part.get("todo_session", {}).get("state"))
    assert told.count("parked") == 1
    assert told.count("dormant") == 1  # only in the last values
    assert ended(agent) == ("dormant", "settled", 8)
    assert agent.get_state(THREAD).values["todo_session"]["wakes"] == 2


# -- others that change what the model sees --------------------------------------------------------------


def texts(model: ScriptedModel, number: int) -> list[str]:
    return [message.text.partition("\n")[0] for message in model.requests[number][1:]]


def test_a_summary_in_the_thread_does_not_hide_the_list() -> None:
    summary = SummarizationMiddleware(
        model=ScriptedModel(*[says("so far")] * 4), trigger=("messages", 5), keep=("messages", 2)
    )
    model = ScriptedModel(calls(plan("a")), calls(looks(1)), calls(plan("a!")), says("bye"))
    agent = laid(model, summary)
    agent.invoke(GO, THREAD)
    assert [message.type for message in model.requests[2][1:]] == ["human", "ai", "tool"]
    assert "- [pending] a" in model.requests[2][-1].text
    assert ended(agent) == ("dormant", "settled", 4)


def editing(**more: Any) -> ContextEditingMiddleware:
    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=10, keep=1, **more)])


def test_context_editing_around_it_does_not_hide_the_list() -> None:
    model = ScriptedModel(calls(plan("a")), calls(looks(1)), calls(looks(2)), calls(plan("a!")), says("bye"))
    over(model, editing(), WakeLoopMiddleware()).invoke(GO, THREAD)
    assert texts(model, 2) == ["go", "", "[cleared]", "", "saw 1"]
    assert "- [pending] a" in model.requests[2][-1].text
    assert "- [pending] a" in model.requests[3][-1].text


def test_context_editing_keeps_excluded_todo_results() -> None:
    """It runs once the request has been made, so its own setting keeps the list."""
    script = [calls(plan("a")), calls(looks(1)), calls(plan("a!")), says("bye")]
    model, other = ScriptedModel(*script), ScriptedModel(*script)
    laid(model, editing()).invoke(GO, THREAD)
    assert texts(model, 2) == ["go", "", "[cleared]", "", "saw 1"]
    laid(other, editing(exclude_tools=["write_todos"])).invoke(GO, THREAD)
    assert texts(other, 2)[2].startswith('{"todos"')


def test_those_that_need_nothing() -> None:
    beside = [
        ToolCallLimitMiddleware(run_limit=9), ModelRetryMiddleware(max_retries=1, initial_delay=0),
        ToolRetryMiddleware(), PIIMiddleware("email"),
    ]  # fmt: skip
    plan_, stop, *rest = settled()
    agent = laid(ScriptedModel(plan_, RuntimeError("once"), stop, *rest), *beside)
    agent.invoke(GO, THREAD)
    assert ended(agent) == ("dormant", "settled", 4)
    assert kinds(agent) == ["human", "ai", "tool", "ai", "human", "ai", "tool", "ai"]


# -- agents beneath --------------------------------------------------------------------------------------


def by_first_words(**scripts: list[Any]) -> ScriptedModel:
    """One model for all agents: the first message shows which one asks."""
    met = dict.fromkeys(scripts, 0)

    def reply(request: Any) -> Any:
        name = next(message.text for message in request if message.type == "human")
        met[name] += 1
        return scripts[name][met[name] - 1]

    return ScriptedModel(*[reply] * sum(map(len, scripts.values())))


def test_two_subagents_in_one_superstep() -> None:
    tasks = [("task", {"description": name, "subagent_type": "worker"}) for name in ("left", "right")]
    model = by_first_words(
        go=[calls(plan("m")), calls(*tasks), says("stop"), calls(plan("m!")), says("bye")],
        left=settled(),
        right=settled(),
    )
    worker: Any = {
        "name": "worker",
        "description": "works",
        "system_prompt": "Work.",
        "middleware": [WakeLoopMiddleware()],
    }
    agent: Any = create_deep_agent(
        model=model, subagents=[worker], middleware=[WakeLoopMiddleware()], checkpointer=InMemorySaver()
    )
    given = {**GO, "todo_settings": {"max_wake_cycles": 7}, "todos": []}
    stream = agent.stream(given, THREAD, stream_mode="custom", subgraphs=True)
    opened = [(bool(space), part["budget"]) for space, part in stream if part["type"] == "activated"]
    assert opened == [(False, 7), (True, 7), (True, 7)]  # they inherit the settings
    values = agent.get_state(THREAD).values
    assert [todo["content"] for todo in values["todos"]] == ["m"]  # their lists do not flow back
    assert ended(agent) == ("dormant", "settled", 5)  # nor do their sessions
    model.assert_done()

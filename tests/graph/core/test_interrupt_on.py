"""`interrupt_on`: calls of a tool are put to the person before they run."""

from typing import Annotated, Any

import pytest
from agents import END, START, WORK, Make, look, looks
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from pydantic import TypeAdapter

from wakeloop import WakeloopError, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, malformed_call

ALL = ["approve", "edit", "reject", "respond"]
EDITED = "The user changed this call before it ran. It ran with these arguments: {}. "
EDITED += "Do not repeat your own version of it."


class Mailer:
    """Remembers what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []

    def send(self, to: str, copies: int = 1) -> str:
        self.sent.append((to, copies))
        return f"sent to {to}"

    def tools(self) -> list[Any]:
        @tool
        def mail(to: str, copies: int = 1) -> str:
            """Send a mail."""
            return self.send(to, copies)

        @tool
        def mail_seen(to: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
            """Send a mail, knowing the state."""
            return self.send(to, len(state["messages"]))

        return [mail, mail_seen, look]


def mails(*to: str, name: str = "mail") -> Any:
    return calls(*((name, {"to": one}, one) for one in to))


def put(to: str, name: str = "mail", text: str = "", allowed: Any = ALL) -> dict[str, Any]:
    """What the person is asked."""
    action = {"name": name, "args": {"to": to}, "description": text or f"Run {name}?"}
    configs = [{"action_name": name, "allowed_decisions": allowed}]
    return {"action_requests": [action], "review_configs": configs, "on": "approval"}


def values(agent: Any) -> list[Any]:
    return [one.value for one in agent.snapshot.interrupts]


def answers(agent: Any, *decisions: Any) -> Any:
    """The decisions for the questions that stand, in their order, each by its id."""
    ids = [one.id for one in agent.snapshot.interrupts]
    return Command(resume={key: {"decisions": [one]} for key, one in zip(ids, decisions, strict=True)})


def edit(name: str = "mail", **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


def test_each_call_asks_and_each_is_decided_on_its_own(thread: Make) -> None:
    post = Mailer()
    reply = calls(*(("mail", {"to": one}, one) for one in "abcd"), ("look", {"path": "x"}, "x"))
    agent = thread(reply, "bye", tools=post.tools(), interrupt_on={"mail": True})
    assert agent.walk("go") == [*START, "run_tools"]
    assert values(agent) == [put(one) for one in "abcd"]
    assert agent.session["on"] == "approval"
    assert post.sent == []
    decisions = (
        {"type": "approve"},
        edit(to="B", copies=2),
        {"type": "reject", "message": "Not to c."},
        {"type": "respond", "message": "d knows."},
    )
    assert agent.walk(answers(agent, *decisions)) == [*WORK, *END]
    assert sorted(post.sent) == [("B", 2), ("a", 1)]
    assert agent.results() == [
        ("success", "sent to a"),
        ("success", EDITED.format('{"to": "B", "copies": 2}') + "\n\nsent to B"),
        (
            "error",
            (
                'Error: the user rejected this call; it was not run. They said: "Not to c." '
                "Do not send it again unless they ask for it."
            ),
        ),
        ("success", "d knows."),
        ("success", "saw x"),
    ]
    assert agent.messages[1].tool_calls[1]["args"] == {"to": "b"}  # the model's own stands
    assert agent.asked == 2


def test_one_at_a_time_repeats_nothing(thread: Make) -> None:
    post = Mailer()
    agent = thread(mails("a", "b"), "bye", tools=post.tools(), interrupt_on={"mail": True})
    agent.run("go")
    first, second = agent.snapshot.interrupts
    agent.run(Command(resume={first.id: {"type": "approve"}}))
    assert (post.sent, [one.id for one in agent.snapshot.interrupts]) == ([("a", 1)], [second.id])
    agent.run(Command(resume="yes"))
    assert (post.sent, agent.asked) == ([("a", 1), ("b", 1)], 2)


NO = {"type": "reject", "message": "Not to a."}


@pytest.mark.parametrize(
    ("decision", "sent"), [(NO, []), ({"type": "approve"}, [("a", 1)]), (edit(to="B"), [("B", 1)])]
)
@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_a_no_is_a_no_in_a_build_that_asks_about_nothing(
    decision: Any, sent: Any, planned: bool, dies: bool
) -> None:
    """The question stands or is put anew, whatever the build that goes on would ask itself."""
    post, saver = Mailer(), InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    settings = preset("wakeloop").model_copy(
        update={"approve_plan": "first" if planned else "off", "max_wake_cycles": 0, "guard_retries": 0}
    )

    def build(*replies: Any, **more: Any) -> Any:
        return create_todo_agent(
            ScriptedModel(*replies), post.tools(), settings=settings, checkpointer=saver, **more
        )

    reply = calls(*([("todo_write", {"items": ["x"]})] if planned else []), ("mail", {"to": "a"}))
    before = ["validate_todos" if planned else "run_tools"] if dies else []
    asking = build(reply, interrupt_on={"mail": True})
    asking.invoke({"messages": [("user", "go")]}, config, interrupt_before=before)
    other = build("bye")
    if dies:
        other.invoke(None, config)
    if planned:
        other.invoke(Command(resume="yes"), config)
    [asked] = other.get_state(config).interrupts
    assert asked.value["action_requests"][0]["name"] == "mail"
    assert post.sent == []
    out = other.invoke(Command(resume={"decisions": [decision]}), config)
    assert (post.sent, out["messages"][-1].text) == (sent, "bye")


def test_a_tool_that_is_given_state_is_put_and_edited_as_any_other(thread: Make) -> None:
    post = Mailer()
    agent = thread(
        mails("a", name="mail_seen"), "bye", tools=post.tools(), interrupt_on={"mail_seen": ["edit"]}
    )
    agent.run("go")
    assert values(agent) == [put("a", "mail_seen", allowed=["edit"])]
    agent.run(answers(agent, edit("mail_seen", to="b")))
    assert post.sent == [("b", 2)]
    assert agent.results() == [("success", EDITED.format('{"to": "b"}') + "\n\nsent to b")]


def test_a_tool_that_asks_itself_is_asked_about_once(thread: Make) -> None:
    @tool
    def sure(what: str) -> str:
        """Ask, and do."""
        return f"{what}: {interrupt('Sure?')}"

    agent = thread(calls(("sure", {"what": "w"})), "bye", tools=[sure], interrupt_on={"sure": True})
    agent.run("go")
    agent.run(Command(resume="y"))
    assert values(agent) == ["Sure?"]  # a tool's own question stays as it is
    agent.run(Command(resume="very"))
    assert agent.results() == [("success", "w: very")]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (edit(to="b", copy=3), "mail has no argument 'copy'; it takes to, copies"),
        (
            edit(copies="many", to="b"),
            (
                "invalid arguments: copies: Input should be a valid integer, unable to parse string "
                "as an integer"
            ),
        ),
        (
            edit("look", path="x"),
            "an edit changes the arguments of mail, and cannot turn it into look",
        ),
        ({"type": "respond"}, "a decision to respond needs its text as message"),
    ],
)
def test_an_answer_that_cannot_be_taken_is_asked_for_again(thread: Make, answer: Any, fault: str) -> None:
    post = Mailer()
    reply = calls(("mail", {"to": "a"}), ("look", {"path": "x"}))
    agent = thread(reply, "bye", tools=post.tools(), interrupt_on={"mail": True})
    agent.run("go")
    assert agent.walk(Command(resume=answer)) == ["run_tools"]
    error = f"The answer was not accepted: {fault}."
    assert values(agent) == [{**put("a", text=f"{error}\n\nRun mail?"), "error": error}]
    assert agent.walk(Command(resume={"type": "approve"})) == [*WORK, *END]
    assert (post.sent, agent.asked) == ([("a", 1)], 2)


@pytest.mark.parametrize(
    ("allowed", "typed", "result"),
    [
        (["approve", "reject"], "y", ("success", "sent to a")),
        (
            ["approve", "reject"],
            "no",
            (
                "error",
                (
                    "Error: the user rejected this call; it was not run. "
                    "Do not send it again unless they ask for it."
                ),
            ),
        ),
        (["respond"], "I told him.", ("success", "I told him.")),
    ],
)
def test_plain_words_are_read_by_what_is_allowed(
    thread: Make, allowed: Any, typed: str, result: tuple[str, str]
) -> None:
    agent = thread(mails("a"), "bye", tools=Mailer().tools(), interrupt_on={"mail": allowed})
    agent.run("go")
    agent.run(Command(resume=typed))
    assert agent.results() == [result]


def test_calls_that_do_not_run_ask_nobody(thread: Make) -> None:
    bad = calls(("nobody", {}, "1"), malformed_call("mail", "{", "2"))
    agent = thread(bad, looks("x"), "bye", tools=Mailer().tools(), interrupt_on={"mail": True, "look": False})
    agent.run("go")
    assert [status for status, _ in agent.results()] == ["error", "error", "success"]


def test_the_shape_is_langchains(thread: Make) -> None:
    how = {"allowed_decisions": ["approve"], "description": "Mail it?"}
    agent = thread(mails("a"), "bye", tools=Mailer().tools(), interrupt_on={"mail": how})
    agent.run("go")
    [value] = values(agent)
    assert value == put("a", text="Mail it?", allowed=["approve"])
    TypeAdapter(HITLRequest).validate_python({key: value[key] for key in HITLRequest.__annotations__})
    HumanInTheLoopMiddleware(interrupt_on={"mail": how})  # the same configuration
    agent.run(Command(resume={"decisions": [{"type": "approve"}]}))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"maill": True},
            "interrupt_on names an unknown tool, 'maill'. Did you mean 'mail'?",
        ),
        (
            {"zzz": True},
            "interrupt_on names an unknown tool, 'zzz'. Available: look, mail, mail_seen.",
        ),
        (
            {"todo_write": True},
            "interrupt_on cannot review 'todo_write': the setting approve_plan covers the list.",
        ),
        ({"web": True}, "interrupt_on cannot review 'web': the model's provider runs it."),
        (
            {"mail": ["accept"]},
            (
                "interrupt_on['mail'] has an unknown decision, 'accept'. "
                "Available: approve, edit, reject, respond."
            ),
        ),
        (
            {"mail": {"allowed_decisions": ["approve"], "when": len}},
            (
                "interrupt_on['mail'] has an unknown key, 'when'. It takes True, a list of decisions, or "
                "{'allowed_decisions': […], 'description': '…'}."
            ),
        ),
        (
            {"mail": []},
            (
                "interrupt_on['mail'] must be True, a list of decisions, or "
                "{'allowed_decisions': […], 'description': '…'}, got []."
            ),
        ),
        (
            ["mail"],
            (
                "interrupt_on must map tool names to True, a list of decisions, or "
                "{'allowed_decisions': […], 'description': '…'}, got a list."
            ),
        ),
    ],
)
def test_what_cannot_be_asked_about_is_refused_at_build(given: Any, sentence: str) -> None:
    tools = [*Mailer().tools(), {"type": "web_search", "name": "web"}]
    with pytest.raises(WakeloopError) as refused:
        create_todo_agent(ScriptedModel(), tools, interrupt_on=given)
    assert str(refused.value) == sentence

"""`interrupt_on`: calls of a tool are shown to the person before they run."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import pytest
from agents import CONFIG, END, START, TODO, WORK, Make, done, look, looks
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.middleware.human_in_the_loop import HITLRequest
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command, interrupt
from pydantic import TypeAdapter

from wakeloop import InputError, TodoState, WakeloopError, create_todo_agent, preset
from wakeloop.testing import ScriptedModel, calls, malformed_call
from wakeloop.tools import shell_tool

ALL = ["approve", "edit", "reject", "respond"]
EDITED = "The user changed this call before it ran. It ran with these arguments: {}. "
EDITED += "Do not repeat your own version of it."


class Mailer:
    """Records what was sent."""

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


def request_for(to: str, name: str = "mail", text: str = "", allowed: Any = ALL) -> dict[str, Any]:
    """Return what the person is asked."""
    action = {"name": name, "args": {"to": to}, "description": text or f"Run {name}?"}
    configs = [{"action_name": name, "allowed_decisions": allowed}]
    return {"action_requests": [action], "review_configs": configs, "on": "approval"}


def values(agent: Any) -> list[Any]:
    return [one.value for one in agent.snapshot.interrupts]


def answers(agent: Any, *decisions: Any) -> Any:
    """Return the decisions for the open questions, in order, each by its id."""
    ids = [one.id for one in agent.snapshot.interrupts]
    return Command(resume={key: {"decisions": [one]} for key, one in zip(ids, decisions, strict=True)})


def edit(name: str = "mail", **args: Any) -> dict[str, Any]:
    return {"type": "edit", "edited_action": {"name": name, "args": args}}


NO = {"type": "reject", "message": "Not to a."}


def together(*to: str) -> dict[str, Any]:
    """Return what the person is asked about several calls."""
    asked: dict[str, Any] = {"action_requests": [], "review_configs": [], "on": "approval"}
    for one in map(request_for, to):
        for key in ("action_requests", "review_configs"):
            asked[key] += one[key]
    return asked


DECISIONS = (
    {"type": "approve"},
    edit(to="B", copies=2),
    {"type": "reject", "message": "Not to c."},
    {"type": "respond", "message": "d knows."},
)
RESULTS = [
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
ABCD = calls(*(("mail", {"to": one}, one) for one in "abcd"), ("look", {"path": "x"}, "x"))


def test_c64_the_calls_of_a_reply_are_asked_about_together_and_decided_one_by_one(thread: Make) -> None:
    post = Mailer()
    agent = thread(ABCD, "bye", tools=post.tools(), interrupt_on={"mail": True})
    # a call that needs no approval runs at once
    assert agent.walk("go") == [*START, "review_calls", "run_tools"]
    assert values(agent) == [together(*"abcd")]
    assert agent.session["on"] == "approval"
    assert post.sent == []
    answer = Command(resume={"decisions": [*DECISIONS]})
    assert agent.walk(answer) == ["review_calls", *WORK, *END]
    assert sorted(post.sent) == [("B", 2), ("a", 1)]
    assert sorted(agent.results()) == sorted(RESULTS)
    assert agent.messages[1].tool_calls[1]["args"] == {"to": "b"}  # the model's own call is unchanged
    assert agent.asked == 2


def test_per_call_each_call_asks_and_is_decided_on_its_own(thread: Make) -> None:
    post = Mailer()
    more = {"interrupt_on": {"mail": True}, "interrupt_mode": "per_call"}
    agent = thread(ABCD, "bye", tools=post.tools(), **more)
    assert agent.walk("go") == [*START, "run_tools"]
    asked = {"type": "tool_approval", "name": "mail", "description": "Run mail?", "on": "approval"}
    assert values(agent) == [{**asked, "tool_call_id": one, "args": {"to": one}} for one in "abcd"]
    assert (agent.session["on"], post.sent) == ("approval", [])
    ids = [one.id for one in agent.snapshot.interrupts]
    assert agent.walk(Command(resume=dict(zip(ids, DECISIONS, strict=True)))) == [*WORK, *END]
    assert sorted(post.sent) == [("B", 2), ("a", 1)]
    assert agent.results() == RESULTS
    assert agent.asked == 2


def test_one_at_a_time_repeats_nothing(thread: Make) -> None:
    post = Mailer()
    more = {"interrupt_on": {"mail": True}, "interrupt_mode": "per_call"}
    agent = thread(mails("a", "b"), "bye", tools=post.tools(), **more)
    agent.run("go")
    first, second = agent.snapshot.interrupts
    agent.run(Command(resume={first.id: {"type": "approve"}}))
    assert (post.sent, [one.id for one in agent.snapshot.interrupts]) == ([("a", 1)], [second.id])
    agent.run(Command(resume="yes"))
    assert (post.sent, agent.asked) == ([("a", 1), ("b", 1)], 2)


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_rejected_calls_take_no_extra_superstep(thread: Make, mode: str) -> None:
    more = {"interrupt_on": {"mail": True}, "interrupt_mode": mode}
    agent = thread(mails("a", "b"), "bye", tools=Mailer().tools(), **more)
    agent.run("go")
    no = Command(resume="no") if mode == "batched" else answers(agent, NO, NO)
    node = "review_calls" if mode == "batched" else "run_tools"
    assert agent.walk(no) == [node, "call_model", *END]


def test_calls_next_to_a_todo_call_continue_once(thread: Make) -> None:
    """Three nodes run at once, and the model is asked once, after the last."""
    post = Mailer()
    reply = calls(("todo_write", {"items": ["x"]}), ("mail", {"to": "a"}), ("look", {"path": "x"}))
    agent = thread(reply, done(1), "bye", tools=post.tools(), interrupt_on={"mail": True})
    assert agent.walk("go") == [*START, "review_calls", "run_tools", "validate_todos"]
    assert agent.walk(Command(resume="ok")) == ["review_calls", *WORK, *TODO, *END]
    assert (post.sent, agent.asked) == ([("a", 1)], 3)


def test_a_plan_is_asked_about_first_and_then_the_calls_that_it_releases(thread: Make) -> None:
    post = Mailer()
    outside = [("mail", {"to": "a"}), ("mail", {"to": "b"}), ("look", {"path": "x"})]
    reply = calls(("todo_write", {"items": ["x"]}), *outside)
    more = {"interrupt_on": {"mail": True}, "change": {"approve_plan": "first"}}
    agent = thread(reply, done(1), "bye", tools=post.tools(), **more)
    assert agent.walk("go") == [*START, "validate_todos"]
    assert agent.walk(Command(resume="yes")) == ["validate_todos", "review_calls", "run_tools"]
    assert values(agent) == [together("a", "b")]
    assert agent.walk(Command(resume="yes")) == ["review_calls", *WORK, *TODO, *END]
    assert post.sent == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (
            {"decisions": [{"type": "approve"}]},
            (
                "decisions must be a list of 2 decisions, in the order of the calls, such as "
                "[{'type': 'approve'}, {'type': 'approve'}]"
            ),
        ),
        (
            [{"type": "approve"}, edit(to="b", copies="many")],
            (
                "decision 2: invalid arguments: copies: Input should be a valid integer, unable to parse "
                "string as an integer"
            ),
        ),
        (
            [{"type": "approve"}, {"type": "accept"}],
            "decision 2: mail cannot be decided by 'accept'; allowed are approve, edit, reject, respond",
        ),
        (
            "yes, both",
            (
                "a yes with more words may be a no; answer yes, or no with your reason, or 2 decisions of "
                "the type approve, edit, reject, respond"
            ),
        ),
    ],
)
def test_an_answer_that_does_not_fit_all_calls_runs_none(thread: Make, answer: Any, fault: str) -> None:
    post = Mailer()
    agent = thread(mails("a", "b"), "bye", tools=post.tools(), interrupt_on={"mail": True})
    agent.run("go")
    assert agent.walk(Command(resume=answer)) == ["review_calls"]
    [value] = values(agent)
    assert value["error"] == f"The answer was not accepted: {fault}."
    assert (post.sent, len(value["action_requests"])) == ([], 2)
    agent.run(Command(resume="yes"))
    assert post.sent == [("a", 1), ("b", 1)]


@pytest.mark.parametrize(
    ("decision", "sent"), [(NO, []), ({"type": "approve"}, [("a", 1)]), (edit(to="B"), [("B", 1)])]
)
@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("dies", [False, True])
def test_a_no_is_a_no_in_a_build_that_asks_about_nothing(
    decision: Any, sent: Any, planned: bool, dies: bool
) -> None:
    """The question stays or is asked anew, whatever the resuming build would ask itself."""
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
    before = ["validate_todos" if planned else "review_calls"] if dies else []
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


def test_a_tool_with_injected_state_is_asked_about_and_edited_like_any_other(thread: Make) -> None:
    post = Mailer()
    agent = thread(
        mails("a", name="mail_seen"), "bye", tools=post.tools(), interrupt_on={"mail_seen": ["edit"]}
    )
    agent.run("go")
    assert values(agent) == [request_for("a", "mail_seen", allowed=["edit"])]
    agent.run(answers(agent, edit("mail_seen", to="b")))
    assert post.sent == [("b", 2)]
    assert agent.results() == [("success", EDITED.format('{"to": "b"}') + "\n\nsent to b")]


def test_a_tool_that_asks_by_itself_is_asked_about_once(thread: Make) -> None:
    @tool
    def sure(what: str) -> str:
        """Ask, and do."""
        return f"{what}: {interrupt('Sure?')}"

    agent = thread(calls(("sure", {"what": "w"})), "bye", tools=[sure], interrupt_on={"sure": True})
    agent.run("go")
    agent.run(Command(resume="y"))
    assert values(agent) == ["Sure?"]  # a tool's own question is unchanged
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
    assert agent.walk(Command(resume=answer)) == ["review_calls"]
    error = f"The answer was not accepted: {fault}."
    assert values(agent) == [{**request_for("a", text=f"{error}\n\nRun mail?"), "error": error}]
    assert agent.walk(Command(resume={"type": "approve"})) == ["review_calls", *WORK, *END]
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


def test_no_argument_keeps_a_call_from_being_asked_about(thread: Make) -> None:
    mailer = Mailer()
    call = calls(("mail", {"to": "a", "": " "}, "a"))
    agent = thread(call, tools=mailer.tools(), interrupt_on={"mail": True})
    agent.run("go")
    assert mailer.sent == []


def test_the_request_has_langchains_shape(thread: Make) -> None:
    how = {"allowed_decisions": ["approve"], "description": "Mail it?"}
    agent = thread(mails("a"), "bye", tools=Mailer().tools(), interrupt_on={"mail": how})
    agent.run("go")
    [value] = values(agent)
    assert value == request_for("a", text="Mail it?", allowed=["approve"])
    TypeAdapter(HITLRequest).validate_python({key: value[key] for key in HITLRequest.__annotations__})
    HumanInTheLoopMiddleware(interrupt_on={"mail": how})  # the same configuration
    agent.run(Command(resume={"decisions": [{"type": "approve"}]}))


ACCEPTED_VALUES = (
    "True, a list of decisions (approve, edit, reject, respond), "
    "or {'allowed_decisions': […], 'description': '…'}"
)


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
            f"interrupt_on['mail'] must be {ACCEPTED_VALUES}, got ['accept'].",
        ),
        (
            {"mail": {"allowed_decisions": ["approve"], "when": 1}},
            (
                f"interrupt_on['mail'] must be {ACCEPTED_VALUES}, "
                "got {'allowed_decisions': ['approve'], 'when': 1}."
            ),
        ),
        ({"mail": []}, f"interrupt_on['mail'] must be {ACCEPTED_VALUES}, got []."),
        (
            ["mail"],
            f"interrupt_on must map tool names to {ACCEPTED_VALUES}, got a list.",
        ),
    ],
)
def test_a_tool_that_cannot_be_asked_about_is_refused_at_build(given: Any, sentence: str) -> None:
    tools = [*Mailer().tools(), {"type": "web_search", "name": "web"}]
    with pytest.raises(WakeloopError) as refused:
        create_todo_agent(ScriptedModel(), tools, interrupt_on=given)
    assert str(refused.value) == sentence


# -- a JSON schema, a checkpointer, another input ----------------------------------------------------------


def remote() -> Any:
    """Return a tool whose arguments are a JSON schema, like those of MCP servers."""
    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}

    def run(**args: Any) -> str:
        return f"sent {args}"

    return StructuredTool.from_function(run, name="remote", description="Send.", args_schema=schema)


@pytest.mark.parametrize("mode", ["batched", "per_call"])
def test_c67_an_edit_must_fit_a_json_schema(thread: Make, mode: str) -> None:
    more = {"interrupt_on": {"remote": True}, "interrupt_mode": mode}
    agent = thread(calls(("remote", {"to": "a"})), "bye", tools=[remote()], **more)
    agent.run("go")
    agent.run(Command(resume=edit("remote", to=5)))
    [value] = values(agent)
    assert value["error"] == ("The answer was not accepted: invalid arguments: to: must be a string, got 5.")
    assert agent.results() == []
    agent.run(Command(resume=edit("remote", to="b")))
    assert agent.results()[0][1].endswith("sent {'to': 'b'}")


@pytest.mark.parametrize(
    "more",
    [
        {"interrupt_on": {"mail": True}},
        {"interrupt_on": {"mail": True}, "interrupt_mode": "per_call"},
        {"settings": {"approve_plan": "first"}},
    ],
)
@pytest.mark.parametrize("door", ["sync", "async"])
async def test_c66_without_a_checkpointer_nothing_is_requested(door: str, more: Any) -> None:
    model = ScriptedModel([mails("a"), "bye"])
    agent = create_todo_agent(model, Mailer().tools(), **more)
    go: Any = {"messages": [("user", "go")]}
    with pytest.raises(InputError, match=r"^This agent needs a checkpointer: "):
        _ = agent.invoke(go) if door == "sync" else await agent.ainvoke(go)
    assert model.requests == []


def test_c66_the_same_in_a_parent_and_for_a_threads_own_setting(tmp_path: Path) -> None:
    model = ScriptedModel([])
    child = create_todo_agent(model, [shell_tool(tmp_path)])
    for saver in (None, InMemorySaver()):
        parent = StateGraph(TodoState).add_node("child", child).add_edge("__start__", "child")
        with pytest.raises(InputError) if saver is None else pytest.raises(AssertionError):
            parent.compile(checkpointer=saver).invoke({"messages": [("user", "go")]}, CONFIG)
    with pytest.raises(InputError, match="approve_plan asks a person"):
        create_todo_agent(model).invoke({"messages": "go", "todo_settings": {"approve_plan": "first"}})


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(
    "given", [{}, {"messages": [("user", "y")]}, {"todo_inbox": [{"kind": "kick"}]}, {"todos": []}]
)
def test_c65_no_other_input_drops_the_question(thread: Make, mode: str, given: Any) -> None:
    post = Mailer()
    more = {"interrupt_on": {"mail": True}, "interrupt_mode": mode}
    agent = thread(mails("a", "b"), "bye", tools=post.tools(), **more)
    agent.run("go")
    asked = agent.snapshot
    no: Any = {"decisions": [{"type": "reject"}] * 2}
    if mode == "per_call":
        no = {asked.interrupts[0].id: {"type": "reject"}}
    with pytest.raises(InputError, match="This thread waits for an answer about mail") as refused:
        agent.run(given)
    assert f"agent.invoke(Command(resume={no!r}), config)" in str(refused.value)
    assert (agent.snapshot.config, agent.snapshot.interrupts) == (asked.config, asked.interrupts)
    agent.run(None)  # asks again
    assert agent.snapshot.interrupts == asked.interrupts
    agent.run(Command(resume=no))
    if mode == "per_call":
        agent.run(Command(resume="no"))
    assert (post.sent, agent.asked) == ([], 2)


def test_c65_every_way_to_run_refuses(thread: Make) -> None:
    agent = thread(mails("a"), tools=Mailer().tools(), interrupt_on={"mail": True}).graph
    config: Any = {"configurable": {"thread_id": "1"}}
    go: Any = {"messages": [("user", "go")]}
    agent.invoke(go, config)

    async def collect(run: Any) -> Any:
        return [part async for part in run]

    ways = [
        lambda: list(agent.stream(go, config)),
        lambda: agent.batch([go], config),
        lambda: asyncio.run(agent.ainvoke(go, config)),
        lambda: asyncio.run(collect(agent.astream(go, config, stream_mode="updates"))),
        lambda: asyncio.run(collect(agent.astream_events(go, config, version="v2"))),
        lambda: agent.with_config(config).invoke(go),
    ]
    for way in ways:
        with pytest.raises(InputError, match="would drop the question"):
            way()
    assert len(agent.get_state(config).interrupts) == 1


def test_a_tools_own_interrupt_is_not_guarded(thread: Make) -> None:
    @tool
    def sure() -> str:
        """Ask."""
        return str(interrupt("Sure?"))

    agent = thread(calls(("sure", {})), "bye", tools=[sure])
    agent.run("go")
    agent.run("never mind")
    assert agent.asked == 2


# -- tools that ask by themselves ----------------------------------------------------------------------------


def shells(*commands: str) -> Any:
    return calls(*(("run_shell", {"command": command}) for command in commands))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commands that the shell would have run."""
    commands: list[str] = []
    monkeypatch.setattr("wakeloop.tools.shell.run_command", lambda command, *_: commands.append(command))
    return commands


@pytest.mark.parametrize("mode", ["batched", "per_call"])
@pytest.mark.parametrize(("answer", "first"), [("n", []), ("y", ["a"])])
def test_c93_a_shell_that_asks_nobody_takes_the_answer(
    ran: list[str], mode: Any, answer: str, first: list[str]
) -> None:
    saver = InMemorySaver()
    asking = create_todo_agent(
        ScriptedModel([shells("a")]), [shell_tool(".")], checkpointer=saver, interrupt_mode=mode
    )
    asking.invoke({"messages": [("user", "go")]}, CONFIG)
    model = ScriptedModel([shells("b"), "bye"])
    then = create_todo_agent(model, [shell_tool(".", ask=False)], checkpointer=saver)
    then.invoke(Command(resume=answer), CONFIG)
    assert ran == [*first, "b"]  # later calls are not asked about


def test_the_packages_own_tools_are_asked_about_together_with_others(thread: Make, ran: list[str]) -> None:
    post = Mailer()
    reply = calls(("run_shell", {"command": "a"}), ("mail", {"to": "a"}))
    agent = thread(reply, "bye", tools=[*post.tools(), shell_tool(".")], interrupt_on={"mail": True})
    agent.run("go")
    [value] = values(agent)
    assert [one["name"] for one in value["action_requests"]] == ["run_shell", "mail"]
    assert value["review_configs"][0]["allowed_decisions"] == ["approve", "reject"]
    agent.run(Command(resume=[{"type": "approve"}, NO]))
    assert (ran, post.sent) == (["a"], [])


def test_an_approval_is_for_this_call_only(thread: Make, ran: list[str]) -> None:
    """A tool that runs commands by itself is asked about them, even if it was approved."""
    shell = shell_tool(".")

    @tool
    def twice(command: str) -> str:
        """Run two commands."""
        return f"{shell.invoke({'command': command})} {shell.invoke({'command': 'b'})}"

    agent = thread(calls(("twice", {"command": "a"})), tools=[twice], interrupt_on={"twice": True})
    agent.run("go")
    agent.run(Command(resume="y"))
    assert [one["action_requests"][0]["args"] for one in values(agent)] == [{"command": "a"}]
    assert ran == []

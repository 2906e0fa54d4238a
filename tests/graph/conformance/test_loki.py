"""loki: two versions of one todo system, rule by rule.

The sources of its settings (global file, roles, sessions, agents and their precedence), the commands of its
REPL, what loading an agent clears, and the line that a terminal shows at each continuation belong to the
command line and are tested with it. The part of `.set` and `.clear` that concerns a thread is here.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from clocks import timeless
from langchain_core.messages import HumanMessage
from stage import Make, Stage, looks, names_of

from wakeloop import InputError, preset
from wakeloop.testing import calls

TOOLS = ["todo__init", "todo__add", "todo__done", "todo__list", "todo__clear"]
Loki = Callable[..., Stage]


@pytest.fixture
def loki(stage: Make) -> Loki:
    """A thread under the preset with auto_continue on."""
    return lambda change=None, **options: stage("loki", {"auto_continue": True, **(change or {})}, **options)


def add(*tasks: str) -> Any:
    return calls(*(("todo__add", {"task": task}) for task in tasks))


def done(*ids: Any) -> Any:
    return calls(*(("todo__done", {"id": i}) for i in ids))


def init(goal: str) -> Any:
    return calls(("todo__init", {"goal": goal}))


LIST = calls(("todo__list", {}))
CLEAR = calls(("todo__clear", {}))


def results_json(s: Stage, name: str) -> list[Any]:
    """Return a tool's results, as JSON."""
    return [json.loads(text) for text in s.results_of(name)]


# -- the state -------------------------------------------------------------------------------------------


def test_state_is_a_goal_and_items_pending_or_done(loki: Loki) -> None:
    s = loki().run(init("a cake"), add("flour", "eggs"), done(1), LIST, done(2), "Done.")
    (listed,) = results_json(s, "todo__list")
    assert listed["goal"] == "a cake"
    assert listed["items"] == [
        {"id": 1, "text": "flour", "status": "done"},
        {"id": 2, "text": "eggs", "status": "pending"},
    ]
    assert s.values["todo_goal"] == "a cake"


def test_ids_are_the_largest_plus_one_from_1(loki: Loki) -> None:
    s = loki().run(add("a", "b"), done(1), add("c"), done(2, 3), "Done.")
    assert [result["id"] for result in results_json(s, "todo__add")] == [1, 2, 3]


def test_init_replaces_the_list_and_the_goal(loki: Loki) -> None:
    s = loki().run(init("a cake"), add("flour"), init("a pie"), add("apples"), done(1), "Done.")
    assert s.values["todo_goal"] == "a pie"
    assert s.todos == [{"id": 1, "content": "apples", "status": "completed"}]
    assert [result["id"] for result in results_json(s, "todo__add")] == [1, 1]


def test_the_list_survives_a_compression_and_is_put_into_the_rest(stage: Make) -> None:
    def compress(state: Any) -> dict[str, Any]:
        """Keep a summary and the last two messages once the history is long."""
        messages = state["messages"]
        if len(messages) < 8 or messages[-1].type != "tool":
            return {"llm_input_messages": messages}
        return {"llm_input_messages": [HumanMessage("(summary)"), *messages[-2:]]}

    s = stage("loki", {"auto_continue": True}, pre_model_hook=compress)
    s.rewritten = True
    s.run(init("a cake"), add("flour", "eggs"), looks("1"), looks("2"), looks("3"), done(1, 2), "Done.")
    short = [request for request in s.model.requests if str(request[1].content) == "(summary)"]
    assert short
    tail = str(short[0][-1].content)
    assert tail.endswith("Goal: a cake\nProgress: 0/2 completed\n  ○ 1. flour\n  ○ 2. eggs")
    assert s.listed == [("flour", "completed"), ("eggs", "completed")]


# -- the tools -------------------------------------------------------------------------------------------


def test_init_takes_a_goal(loki: Loki) -> None:
    s = loki().run(init("a cake"), "Done.")
    assert results_json(s, "todo__init") == [{"goal": "a cake", "items": []}]


def test_done_marks_an_item(loki: Loki) -> None:
    s = loki().run(add("a", "b"), done(2), done(1), "Done.")
    first, _ = results_json(s, "todo__done")
    assert (first["id"], first["status"], first["progress"]) == (2, "done", "1/2")


def test_list_gives_goal_progress_and_items(loki: Loki) -> None:
    s = loki().run(init("g"), add("a", "b"), done(1), LIST, done(2), "Done.")
    (listed,) = results_json(s, "todo__list")
    assert list(listed) == ["goal", "progress", "items"]
    assert listed["progress"] == "1/2"


def test_clear_empties_list_and_goal(loki: Loki) -> None:
    s = loki().run(init("g"), add("a"), CLEAR, LIST, "Given up.")
    assert (s.todos, s.values["todo_goal"]) == ([], "")
    assert results_json(s, "todo__list") == [{"goal": "", "progress": "0/0", "items": []}]
    assert (s.notices, s.ending) == ([], ("dormant", "settled"))


SOFT = {
    "an empty task": ("todo__add", {"task": ""}),
    "a blank task": ("todo__add", {"task": " \n"}),
    "a missing id": ("todo__done", {}),
    "no id": ("todo__done", {"id": None}),
    "an id that is not a number": ("todo__done", {"id": "first"}),
    "an id with a fraction": ("todo__done", {"id": 1.5}),
    "an id that is a list": ("todo__done", {"id": [1]}),
    "an id that is true": ("todo__done", {"id": True}),
    "an unknown id": ("todo__done", {"id": 7}),
    "an endless id": ("todo__done", {"id": "9" * 5_000}),
    "an unknown numeric string": ("todo__done", {"id": "7"}),
    **{f"a sign around an id: {key}": ("todo__done", {"id": key}) for key in ("#1", "[1]", "1.", "1.0")},
}


@pytest.mark.parametrize("call", SOFT.values(), ids=SOFT)
def test_soft_errors_are_json_with_error(loki: Loki, call: tuple[str, dict[str, Any]]) -> None:
    s = loki().run(add("a"), calls(call), done(1), "Done.")
    result = json.loads(str(s.results[1].content))
    assert list(result) == ["error"]
    assert isinstance(result["error"], str)
    assert len(result["error"]) < 1_000
    assert s.listed == [("a", "completed")]


def test_soft_errors_are_not_malformed_calls(loki: Loki) -> None:
    s = loki({"reply_retries": 0}).run(add("a"), done("first"), done("second"), done(7), done(1), "Done.")
    assert s.ending == ("dormant", "settled")


@pytest.mark.parametrize("key", [1, "1", " 1 ", 1.0])
def test_numeric_strings_are_ids(loki: Loki, key: Any) -> None:
    s = loki().run(add("a"), done(key), "Done.")
    assert s.listed == [("a", "completed")]
    assert results_json(s, "todo__done")[0]["id"] == 1


# -- continuation ----------------------------------------------------------------------------------------


def test_the_notice_counts_the_incomplete_items(loki: Loki) -> None:
    s = loki().run(add("a", "b", "c"), done(2), "One.", done(1, 3), "Done.")
    (event,) = timeless(e for e in s.events if e["type"] == "wake")
    assert event == {"type": "wake", "cycle": 1, "budget": 10, "open": 2, "reasons": ["todos"]}


def test_a_response_is_compared_only_with_the_previous_continuations(loki: Loki) -> None:
    s = loki().run(add("a"), "One.", "Two.", "One.", "One.")
    assert (s.notices, s.ending) == (["1/10", "2/10", "3/10"], ("idle", "repeated_reply"))


def test_it_stops_even_a_model_that_works(loki: Loki) -> None:
    """A tool that succeeded between two equal replies over the same list changes nothing."""
    s = loki().run(add("a"), "Same.", looks("1"), "Same.")
    assert (s.asked, s.notices, s.ending) == (4, ["1/10"], ("idle", "repeated_reply"))
    s = loki({"stop_on_repeat": False}).run(add("a"), "Same.", looks("1"), "Same.", done(1), "Done.")
    assert s.ending == ("dormant", "settled")


# -- injected messages ------------------------------------------------------------------------------------

LISTED = "Goal: a cake\nProgress: 1/2 completed\n  ✓ 1. flour\n  ○ 2. eggs"


def test_injected_is_the_prompt_a_blank_line_goal_progress_and_a_line_per_item(loki: Loki) -> None:
    s = loki().run(init("a cake"), add("flour", "eggs"), done(1), "One.", done(2), "Done.")
    (text,) = s.injected("wake")
    prompt, blank, listed = text.rpartition("\n\n")
    assert prompt
    assert blank
    assert listed == LISTED


def test_the_users_own_prompt_replaces_the_default_completely(loki: Loki) -> None:
    s = loki({"continuation_prompt": "On with it: $5 an egg!"})
    s.run(init("a cake"), add("flour", "eggs"), done(1), "One.", done(2), "Done.")
    assert s.injected("wake") == [f"On with it: $5 an egg!\n\n{LISTED}"]


def test_version_2s_default_prompt_has_four_rules(loki: Loki) -> None:
    s = loki().run(add("a"), "One.", done(1), "Done.")
    prompt = s.injected("wake")[0].rpartition("\n\n")[0]
    rules = [line for line in prompt.split("\n") if line[:2] in ("1.", "2.", "3.", "4.")]
    assert [line[0] for line in rules] == ["1", "2", "3", "4"]
    for rule, words in zip(
        rules, (("check", "mark"), ("split", "first"), ("one", "action"), ("now", "tool calls")), strict=True
    ):
        assert all(word in rule.lower() for word in words), rule


# -- settings --------------------------------------------------------------------------------------------


def test_auto_continue_is_off_by_default(stage: Make) -> None:
    assert preset("loki").auto_continue is False
    s = stage("loki").run(
        "Hello.", given={"messages": [("user", "go")], "todos": [{"content": "a", "status": "pending"}]}
    )
    assert (s.asked, s.notices, s.ending) == (1, [], ("idle", "disabled"))
    assert (s.tools, s.system) == (["look"], "")


def test_max_auto_continues_is_known_under_its_own_name(loki: Loki) -> None:
    assert preset("loki").model_copy(update={"max_auto_continues": 3}).max_wake_cycles == 3
    s = loki().run(add("a"), "One.", "Two.", todo_settings={"max_auto_continues": 1})
    assert (s.notices, s.ending) == (["1/1"], ("idle", "wake_budget"))


def test_inject_todo_instructions_puts_usage_into_the_system_prompt(loki: Loki) -> None:
    assert preset("loki").inject_todo_instructions is True
    s = loki(system_prompt="You bake.").run("Hello.")
    assert s.system.startswith("You bake.\n\n")
    usage = s.system.removeprefix("You bake.\n\n").lower()
    assert all(name in usage for name in TOOLS)
    assert "plan the whole work before you start" in usage
    assert "at once" in usage


def test_the_tools_depend_on_auto_continue_and_the_instructions_only_on_their_switch(loki: Loki) -> None:
    s = loki({"inject_todo_instructions": False}).run("Hello.")
    assert (s.tools, s.system) == (["look", *TOOLS], "")


# -- switching in a thread -------------------------------------------------------------------------------


def test_switching_auto_continue_adds_the_tools_and_their_instructions(stage: Make) -> None:
    s = stage("loki", system_prompt="You bake.")
    s.run("Hello.")
    assert (s.tools, s.system) == (["look"], "You bake.")
    s.rewritten = True  # a new prefix begins, once
    s.run(add("a"), "One.", done(1), "Done.", given="bake", todo_settings={"auto_continue": True})
    assert [names_of(bound) for bound in s.model.bound] == [["look", *TOOLS]] * 4
    assert s.system.startswith("You bake.\n\n")
    assert s.notices == ["1/10"]


def test_switching_it_off_removes_them_and_keeps_the_list(loki: Loki) -> None:
    s = loki().run(add("a"), "Same.", "Same.")
    s.rewritten = True
    s.run("Fine.", given="stop", todo_settings={"auto_continue": False})
    assert (s.tools, s.system, s.notices) == (["look"], "", [])
    assert s.listed == [("a", "pending")]
    s.run(done(1), "Done.", given="on again", todo_settings={})
    assert s.tools == ["look", *TOOLS]
    assert s.listed == [("a", "completed")]


def test_a_todo_call_while_the_tools_are_off_is_an_unknown_tool(stage: Make) -> None:
    s = stage("loki").run(add("a"), "Hello.")
    assert s.results[0].status == "error"
    assert "todo__add" in s.result
    assert "todo__list" not in s.result
    assert s.todos == []


def test_it_is_refused_if_the_model_cannot_call_functions(stage: Make) -> None:
    s = stage("loki", tools=[])
    s.build("Hello.", tools=False)
    with pytest.raises(InputError) as refusal:
        s.play({"messages": [("user", "go")], "todo_settings": {"auto_continue": True}})
    assert "cannot call tools" in str(refusal.value)
    assert str(refusal.value).count(".") == 1
    s.play({"messages": [("user", "go")]})
    assert s.snapshot.values["todo_settings"] == {}
    assert s.asked == 1


# -- resets ----------------------------------------------------------------------------------------------


def test_the_end_of_a_chain_resets_the_comparison(loki: Loki) -> None:
    s = loki().run(add("a"), "Same.", "Same.")
    s.run("Same.", "Same.", given="keep going")
    assert (s.notices, s.ending) == (["1/10"], ("idle", "repeated_reply"))

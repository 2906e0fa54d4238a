"""Counts, costs and the budget that is reached: plain values."""

from typing import Any

import pytest
from agents import settings
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from wakeloop import SettingsError
from wakeloop.loop.activation import begin_activation, continue_activation
from wakeloop.loop.spending import (
    Usage,
    add_request,
    add_round,
    build_spent_event,
    check_price,
    compute_cost,
    find_price,
    find_spent_budget,
    report_spent,
)
from wakeloop.model.tool_results import record_duration
from wakeloop.model.usage import count_characters, measure_usage, model_name_of, reported_usage
from wakeloop.testing import ScriptedModel, calls
from wakeloop.text.marks import DURATION_KEY, call_duration_ms, with_duration

PRICES = {
    "gpt": {"input": 2, "output": 8},
    "gpt-mini": {"input": 0.15, "cached": 0.075, "output": 0.6},
    "default": {"input": 1, "output": 1},
}
BARE = {key: value for key, value in PRICES.items() if key != "default"}
USED = Usage(1000, 400, 100, model="gpt-mini-2026")


def priced(prices: Any = PRICES, **more: Any) -> Any:
    return settings(prices=prices, **more)


def spent(*used: Usage, seconds: float = 0.25, base: Any = None, configured: str = "") -> dict[str, Any]:
    """Return the notes after these requests."""
    notes: Any = {}
    for usage in used:
        add_request(notes, [usage], seconds, base or settings(), configured)
    return notes


# -- counting -------------------------------------------------------------------------------------


def test_nothing_is_spent_before_the_first_request() -> None:
    assert report_spent({}) == {
        "requests": 0, "input": 0, "cached": 0, "output": 0, "cost": None, "seconds": 0.0,
        "estimated": False, "failed_calls": 0,
    }  # fmt: skip


def test_requests_add_up() -> None:
    notes = spent(USED, Usage(10, 0, 5, estimated=True), USED)
    assert notes == {"spent": [3, 2010, 800, 205, 750, 0, None, 1]}
    assert report_spent(notes) == {
        "requests": 3, "input": 2010, "cached": 800, "output": 205, "cost": None, "seconds": 0.75,
        "estimated": True, "failed_calls": 0,
    }  # fmt: skip


def test_a_hooks_tokens_count_but_not_its_requests() -> None:
    notes: Any = {}
    add_request(notes, [USED, Usage(7, 0, 3, model="gpt")], 1, priced(), "")
    assert notes == {"spent": [1, 1007, 400, 103, 1000, 0, 180_000 + 38_000]}


def test_no_number_outgrows_a_checkpoint() -> None:
    notes = spent(Usage(2**53 - 1, 0, 1), Usage(2**53 - 1, 0, 1))
    assert notes["spent"][:4] == [2, 2**53 - 1, 0, 2]


def test_a_new_activation_resets_the_count_and_a_subagents_result_continues_it() -> None:
    notes = {**spent(USED), "reported": True}
    assert not {"spent", "reported"} & begin_activation(notes, []).keys()
    went_on = continue_activation(notes, [], settings(max_requests=2), waiting=False)
    assert (went_on["spent"], went_on["reported"], went_on["end"]) == (notes["spent"], True, None)
    assert continue_activation(notes, [], settings(max_requests=1), waiting=False)["end"] == "request_budget"
    assert "end" not in continue_activation(notes, [], settings(max_requests=1), waiting=True)


@pytest.mark.parametrize(
    ("change", "over_", "end"),
    [
        ({}, None, None),
        ({}, "token_budget", "token_budget"),
        ({"max_wake_cycles": 2}, "token_budget", "token_budget"),
        ({"max_wake_cycles": 2}, None, "wake_budget"),
        ({"max_wake_cycles": 3}, None, None),
        ({"max_wake_cycles": 0}, None, "disabled"),
        ({"auto_continue": False}, None, "disabled"),
        ({"auto_continue": False}, "token_budget", "disabled"),
    ],
)
def test_why_a_subagents_result_is_not_answered(change: Any, over_: Any, end: Any) -> None:
    limit = {"max_tokens": 1} if over_ else {}
    notes: Any = {**spent(USED), "wake_cycles": 2}
    assert continue_activation(notes, [], settings(**change, **limit), waiting=False)["end"] == end


GO = HumanMessage("go")
ROUND = calls(("look", {}, "a"), ("look", {}, "b"), ("todo_write", {}, "t"))


def result(key: str, took: float = 0, status: Any = "success") -> ToolMessage:
    return with_duration(ToolMessage("x", tool_call_id=key, status=status), took)


@pytest.mark.parametrize(
    ("messages", "counted"),
    [
        ([GO, ROUND, result("a", 0.2), result("b", 1.5), result("t")], [0, 0, 0, 0, 1500, 0, None]),
        ([GO, ROUND, result("a", 2, "error"), result("b", status="error")], [0, 0, 0, 0, 2000, 2, None]),
        # results of the list's own calls
        ([GO, ROUND, result("t", 9, "error"), result("a"), result("b")], None),
        ([result("a", 5), GO, ROUND, result("b"), GO], None),  # an older result of this id
        ([ROUND, result("stranger", 5, "error")], None),
        ([], None),
    ],
)
def test_what_a_round_adds(messages: list[AnyMessage], counted: Any) -> None:
    notes: Any = {"nag": False, "todo_calls": ["t"]}
    add_round(notes, messages)
    assert notes.get("spent") == counted


def test_only_a_round_counts_as_a_round() -> None:
    notes: Any = {}
    add_round(notes, [ROUND, result("a", 5, "error")])
    assert notes == {}


# -- how long a call took --------------------------------------------------------------------------------


def test_a_result_says_how_long_its_call_took() -> None:
    plain = ToolMessage("x", tool_call_id="a", response_metadata={"own": 1})
    assert with_duration(plain, 0.0004) is plain
    took = with_duration(plain, 1.25)
    assert (took.response_metadata, call_duration_ms(took)) == ({"own": 1, DURATION_KEY: 1250}, 1250)
    assert with_duration(took, 0).response_metadata == {"own": 1}  # what a tool wrote there itself


@pytest.mark.parametrize("forged", [-5, "9", 1.5, None, True])
def test_an_invalid_time_counts_as_none(forged: object) -> None:
    assert call_duration_ms(ToolMessage("x", tool_call_id="a", response_metadata={DURATION_KEY: forged})) == 0


def test_every_form_of_a_result_is_timed() -> None:
    one, other = ToolMessage("x", tool_call_id="a"), ToolMessage("x", tool_call_id="b")
    forms: list[Any] = [
        {"messages": [one, other]},
        {"messages": [one], "todo_handoff": []},
        [Command(update={"messages": [other]}), {"messages": [one]}],
        [Command(update={"messages": [one], "x": 1}), Command(update={"x": 2})],
    ]
    for form in forms:
        record_duration(form, "a", 2)
        parts = form if isinstance(form, list) else [form]
        parts = [part.update if isinstance(part, Command) else part for part in parts]
        took = [(m.tool_call_id, call_duration_ms(m)) for part in parts for m in part.get("messages", ())]
        assert {("a", 2000)} <= set(took) <= {("a", 2000), ("b", 0)}


# -- what it costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "prices", "found"),
    [
        ("gpt-mini-2026", PRICES, "gpt-mini"),
        ("gpt-5", PRICES, "gpt"),
        ("gpt-5", {"openai:gpt-5": PRICES["default"]}, "openai:gpt-5"),
        ("gpt-mini", {"openai:gpt": PRICES["gpt"], "gpt-mini": PRICES["gpt-mini"]}, "gpt-mini"),
        ("claude", PRICES, "default"),
        ("", PRICES, "default"),
        ("default", BARE, None),
        ("claude", BARE, None),
        ("", {}, None),
    ],
)
def test_the_longest_key_that_starts_the_name(model: str, prices: Any, found: str | None) -> None:
    table = priced(prices).prices
    assert find_price(model, table) == (found and table[found])


@pytest.mark.parametrize(
    ("usage", "configured", "prices", "cost"),
    [
        (USED, "", PRICES, 600 * 150 + 400 * 75 + 100 * 600),
        (Usage(1000, 400, 100, model="gpt"), "", PRICES, 1000 * 2000 + 100 * 8000),  # no price of its own
        (Usage(1000, 400, 100), "gpt-mini", BARE, 180_000),  # the reply has no name
        (Usage(1000, 400, 100, model="router"), "gpt-mini", BARE, 180_000),  # its name has no price
        # its name has no price, so the default counts
        (Usage(1000, 400, 100, model="router"), "gpt-mini", PRICES, 1_100_000),
        (Usage(1000, 400, 100, model="router"), "other", BARE, None),
        (USED, "gpt-mini", {}, None),
    ],
)
def test_what_a_request_costs(usage: Usage, configured: str, prices: Any, cost: int | None) -> None:
    assert compute_cost(usage, priced(prices).prices, configured) == cost


def test_costs_add_up_exactly_and_one_unknown_price_makes_the_sum_unknown() -> None:
    tenth = Usage(50_000, 0, 0, model="gpt")  # 0.1
    ten = spent(*[tenth] * 10, base=priced(BARE))
    assert report_spent(ten)["cost"] == 1.0
    assert find_spent_budget(ten, priced(BARE, max_cost=1)) == "cost_budget"
    assert report_spent(spent(tenth, Usage(1, 0, 0, model="x"), tenth, base=priced(BARE)))["cost"] is None


def test_under_a_cost_limit_unpriced_requests_cost_what_the_model_costs_now() -> None:
    """As after a resume by an agent with prices and a limit, when the first agent had none."""
    notes = spent(Usage(1000, 400, 100), Usage(1000, 0, 0))
    assert (report_spent(notes)["cost"], find_spent_budget(notes, priced(BARE, max_cost=1e-6))) == (
        None,
        None,
    )
    unbounded = dict(notes)
    add_request(unbounded, [USED], 0, priced(BARE), "gpt-mini")
    assert (report_spent(unbounded)["cost"], report_spent(unbounded)["estimated"]) == (None, False)
    add_request(notes, [USED], 0, priced(BARE, max_cost=0.001), "gpt-mini")
    cost = (1600 * 150 + 400 * 75 + 100 * 600) + 180_000
    assert (report_spent(notes)["cost"], report_spent(notes)["estimated"]) == (cost / 1e9, True)
    assert [find_spent_budget(notes, priced(BARE, max_cost=bound / 1e9)) for bound in (cost, cost + 1)] == [
        "cost_budget",
        None,
    ]


@pytest.mark.parametrize(
    ("model", "prices", "fits"),
    [("gpt-5", BARE, True), ("x", PRICES, True), ("x", BARE, False), ("", BARE, False), ("gpt", {}, False)],
)
def test_a_cost_limit_needs_a_price(model: str, prices: Any, fits: bool) -> None:
    check_price(priced(prices), model)
    if fits:
        return check_price(priced(prices, max_cost=1), model)
    with pytest.raises(SettingsError, match="max_cost needs a price, and prices has none for") as raised:
        check_price(priced(prices, max_cost=1), model)
    assert repr(model) in str(raised.value) if model else "does not give its name" in str(raised.value)
    return None


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_requests": 0}, {"max_tokens": -1}, {"max_cost": 0}, {"max_cost": float("nan")},
        {"max_seconds": 0}, {"max_seconds": True}, {"on_budget": "ask"}, {"prices": {"gpt": {"input": 1}}},
        {"prices": {"gpt": {"input": -1, "output": 1}}},
        {"prices": {"gpt": {"input": 1, "output": 1, "x": 1}}},
    ],
)  # fmt: skip
def test_wrong_budgets_are_refused_in_one_sentence(wrong: Any) -> None:
    with pytest.raises(SettingsError, match=f"etting '{next(iter(wrong))}"):
        settings(**wrong)


# -- which budget ----------------------------------------------------------------------------------------

AT = {"max_requests": 2, "max_tokens": 2200, "max_cost": 0.00036, "max_seconds": 0.5}
MORE = {"max_requests": 3, "max_tokens": 2201, "max_cost": 0.000361, "max_seconds": 0.501}
REASONS = ["request_budget", "token_budget", "cost_budget", "time_budget"]
TWO = spent(USED, USED, base=priced())


@pytest.mark.parametrize("first", range(5))
def test_the_first_budget_that_is_reached_is_the_reason(first: int) -> None:
    names = list(AT)
    limits = {name: (MORE if place < first else AT)[name] for place, name in enumerate(names)}
    assert find_spent_budget(TWO, priced(**limits)) == [*REASONS, None][first]


@pytest.mark.parametrize(
    ("limits", "nearest", "share"),
    [
        ({"max_requests": None}, None, 0.0),
        ({"max_requests": 8}, "requests", 0.25),
        ({"max_requests": 8, "max_tokens": 4400}, "tokens", 0.5),
        ({"max_requests": 8, "max_tokens": 8800, "max_seconds": 0.625}, "seconds", 0.8),
        ({"max_requests": 8, "max_cost": 0.00012}, "cost", 3.0),
    ],
)
def test_the_event_names_the_budget_closest_to_its_limit(limits: Any, nearest: Any, share: float) -> None:
    assert build_spent_event({**TWO, "budget": 26}, priced(**limits), PAID) == {
        "type": "spent", "exchange": PAID, "spent": report_spent(TWO),
        "nearest": nearest, "share": share, "budget": 26,
    }  # fmt: skip


PAID: Any = {"input": 3, "cached": 2, "output": 1, "cost": None, "seconds": 0.25, "estimated": False}


@pytest.mark.parametrize(
    ("used", "prices", "paid"),
    [
        ([Usage(7, 2, 3)], {}, {"input": 7, "cached": 2, "output": 3, "cost": None, "estimated": False}),
        (
            [Usage(7, 2, 3), Usage(1, 0, 1, estimated=True)],
            {"default": {"input": 1, "output": 2}},
            {"input": 8, "cached": 2, "output": 4, "cost": 0.000016, "estimated": True},
        ),
        ([], {}, {"input": 0, "cached": 0, "output": 0, "cost": 0.0, "estimated": False}),
    ],
)
def test_the_cost_of_one_exchange_whatever_was_spent_before(used: Any, prices: Any, paid: Any) -> None:
    notes: Any = {}
    add_request(notes, [Usage(100, 50, 10)], 2, settings(), "")
    assert add_request(notes, used, 0.25, settings(prices=prices), "") == {**paid, "seconds": 0.25}


# -- what a reply reports --------------------------------------------------------------------------------


def reply(text: str = "four", usage: Any = None, **told_: Any) -> AIMessage:
    return AIMessage(text, usage_metadata=usage, response_metadata=told_)


OPENAI = {
    "input_tokens": 90, "output_tokens": 10, "total_tokens": 100,
    "input_token_details": {"cache_read": 64, "audio": 0}, "output_token_details": {"reasoning": 4},
}  # fmt: skip
ANTHROPIC = {
    "input_tokens": 90, "output_tokens": 10, "total_tokens": 100,
    "input_token_details": {"cache_read": 60, "cache_creation": 20},
}  # fmt: skip
PLAIN = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}


@pytest.mark.parametrize(
    ("usage", "names", "used"),
    [
        (OPENAI, {"model_name": "gpt-mini-2026"}, Usage(90, 64, 10, model="gpt-mini-2026")),
        (ANTHROPIC, {"model": "claude", "model_name": "claude"}, Usage(90, 60, 10, model="claude")),
        (PLAIN, {"model": "models/gemini"}, Usage(90, 0, 10, model="gemini")),
        (PLAIN, {"model_name": 5}, Usage(90, 0, 10)),
    ],
)
def test_what_clients_report(usage: Any, names: Any, used: Usage) -> None:
    assert measure_usage(reply(usage=usage, **names), unasked) == used
    # inside a structured format
    assert measure_usage({"raw": reply(usage=usage, **names), "parsed": None}, unasked) == used


def unasked() -> int:
    raise AssertionError("nothing has to be estimated")


def test_more_cached_than_sent_counts_as_what_was_sent() -> None:
    assert reported_usage(reply(usage={**PLAIN, "input_token_details": {"cache_read": 99}})) == Usage(
        90, 90, 10
    )


SENT = [HumanMessage("x" * 7), calls(("look", {"path": "y"})), ToolMessage("z", tool_call_id="1")]


def sent() -> int:
    return sum(count_characters.of_all(SENT))


@pytest.mark.parametrize(
    "usage",
    [None, {**PLAIN, "input_tokens": 0}, {**PLAIN, "input_tokens": -3}, {**PLAIN, "input_tokens": 2**60}],
)
def test_what_is_not_reported_is_estimated(usage: Any) -> None:
    said = reply("answer").model_copy(update={"usage_metadata": usage})
    assert measure_usage(said, sent) == Usage(7, 0, 2, estimated=True)  # 7 + 4 + 13 + 1 and 6 characters
    assert measure_usage(None, sent) == Usage(7, 0, 0, estimated=True)  # a reply that the client lost
    blocks = AIMessage([{"type": "text", "text": "an"}, {"type": "text", "text": "swer"}])
    assert measure_usage(blocks, lambda: 0) == Usage(0, 0, 2, estimated=True)


def test_the_name_of_a_clients_model() -> None:
    class Named(ScriptedModel):
        model: str = ""
        model_name: str = ""

    assert model_name_of(ScriptedModel("x")) == ""
    assert model_name_of(Named("x", model="models/one")) == "one"
    assert model_name_of(Named("x", model="one", model_name="two")) == "two"


# -- bytes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "size"),
    [
        ([1, 200, 0, 20, 5, 0, None, 1], 16),
        ([30, 60_000, 50_000, 9_000, 60_000, 1, 400_000_000], 26),
        ([500, 9_000_000, 8_000_000, 300_000, 9_000_000, 9, 90_000_000_000], 40),
    ],
)
def test_spending_takes_at_most_40_bytes_of_a_row(numbers: list[Any], size: int) -> None:
    with_it = JsonPlusSerializer().dumps_typed({"wake_cycles": 1, "spent": numbers})[1]
    assert len(with_it) - len(JsonPlusSerializer().dumps_typed({"wake_cycles": 1})[1]) == size


def test_without_own_prices_a_public_price_counts_if_known() -> None:
    pytest.importorskip("genai_prices")
    found = find_price("gpt-4o", {})
    assert found is not None
    assert found.cached is not None
    assert 0 < found.cached < found.input < found.output
    with_tiers = find_price("gemini-2.5-pro", {})
    assert with_tiers is not None
    assert with_tiers.input < with_tiers.output
    assert find_price("a model of our own", {}) is None
    assert find_price("gpt-4o", {"mine": found}) is None
    check_price(settings(max_cost=1), "gpt-4o")

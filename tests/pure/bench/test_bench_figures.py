"""Figures of rows and pairs, equal spend, losses, and the profile derived from them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from rows import STUDY, row

from wakeloop.bench.figures import (
    average,
    compare_agents,
    compute_figures,
    find_losses,
    is_early_stop,
    is_false_claim,
    is_hidden_failure,
    judge_difference,
    primary_outcome,
)
from wakeloop.bench.study import Prices
from wakeloop.bench.verdict import make_profile, write_profile
from wakeloop.errors import SettingsError
from wakeloop.settings import LoopSettings

FAILED = {"completed": False, "share": 0.5}


def test_the_figures_of_an_agent() -> None:
    rows = [
        row(seed=1),
        row(seed=2, **FAILED),  # falsely claims completion in text and by signal
        row(seed=3, **FAILED, end="open", claims=False),  # an honest early stop
        row(seed=4, **FAILED, end="ceiling", claims=False),
        row(seed=5, failed=2, listed=3, damage=1, requests=7),
        row(seed=6, **FAILED, end="open", failed=1),  # a false claim in text only
    ]
    found = compute_figures(rows, STUDY)
    assert found.runs == 6
    assert found.completed.value == 2 / 6
    assert average(rows, is_early_stop) == 3 / 6
    assert average(rows, is_false_claim) == 2 / 6
    assert found.false_signal == 1 / 6
    assert found.damage == 1 / 6
    assert average(rows, is_hidden_failure) == 2 / 6
    assert found.requests == 17 / 6
    assert average(rows, STUDY.prices.cost) == 600 + 40 + 8 * 50
    assert found.cost_completed == 3 * 1040


def test_completing_nothing_costs_infinitely_much() -> None:
    assert math.isinf(compute_figures([row(**FAILED)], STUDY).cost_completed)


def test_money_follows_from_the_prices() -> None:
    assert Prices(input=1, cached=0.5, output=10).cost(row()) == pytest.approx((600 + 200 + 500) / 1e6)


def many(agent: str, completed: int, **values: Any) -> list[dict[str, Any]]:
    """Return twenty runs, of which the first `completed` are completed."""
    return [row(agent, seed, **values, **({} if seed <= completed else FAILED)) for seed in range(1, 21)]


@pytest.mark.parametrize(
    ("ours", "theirs", "says"),
    [
        (20, 10, "more"),
        (2, 12, "less"),
        (11, 10, "no difference shown"),
        (20, 20, "no difference shown"),  # of 20 identical runs, one in six could still differ
    ],
)
def test_a_comparison_is_paired_and_judged(ours: int, theirs: int, says: str) -> None:
    rows = [*many("plain", theirs), *many("wakeloop", ours), row("wakeloop", 99)]  # a row without a partner
    (found,) = compare_agents(rows, "plain", primary_outcome(STUDY))
    assert (found.model, found.agent, found.pairs) == ("weak", "wakeloop", 20)
    assert found.difference.value == (ours - theirs) / 20
    assert judge_difference(found, STUDY) == says


@pytest.mark.parametrize(
    ("pairs", "primary_", "says"),
    [
        (34, "completed", "no difference shown"),  # Wilson's upper bound for 0 of 34 is 10.2 %
        (35, "completed", "no difference that matters"),  # 9.9 %
        (6, "requests", "no difference that matters"),
    ],
)
def test_identical_runs_prove_something_only_if_there_are_many(pairs: int, primary_: Any, says: str) -> None:
    rows = [row(agent, seed) for agent in ("plain", "wakeloop") for seed in range(1, pairs + 1)]
    study = STUDY.with_changes(primary=primary_)
    (found,) = compare_agents(rows, "plain", primary_outcome(study))
    assert judge_difference(found, study) == says


def test_a_difference_can_be_too_small_to_matter() -> None:
    rows = [*many("plain", 10), *many("wakeloop", 20)]
    (found,) = compare_agents(rows, "plain", primary_outcome(STUDY))
    assert (
        judge_difference(found, STUDY.model_copy(update={"smallest": 0.6}))
        == "a difference too small to matter"
    )


def test_losses_name_the_winner_of_every_figure() -> None:
    near = many("loki", 15, requests=3, input=1500)
    rows = [*many("plain", 20), *near, *many("wakeloop", 10, requests=9, input=5000, damage=1)]
    found = [
        (loss.figure, loss.agent, loss.others, loss.theirs, loss.ours) for loss in find_losses(rows, STUDY)
    ]
    assert found == [
        ("completed", "plain", 1, 1.0, 0.5),
        ("damage after completion", "plain", 1, 0.0, 1.0),
        ("requests", "plain", 1, 2.0, 9.0),
        ("tokens in", "plain", 1, 1000.0, 5000.0),
        ("spent", "plain", 1, 1040.0, 5040.0),
    ]


def test_a_few_runs_count_as_no_loss() -> None:
    assert find_losses([row("plain", 1), row("wakeloop", 1, requests=9)], STUDY) == []


def test_an_agent_that_does_less_does_not_win_by_being_cheap() -> None:
    rows = [*many("plain", 0), *many("wakeloop", 20, requests=9, input=5000)]
    assert find_losses(rows, STUDY) == []


# -- the profile ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "on", "given", "choice"),
    [(5, 20, 20, "on"), (20, 20, 20, "off"), (5, 12, 20, "given"), (5, 20, None, "on"), (5, 6, 6, "off")],
)
def test_the_list_is_on_where_it_pays(off: int, on: int, given: int | None, choice: str) -> None:
    rows = [*many("plain", off), *many("wakeloop", on), *(many("list given", given) if given else [])]
    found = make_profile(rows, STUDY)["weak"]
    assert {length: entry["list"] for length, entry in found.items()} == {"any": choice, "5": choice}
    assert found["5"]["completed"]["off"] == off / 20
    assert found["5"]["study"] == STUDY.hash


def test_without_both_rows_there_is_no_profile() -> None:
    assert make_profile(many("wakeloop", 20), STUDY) == {}


def test_settings_are_read_by_model_and_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "profile.json"
    short = [*many("plain", 20, parts=1), *many("wakeloop", 20, parts=1)]
    long = [*many("plain", 0, parts=20), *many("wakeloop", 20, parts=20)]
    named = [{**one, "model": "openai:small@http://127.0.0.1:1/v1"} for one in (*short, *long)]
    write_profile(file, make_profile(named, STUDY))
    write_profile(file, {"other": {}})
    assert json.loads(file.read_text())["models"].keys() == {"small@http://127.0.0.1:1/v1", "other"}
    (tmp_path / "profile.json.new").mkdir()  # makes writing fail
    with pytest.raises(OSError, match=r"profile\.json\.new"):
        write_profile(file, {"third": {}})
    assert json.loads(file.read_text())["models"].keys() == {"small@http://127.0.0.1:1/v1", "other"}

    off = LoopSettings(dialect="loki", auto_continue=False)
    monkeypatch.setenv("WAKELOOP_PROFILE", str(file))
    assert LoopSettings.for_model("openai:small@http://127.0.0.1:1/v1", 1) == off
    assert LoopSettings.for_model("small@http://127.0.0.1:1/v1", 19) == off
    assert LoopSettings.for_model("small@http://127.0.0.1:1/v1", 20) == LoopSettings()
    assert LoopSettings.for_model("small@http://127.0.0.1:1/v1", 60) == LoopSettings()
    assert LoopSettings.for_model("small@http://127.0.0.1:1/v1", 0) == off
    assert (
        LoopSettings.for_model("small@http://127.0.0.1:1/v1") == off
    )  # it pays off in one task of two, which may be chance
    assert LoopSettings.for_model("unknown", 1) == LoopSettings()
    assert LoopSettings.for_model("other", 1) == LoopSettings()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "bench profile"),
        ("[", "is not a profile: delete it, and write one with `wakeloop bench profile`"),
        ("[" * 100_000, "is not a profile"),
        ("{}", "is not a profile"),
        ('{"models": {"small": 3}}', "is not a profile"),
        ('{"models": {"small": {"long": {}}}}', "is not a profile"),
        ('{"models": {"small": {"any": 3}}}', "is not a profile"),
        ('{"models": {"small": {"any": {"settings": 3}}}}', "is not a profile"),
    ],
)
def test_a_missing_or_broken_profile_is_refused_in_one_sentence(
    tmp_path: Path, text: str | None, says: str
) -> None:
    file = tmp_path / "profile.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=says):
        LoopSettings.for_model("small", profile=str(file))


def test_a_length_may_have_a_leading_zero(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    file.write_text('{"models": {"small": {"05": {"settings": {"nag_after": 7}}}}}')
    assert LoopSettings.for_model("small", 5, str(file)).nag_after == 7

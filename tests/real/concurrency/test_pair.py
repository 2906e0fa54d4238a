"""Two processes on one thread: wherever their runs cross, one of them raises."""

from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from pair import REPLIES, Pair

pytestmark = pytest.mark.covering("pair")
PAST = REPLIES + 1  # the second run ends before the first continues


@pytest.fixture(params=product(("sqlite", "postgres"), ("sync", "async")), ids="-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    kind, durability = request.param
    where = request.getfixturevalue("postgres") if kind == "postgres" else str(tmp_path / "threads.db")
    with closing(Pair(kind, where, durability)) as pair:
        yield pair


@pytest.mark.slow
def test_no_turn_is_lost_silently_wherever_two_runs_cross(pair: Pair) -> None:
    """The first stops before each of its replies, the second before each of its own, or runs to the end."""
    crossings = list(product(range(1, REPLIES + 1), range(1, PAST + 1)))
    fates = {where: pair.crossed("t{}-{}".format(*where), *where) for where in crossings}
    assert fates == {where: {"first": "told", "second": "told"} for where in crossings}


@pytest.mark.slow
def test_turns_one_after_another_are_all_kept(pair: Pair) -> None:
    """The same two processes alternate: nothing is lost and nothing raises."""
    assert [pair.crossed("t", PAST, PAST) for _ in range(5)] == [{"first": "kept", "second": "kept"}] * 5

"""What a weak model does next: its job, its habits."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from langchain_core.messages import BaseMessage

from wakeloop.bench.belief import Belief, call_key
from wakeloop.bench.family_builder import seeded_random
from wakeloop.bench.knobs import Knobs
from wakeloop.bench.task import Call, Step
from wakeloop.testing.captured_requests import role_of
from wakeloop.testing.careful import Intent
from wakeloop.testing.todo_tools import Item, PlannedCall, TodoTools

STOP = "All done."
AT_ONCE, BESIDE = "in the reply that begins the next", "beside the first call"
LOOK = PlannedCall("list_files", {})
_STICKIEST = 0.9


@dataclass(frozen=True)
class Dice:
    """A seed's dice: each habit has its own, so that one more habit leaves the others as they fall."""

    seed: int
    knobs: Knobs
    thrown: dict[str, Random] = field(default_factory=dict)

    def tosses(self, habit: str, chance: float | None = None) -> bool:
        """A toss at a reply."""
        chance = getattr(self.knobs, habit) if chance is None else chance
        rng = self.thrown.setdefault(habit, seeded_random(f"{self.seed}/{habit}"))
        return chance > 0 and rng.random() < chance

    def draws(self, habit: str, number: int = 0) -> bool:
        """Whether the habit meets this run, or the step of this number: the same whenever it is asked."""
        chance: float = getattr(self.knobs, habit)
        return chance > 0 and seeded_random(f"{self.seed}/{habit}/{number}").random() < chance


def told(knobs: Knobs, request: Sequence[BaseMessage]) -> Knobs:
    """The knobs that are left to the instructions, as the system message has them."""
    said = "\n".join(str(message.text) for message in request if role_of(message) == "system")
    heard: dict[str, Any] = {"replies": 1 if AT_ONCE in said else 2, "plan_beside": BESIDE in said}
    return knobs.model_copy(
        update={name: value for name, value in heard.items() if getattr(knobs, name) == "told"}
    )


@dataclass(frozen=True)
class Mind:
    """A model that has read a request: what it knows, and what it is like."""

    steps: Sequence[Step]
    spoils: Sequence[Call]
    final: str
    knobs: Knobs
    dice: Dice
    belief: Belief
    request: int

    def next(self, tools: Collection[str]) -> Intent:
        """The next reply, before what befalls any reply befalls it."""
        belief, vocabulary = self.belief, self.vocabulary
        if belief.replies and (distracted := self._distracted(tools)):
            return distracted
        if vocabulary is None:
            return self._working(self._left(), ())
        if not belief.items and (plan := self._plan()):
            beside = self._doing(self._left()[:1]) if self.knobs.plan_beside else ()
            return Intent("plan", moves=(*vocabulary.plan(plan), *beside))
        if belief.replies == 1 and belief.items and self.dice.draws("repeat"):
            again = vocabulary.plan([item.text for item in belief.items])
            return Intent("plan", moves=tuple(move for move in again if move.name != "todo__init"))
        return self._listed(vocabulary)

    @property
    def vocabulary(self) -> TodoTools | None:
        """The list's tools, None where it keeps no list."""
        few = not self.belief.items and len(self._known()) < self.knobs.list_from
        return None if few or self.dice.draws("no_list") else self.belief.vocabulary

    def closing(self) -> str:
        """What it says at the end: what could not be done, too, unless it pretends."""
        failed = [self.steps[number].label for number in self.belief.failed]
        if failed and self.knobs.on_failure != "fakes":
            return f"Done, but for what is not possible: {', '.join(failed)}."
        return STOP if self.steps else self.final

    def graded(self) -> dict[str, Any]:
        """What it says as a grader of its own work: what it believes to be left, unless it is lenient."""
        left = [] if self.dice.tosses("lenient") else [self.steps[number].label for number in self._left()]
        gap = {"gap": f"left: {', '.join(left)}"} if left else {}
        return {
            "result": "needs_revision" if left else "satisfied",
            "explanation": gap.get("gap", STOP),
            "criteria": [{"name": "Every part is done.", "passed": not left, **gap}],
        }

    def _distracted(self, tools: Collection[str]) -> Intent | None:
        """A reply that is not what is due, or a stop."""
        belief = self.belief
        if self.dice.tosses("busy"):
            return Intent("work", moves=(LOOK,))
        if self.dice.tosses("wander"):
            return self._look()
        if self.vocabulary and belief.items and self.dice.tosses("relist"):
            show = PlannedCall("todo__list" if "todo__list" in tools else "todo_list", {})
            return Intent("update", moves=tuple(self.vocabulary.edit(belief.items, (), ()) or [show]))
        after = min(_STICKIEST, self.knobs.stop + self.knobs.stick)
        if (self._left() or self._unclosed()) and self.dice.tosses(
            "stop", after if belief.stopped else self.knobs.stop
        ):
            return Intent("end", STOP)
        return None

    def _plan(self) -> list[str]:
        """The texts of a list, where there is none yet."""
        return [self.steps[number].label for number in self._known() if number not in self.belief.done]

    def _known(self) -> list[int]:
        """The steps that are no secret: one that has to be found is known by the work on the one before."""
        return [
            number
            for number, step in enumerate(self.steps)
            if not step.found or number - 1 in self.belief.done or self.belief.item(step.label)
        ]

    def _is_settled(self, number: int) -> bool:
        """Whether it takes a step for done: by its calls, by the list, without one by a lie to itself."""
        if number in self.belief.done:
            return True
        if item := self.belief.item(self.steps[number].label):
            return not item.is_open
        return self.vocabulary is None and self.dice.draws("false_done", number)

    def _left(self) -> list[int]:
        """The steps still to be done, those given up aside."""
        tried = self.belief.failed
        again = self.knobs.on_failure == "retries"
        return [
            number
            for number in self._known()
            if not self._is_settled(number)
            and (number not in tried or (again and self.belief.pushed > tried[number]))
        ]

    def _unclosed(self) -> list[Item]:
        """Open items whose work is done, or feigned; a forgotten one comes to mind when somebody asks."""
        ended = dict(self.belief.done)
        if self.knobs.on_failure == "fakes":
            ended |= self.belief.failed
        items = [(self.belief.item(self.steps[number].label), number) for number in sorted(ended)]
        return [
            item
            for item, number in items
            if item
            and item.is_open
            and (self.belief.pushed > ended[number] or not self.dice.draws("forget", number))
        ]

    def _listed(self, vocabulary: TodoTools) -> Intent:
        """The next thing to do where a list is kept: what is to be closed or added, then work."""
        belief, left, closed = self.belief, self._left(), self._unclosed()
        while left and (self.knobs.replies == 1 or not closed) and (lied := self._feigned(left[0])):
            closed.append(lied)
            left = left[1:]
        known = [self.steps[number].label for number in self._known()]
        missing = [label for label in known if belief.item(label) is None]
        moves = vocabulary.edit(belief.items, closed, missing) if closed or missing else []
        if not moves and (blocked := self._blocked()):
            moves = [vocabulary.close(belief.items, blocked[0], "its tool fails")]
        return self._working(left, tuple(moves))

    def _feigned(self, number: int) -> Item | None:
        """The item that it closes without work: never twice."""
        item = self.belief.item(self.steps[number].label)
        if item is None or item.text in self.belief.claimed or number in self.belief.failed:
            return None
        return item if self.dice.draws("false_done", number) else None

    def _blocked(self) -> list[Item]:
        """Open items that failed, where its habit is to block them."""
        if self.knobs.on_failure != "blocks":
            return []
        found = [self.belief.item(self.steps[number].label) for number in self.belief.failed]
        return [item for item in found if item and item.is_open]

    def _working(self, left: Sequence[int], moves: tuple[PlannedCall, ...]) -> Intent:
        """The list's calls, and with them or after them the next step; at last a text."""
        if moves and (self.knobs.replies != 1 or not left):
            return Intent("update", moves=moves)
        if left:
            return Intent("work", moves=(*moves, *self._doing(left[:1])))
        if self.belief.stopped and (more := self._pushed()):
            return more
        return Intent("end", self.closing())

    def _doing(self, numbers: Sequence[int]) -> tuple[PlannedCall, ...]:
        return tuple(
            PlannedCall(name, dict(args)) for number in numbers for name, args in self.steps[number].calls
        )

    def _pushed(self) -> Intent | None:
        """What it does when it is asked again after its last word."""
        if self.belief.failed:
            return self._look() if self.knobs.on_failure == "busy" else None
        new = [spoil for spoil in self.spoils if call_key(spoil) not in self.belief.made]
        if not new or not self.dice.tosses("spoil"):
            return None
        args: dict[str, Any] = dict(new[0].args)
        return Intent("work", moves=(PlannedCall(new[0].name, args),))

    def _look(self) -> Intent:
        """A look that was never made before."""
        return Intent("work", moves=(PlannedCall("search_files", {"query": f"look {self.request}"}),))

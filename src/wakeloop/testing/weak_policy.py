"""Chooses a weak model's next reply from progress and habits."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from wakeloop.testing.captured_requests import role_of
from wakeloop.testing.job_progress import JobProgress, call_key
from wakeloop.testing.jobs import DONE, Call, Job, seeded_random
from wakeloop.testing.knobs import Knobs
from wakeloop.testing.todo_tools import Item, TodoTools

QUESTION = "Shall I continue with the rest?"
ANSWER = "Thank you, I have seen your message."
AT_ONCE, BESIDE = "in the reply that starts the next", "with your first call"
LOOK = Call("list_files", {})
MARK = re.compile(r"\s*\([^()\n]{1,40}\)")
_MOST = 0.9  # no habit that grows makes a stop more likely than this
_GROWTH_TOKENS = 10_000


class PlannedReply(NamedTuple):
    """The next reply: its text, its calls."""

    text: str = ""
    moves: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Dice:
    """The random draws of one seed. Each habit has its own generator, so habits don't affect each other."""

    seed: int
    knobs: Knobs
    generators: dict[str, Random] = field(default_factory=dict)

    def tosses(self, habit: str, chance: float | None = None) -> bool:
        """Return whether a habit shows in this reply."""
        if chance is None:
            chance = getattr(self.knobs, habit)
        generator = self.generators.setdefault(habit, seeded_random(f"{self.seed}/{habit}"))
        # A chance of 0 draws nothing: switching a habit on later must not depend on replies before that.
        return chance > 0 and generator.random() < chance

    def draws(self, habit: str, key: int | str = 0) -> bool:
        """Return whether a habit shows in this run, or in the step `key`; the answer never changes."""
        chance: float = getattr(self.knobs, habit)
        return chance > 0 and seeded_random(f"{self.seed}/{habit}/{key}").random() < chance


def follow_instructions(knobs: Knobs, request: Sequence[BaseMessage]) -> Knobs:
    """Return the knobs with those that are "prompted" set from the request's system message."""
    prompt = "\n".join(str(message.text) for message in request if role_of(message) == "system")
    said: dict[str, Any] = {"replies": 1 if AT_ONCE in prompt else 2, "plan_beside": BESIDE in prompt}
    update = {name: value for name, value in said.items() if getattr(knobs, name) == "prompted"}
    return knobs.model_copy(update=update)


@dataclass(frozen=True)
class WeakPolicy:
    """A model that has read a request: its job, its habits, and what it believes to be done.

    `reply` is the number of this request, `tokens` its size, `push` the text of the last user message.
    """

    job: Job
    labels: Sequence[str]
    knobs: Knobs
    dice: Dice
    progress: JobProgress
    reply: int
    tokens: int = 0
    push: str = ""

    def next_reply(self, tools: Collection[str], *, forced: bool = False) -> PlannedReply:
        """Return the next reply, before the habits that can spoil any reply.

        `forced` means that the request must be answered by a call, so the model never stops here.
        """
        progress, todo_tools = self.progress, self.todo_tools
        if progress.replies and (distraction := self._distraction(tools, forced=forced)):
            return distraction
        if todo_tools is None:
            return self._work_on(self._steps_left(), (), forced=forced)
        if not progress.items and (plan := self._plan()):
            beside = self._calls_for(self._steps_left()[:1]) if self.knobs.plan_beside else ()
            return PlannedReply(moves=(*todo_tools.plan(plan), *beside))
        if progress.replies == 1 and progress.items and self.dice.draws("repeat"):
            again = todo_tools.plan([item.text for item in progress.items])
            return PlannedReply(moves=tuple(move for move in again if move.name != "todo__init"))
        return self._keep_list(todo_tools, forced=forced)

    @property
    def todo_tools(self) -> TodoTools | None:
        """The todo tools, or None if it keeps no list."""
        few = not self.progress.items and len(self._known_steps()) < self.knobs.list_from
        return None if few or self.dice.draws("no_list") else self.progress.todo_tools

    @property
    def was_marked(self) -> bool:
        """Whether it was pushed on by a message with a mark, such as "(automatic)"."""
        return self.progress.stopped and MARK.match(self.push) is not None

    def final_text(self) -> str:
        """Return the last text; it names the steps that failed, unless the model fakes them."""
        failed = [self.labels[number] for number in self.progress.failed]
        if failed and self.knobs.on_failure != "fakes":
            return f"Done, but for what is not possible: {', '.join(failed)}."
        return DONE if self.labels else self.job.final

    def grade(self) -> dict[str, Any]:
        """Return the verdict of a grader: the steps that it believes to be left, none if it is lenient."""
        left = []
        if not self.dice.tosses("lenient"):
            left = [self.labels[number] for number in self._steps_left()]
        criterion: dict[str, Any] = {"name": "Every part is done.", "passed": not left}
        if not left:
            return {"result": "satisfied", "explanation": DONE, "criteria": [criterion]}
        gap = f"left: {', '.join(left)}"
        return {"result": "needs_revision", "explanation": gap, "criteria": [criterion | {"gap": gap}]}

    def _distraction(self, tools: Collection[str], *, forced: bool) -> PlannedReply | None:
        """Return a reply that is not the next step, or a stop."""
        progress = self.progress
        if progress.stopped and not forced and (answer := self._answer_push()):
            return answer
        if self.dice.tosses("busy"):
            return PlannedReply(moves=(LOOK,))
        if self.dice.tosses("wander", min(_MOST, self.knobs.wander + self.knobs.crowd * len(tools))):
            return self._look_around()
        if self.todo_tools and progress.items and self.dice.tosses("relist"):
            moves = self.todo_tools.edit(progress.items, (), ()) or [show_list(tools)]
            return PlannedReply(moves=tuple(moves))
        if (
            (self._steps_left() or self._items_to_close())
            and self.dice.tosses("stop", self._stop_chance())
            and not forced
        ):
            asks = self.dice.tosses("ask") and not (self.was_marked and self.knobs.marks == "obeyed")
            return PlannedReply(QUESTION if asks else DONE)
        return None

    def _answer_push(self) -> PlannedReply | None:
        """Return a reply that ignores a push, if the model ignores it."""
        if self.knobs.marks == "disobeyed" and self.was_marked:
            return PlannedReply(ANSWER)
        return PlannedReply(DONE) if self.dice.tosses("deaf") else None

    def _stop_chance(self) -> float:
        chance = self.knobs.stop
        if self.progress.stopped:
            chance = min(_MOST, chance + self.knobs.stick)
        if self.knobs.stop_growth:
            chance = min(_MOST, chance + self.knobs.stop_growth * self.tokens / _GROWTH_TOKENS)
        return chance

    def _plan(self) -> list[str]:
        """Return the items of a new list."""
        return [self.labels[number] for number in self._known_steps() if number not in self.progress.done]

    def _known_steps(self) -> list[int]:
        """Return the known steps; one that has to be found is known once the step before it is done."""
        known = []
        for number, step in enumerate(self.job.steps):
            if not step.found or number - 1 in self.progress.done or self.progress.item(step.label):
                known.append(number)
        return known

    def _is_settled(self, number: int) -> bool:
        """Return whether it believes a step to be done: by its calls, by the list, or by mistake."""
        if number in self.progress.done:
            return True
        if item := self.progress.item(self.labels[number]):
            # A skipped part that it notices is work again, although its item stays closed.
            return not item.is_open and not (self.dice.draws("skip", number) and self._notices(number))
        return self.todo_tools is None and self._passes_over(number)

    def _passes_over(self, number: int) -> bool:
        """Return whether it believes a step to be done without its work."""
        skips = self.dice.draws("skip", number) and not self._notices(number)
        return skips or self.dice.draws("false_done", number)

    def _notices(self, number: int) -> bool:
        """Return whether some push so far made it notice a skipped step."""
        for place, text in enumerate(self.progress.pushes, 1):
            key = f"{number}/{place}"
            if self.dice.draws("notice", key):
                return True
            if _names_part(text, self.labels[number]) and self.dice.draws("honest", key):
                return True
        return False

    def _steps_left(self) -> list[int]:
        """Return the steps still to be done, without those it has given up on."""
        tried = self.progress.failed
        retries = self.knobs.on_failure == "retries"
        left = []
        for number in self._known_steps():
            given_up = number in tried and not (retries and self.progress.pushed > tried[number])
            if not given_up and not self._is_settled(number):
                left.append(number)
        return left

    def _items_to_close(self) -> list[Item]:
        """Return open items whose work is done or faked; forgotten ones only once somebody asks."""
        ended = dict(self.progress.done)
        if self.knobs.on_failure == "fakes":
            ended |= self.progress.failed
        unclosed = []
        for number in sorted(ended):
            item = self.progress.item(self.labels[number])
            reminded = self.progress.pushed > ended[number]
            if item and item.is_open and (reminded or not self.dice.draws("forget", number)):
                unclosed.append(item)
        return unclosed

    def _must_wait(self, closed: Sequence[Item]) -> bool:
        """Return whether some items are too few for a call that closes them, and nobody has asked since."""
        for number, place in self.progress.done.items():
            if self.progress.pushed > place and self.progress.item(self.labels[number]) in closed:
                return False
        return len(closed) < self.knobs.close_by

    def _keep_list(self, todo_tools: TodoTools, *, forced: bool) -> PlannedReply:
        """Return the next reply with a list: first the items to close or add, then work."""
        progress, left, closed = self.progress, self._steps_left(), self._items_to_close()
        at_once = self.knobs.replies == 1 or self.dice.draws("close_all")
        while left and (at_once or not closed) and (item := self._false_closing(left[0])):
            closed.append(item)
            left = left[1:]
        if left and self._must_wait(closed):
            closed = []
        missing = []
        for number in self._known_steps():
            if progress.item(self.labels[number]) is None:
                missing.append(self.labels[number])
        moves = []
        if closed or missing:
            moves = todo_tools.edit(progress.items, closed, missing)
        if not moves and (blocked := self._items_to_block()):
            moves = [todo_tools.block(progress.items, blocked[0], "its tool fails")]
        return self._work_on(left, tuple(moves), forced=forced)

    def _false_closing(self, number: int) -> Item | None:
        """Return the item of a step that it closes without work, if any; it never tries an item twice."""
        item = self.progress.item(self.labels[number])
        if item is None or item.text in self.progress.claimed or number in self.progress.failed:
            return None
        return item if self.dice.draws("close_all") or self._passes_over(number) else None

    def _items_to_block(self) -> list[Item]:
        """Return open items that failed, if its habit is to block them."""
        if self.knobs.on_failure != "blocks":
            return []
        failed = []
        for number in self.progress.failed:
            item = self.progress.item(self.labels[number])
            if item and item.is_open:
                failed.append(item)
        return failed

    def _work_on(self, left: Sequence[int], moves: tuple[Call, ...], *, forced: bool = False) -> PlannedReply:
        """Return the list's calls, with or before those of the next step, or else the last text."""
        if moves and (self.knobs.replies != 1 or not left):
            return PlannedReply(moves=moves)
        if left:
            return PlannedReply(moves=(*moves, *self._calls_for(left[:1])))
        if self.progress.stopped and not forced and (more := self._after_the_end()):
            return more
        return PlannedReply(self.final_text())

    def _calls_for(self, numbers: Sequence[int]) -> tuple[Call, ...]:
        calls: list[Call] = []
        for number in numbers:
            calls += self.job.steps[number].calls
        return tuple(calls)

    def _after_the_end(self) -> PlannedReply | None:
        """Return the reply to a push after the last text, if it makes one."""
        if self.was_marked and self.knobs.marks == "obeyed":
            return None
        if self.progress.failed:
            return self._look_around() if self.knobs.on_failure == "busy" else None
        new = [spoil for spoil in self.job.spoils if call_key(spoil) not in self.progress.made]
        if not new or not self.dice.tosses("spoil"):
            return None
        return PlannedReply(moves=(new[0],))

    def _look_around(self) -> PlannedReply:
        """Return a search that was never made before."""
        return PlannedReply(moves=(Call("search_files", {"query": f"look {self.reply}"}),))


def _names_part(text: str, label: str) -> bool:
    """Return whether a message names a part: by its label, or by the words in it that have a digit."""
    names = [word for word in label.split() if any(map(str.isdigit, word))]
    return any(name in text for name in names or [label])


def show_list(tools: Collection[str]) -> Call:
    """Return the call that shows the list."""
    name = "todo_list"
    if "todo__list" in tools:
        name = "todo__list"
    return Call(name, {})

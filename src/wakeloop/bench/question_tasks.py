"""Families of questions that need no work."""

import re
from collections.abc import Callable
from random import Random

from wakeloop.bench.family_builder import (
    check_files,
    check_nothing_added,
    delete_call,
    write_call,
)
from wakeloop.bench.file_tasks import NOUNS, PEOPLE, random_date
from wakeloop.bench.task import Check, Family, Task
from wakeloop.bench.world import world_tools
from wakeloop.testing.jobs import seeded_random

_WORLD = {"readme.txt": "Nothing here is to be changed.\n", "data/figures.txt": "1 2 3\n"}


def family_of_questions(ask: Callable[[Random], tuple[str, str]]) -> Family:
    """Make a family of questions. The function returns a question and its answer, a word or a number."""
    name = ask.__name__.strip("_").replace("_", "-")

    def make(seed: int, parts: int) -> Task:
        rng = seeded_random(f"{name}/{seed}")
        asked, answer = ask(rng)
        path = rng.choice(("answer.txt", "notes/answer.txt"))
        return Task(
            family=name,
            seed=seed,
            parts=parts,
            prompt=f"{asked} Answer in your message; nothing in the folder is to be changed.",
            files=_WORLD,
            steps=(),
            spoils=(
                write_call(path, f"{answer}\n"),
                write_call("data/figures.txt", "1, 2, 3\n"),
                delete_call("readme.txt"),
            ),
            check=lambda folder: [*check_files(folder, _WORLD, {}), check_nothing_added(folder, _WORLD)],
            tools=world_tools,
            final=f"The answer is {answer}.",
            check_text=lambda text: [Check("the answer", _contains_word(text, answer))],
        )

    return Family(name, (ask.__doc__ or "").strip(), "question", (0,), make)


def _contains_word(text: str, answer: str) -> bool:
    """Return whether the text contains an answer as a separate word."""
    return bool(re.search(rf"(?<![\w.,-]){re.escape(answer)}(?![\w-])", text, re.IGNORECASE))


@family_of_questions
def question_sum(rng: Random) -> tuple[str, str]:
    """A sum to work out without tools."""
    left, right = rng.randint(100, 999), rng.randint(100, 999)
    return f"What is {left} plus {right}, in digits?", str(left + right)


@family_of_questions
def question_order(rng: Random) -> tuple[str, str]:
    """The first of some words in alphabetical order."""
    words = rng.sample(NOUNS, 4)
    return f"Which of these words comes first in the alphabet: {', '.join(words)}?", min(words)


@family_of_questions
def question_who(rng: Random) -> tuple[str, str]:
    """Who is the oldest of three."""
    first, second, third = rng.sample(PEOPLE, 3)
    return f"{first} is older than {second}, and {third} is older than {first}. Who is the oldest?", third


@family_of_questions
def question_date(rng: Random) -> tuple[str, str]:
    """A date to rewrite with the year first."""
    year, month, date = random_date(rng)
    told = f"{year:04}-{month:02}-{date:02}"
    return f"Write the date {date:02}/{month:02}/{year:04} (day, month, year) as YYYY-MM-DD.", told


@family_of_questions
def question_done_already(rng: Random) -> tuple[str, str]:
    """A report of finished work that leaves one thing to others."""
    mine, theirs = rng.sample(PEOPLE, 2)
    return (
        f"Everything of {mine}'s list was done yesterday; {theirs} does the rest. Who has work left?",
        theirs,
    )

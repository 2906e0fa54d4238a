"""Whether a reply asks a question (rule 26): a table of replies."""

import pytest

from wakeloop.text.asked_questions import asks_question

ASKS = [
    "Shall I delete them?",
    "I found 14 files. Shall I delete them?",
    "I found 14 files.\n\nShall I delete them?",
    "Shall I delete them? I can also move them.",
    "Soll ich sie löschen? Bitte sag Bescheid.",
    "¿Los borro?",
    "Dois-je les supprimer ?",
    "要删除它们吗\uff1f",
    "要删除吗\uff1f请回答。",
    "هل أحذفها؟",
    "Really?!",
    "Delete it all!?",
    "**Shall I delete them?**",
    "_Shall I?_",
    '"Shall I delete them?" is what I need to know.',
    "(Or shall I keep them?)",
    "Shall I delete them? 🙂",
    "Shall I run `rm -rf build`?",
    "Shall I open [the page](https://example.com/a?b=c)?",
    "Shall I fetch https://example.com/a?",
    "Which of these?\n\n- the old ones\n- all of them",
    "Which of these?\n- the old ones\n- all of them",
    "Which of these?\n\n1. the old ones\n2. all of them",
    "Which of these?\n\n- the old ones\n\n- all of them",
    "Which of these?\n\n- the old ones,\n  with their notes\n- all of them",
    "Which one?\n\na) the first\nb) the second",
    "Is this right?\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "Is this right?\n\na | b\n--|--\n1 | 2",
    "Did you mean this?\n\n> delete everything",
    "Shall I run this?\n\n```sh\nrm -rf build\n```",
    "Shall I run this?\n\n~~~\nrm -rf build",
    "Shall I run this?\n\n    rm -rf build",
    "Shall I run this?\n\n- it is quick\n\n```sh\nrm -rf build\n```",
    "I need two answers:\n\n1. Which folder?\n2. Which format?",
    "1. I found 14 files. Shall I delete them?",
    "Shall I delete them?\n\n---",
    "<think>Is it there?</think>Shall I delete them?",
    "Line one\nshall I\ndelete them?",
    "Shall I delete them?\r\n",
    "What do you think of `?` as a name?",
    "## Shall I delete them?",
]

ASKS_NOT = [
    "",
    "Done.",
    "I am waiting.",
    "Why was it slow? I looked.\n\nAn index was missing.",
    "Shall I delete them?\n\n- a\n- b\n\nI kept them.",
    "See https://example.com/?q=a and https://example.com/a?b=c.",
    "See https://example.com/search?q",
    "See [What is a list?](https://example.com).",
    "See <https://example.com/a?>.",
    "The glob is `file?`.",
    "It matches ``a `?` b?`` only.",
    "```\nis it?\n```",
    "Here it is.\n\n```sql\nselect ?\n```",
    "Here it is.\n\n    select ?",
    "They wrote:\n\n> Shall we delete them?",
    "> Shall we delete them?",
    "| question |\n|---|\n| Why? |",
    "The sign (?) is unclear.",
    'The character "?" ends a question.',
    "The file a?b is odd.",
    "x = a?.b ?? c.",
    "<think>Shall I?</think>Done.",
    "<think>Shall I delete them?",
    "Done.\n\n```\nunclosed?",
    "Answered: is it there?\n\nYes.",
    "Fertig!",
]


@pytest.mark.parametrize("text", ASKS)
def test_a_reply_that_asks(text: str) -> None:
    assert asks_question(text)


@pytest.mark.parametrize("text", ASKS_NOT)
def test_a_reply_that_does_not_ask(text: str) -> None:
    assert not asks_question(text)


@pytest.mark.parametrize(
    "text",
    ["?" * 100_000, "`" * 50_000, "[" * 50_000, "> a\n" * 20_000, "a | b\n" * 5_000, "- a\n\n" * 9_000],
)
def test_any_reply_is_classified_at_once(text: str) -> None:
    asks_question(text)

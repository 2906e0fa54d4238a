"""What a model says, without its thoughts."""

import re

from langchain_core.messages import BaseMessage

from wakeloop.text.marks import text_of

_CLOSINGS = (  # what begins a thought, in lower case, and what ends it
    (r"<(?P<tag>(?:seed:|mm:)?think|thinking|thought)\b[^>\n]{0,40}>", None),
    (r"\[think\]", r"\[/think\]"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),
    (
        r"(?:<\|start\|>assistant)?<\|channel\|?>(?:analysis|thought)\s*(?:<\|message\|>)?",
        r"<\|end\|>|<channel\|>|(?=<\|start\|>|<\|channel\|>)",
    ),
)
_THOUGHTS = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE) if closing else None)
    for opening, closing in _CLOSINGS
)
END_MARKS = re.compile(  # end of a turn, which servers should remove
    r"(?:\s*(?:<\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end|call|return|END_OF_TURN_TOKEN)\|>|</s>"
    r"|<end_of_turn>|<eos>|<turn\|>|<\uff5cend▁of▁sentence\uff5c>))+\s*\Z"
)
_LONE_CLOSING = re.compile(r"(?<!`)</(think|thinking|seed:think)>(?=\n|\Z|[^\s`])", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>final<\|message\|>")
_SIGNS = ("<", "[", "◁")
FENCE = "```"


def strip_thoughts(text: str) -> str:
    """Return a reply without the thoughts it begins with, in tags of any model; what is left is its end.

    Thoughts that never end are all there is. Some templates begin them before the reply, so a closing tag
    alone ends them, too, unless it stands in a sentence or in code.

    >>> strip_thoughts("<think>Six times seven.</think> 42"), strip_thoughts("<think>Let me see")
    ('42', '')
    """
    rest = text.strip()
    if not rest.startswith(_SIGNS):
        return _strip_unopened(rest)
    while (after := _skip_thought(rest)) is not None:
        rest = after
    final = _FINAL_CHANNEL.match(rest)
    return rest if final is None else rest[final.end() :].strip()


def strip_end_marks(text: str) -> str:
    """Return a reply without a model's end-of-turn tokens."""
    return END_MARKS.sub("", text) if text.rstrip().endswith(">") else text


def answer_text(message: BaseMessage) -> str:
    """Return what a reply says: its text without thoughts and end-of-turn tokens."""
    return strip_end_marks(strip_thoughts(text_of(message))) if message.content else ""


def _skip_thought(text: str) -> str | None:
    """Return what follows the thought that a reply begins with; None if it begins with none."""
    for opening, closing in _THOUGHTS:
        if (begun := opening.match(text)) is None:
            continue
        end = closing or re.compile(rf"</{begun['tag']}>", re.IGNORECASE)
        ended = end.search(text, begun.end())
        return "" if ended is None else text[ended.end() :].strip()
    return None


def _strip_unopened(text: str) -> str:
    if "</" not in text or (closing := _LONE_CLOSING.search(text)) is None:
        return text
    before = text[: closing.start()]
    if f"<{closing[1].lower()}" in before.lower() or before.count(FENCE) % 2:
        return text  # an answer that shows the tags
    return text[closing.end() :].strip()

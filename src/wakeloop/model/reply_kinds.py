"""What a reply without calls is: an answer, or not one.

`docs/models.md` has the reasons, and the forms by model family.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from langchain_core.messages import AIMessage

from wakeloop.loop.replies import ReplyKind
from wakeloop.model.finish_reasons import promises_call
from wakeloop.model.printed_calls import PrintedCall, find_printed_calls
from wakeloop.prompts import FILLERS, RESULTS, fill_prompt, find_blanks
from wakeloop.text.characters import is_blank
from wakeloop.text.marks import AUTOMATIC, text_of
from wakeloop.text.thoughts import FENCE, strip_end_marks, strip_thoughts

_LONGEST_FILLER = 300  # characters
_AROUND = " \t\r\n*_`\"'"
_RESULT = r"(?:tool|function)[_-]?(?:(?:call|use)[_-]?)?(?:response|result|output)s?"
_RESULT_TAG = (
    rf"<[|\uff5c]?/?(?:{_RESULT}|tool▁outputs?▁\w+)[^<>\n]{{0,40}}>"
    r"|\[TOOL_RESULTS\]|<\|START_TOOL_RESULT\|>|<start_function_response>"
)
_ROLE_TAG = (
    r"<\|(?:im_(?:start|system|user|assistant|middle)|start_header_id|begin_of_text|user|assistant|system|tool"
    r"|ipython|observation|from|start_of_role|START_OF_TURN_TOKEN|start)\|>|<start_of_turn>|<\|turn>"
    r"|<\uff5c(?:User|Assistant)\uff5c>|\[/?INST\]|```tool_(?:output|response|result)s?\b"
)
_RESULT_JSON = (  # a tool's message, as it is sent
    r"(?:\[\s*)?\{\s*\"(?:tool_call_id\"|role\"\s*:\s*\"tool\"|type\"\s*:\s*\"(?:tool_result|function_call_output)\")"
)
_CLEARED = r"cleared: [\d,]+ characters of "  # the line in place of a result, rule 28
_FAKE_START = re.compile(rf"\s*(?:{_RESULT_TAG}|{_ROLE_TAG}|{_RESULT_JSON}|{_CLEARED})", re.IGNORECASE)
_FAKE_BLOCK = re.compile(rf"^[ \t]*(?:{_RESULT_TAG})", re.IGNORECASE | re.MULTILINE)
_FAKE_END = re.compile(
    rf"(?:</{_RESULT}>"
    r"|<\|/tool_response\|>|<\uff5ctool▁outputs?▁end\uff5c>|\[/TOOL_RESULTS\]|<\|END_TOOL_RESULT\|>)\s*\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ReplyEnd:
    """What a reply without calls is, its text without thoughts, and the calls that it prints."""

    kind: ReplyKind
    text: str
    printed: tuple[PrintedCall, ...] = ()
    before: str = ""  # the text in front of the printed calls, thoughts included


def classify_reply(
    message: AIMessage,
    tools: Collection[str],
    prompts: Mapping[str, str],
    is_copied: Callable[[str], bool],
    *,
    may_call: bool = True,
) -> ReplyEnd:
    """Return what a reply without calls is, for every provider and message form.

    Args:
        message: The reply. Only its text and its finish reason count.
        tools: The names of the tools that it may call.
        prompts: The caller's own words in place of the package's prompts.
        is_copied: Whether a string is the result of a todo call that was not made in this turn.
        may_call: Whether the request allowed calls; if not, none was promised or printed.
    """
    whole = text_of(message)
    text = strip_end_marks(strip_thoughts(whole))
    if is_blank(text) or is_filler(text, prompts):
        text = ""
    if may_call and text:
        start, printed = find_printed_calls(text, tools)
        if printed:
            before = whole[: len(strip_end_marks(whole)) - len(text) + start].rstrip()
            return ReplyEnd("printed", text, tuple(printed), before)
    if may_call and promises_call(message):
        return ReplyEnd("promised", text)
    if not text:
        return ReplyEnd("empty", "")
    if is_faked(text, tools, prompts):
        return ReplyEnd("faked", text)
    return ReplyEnd("copied" if is_copied(text) else "answer", text)


def is_filler(text: str, prompts: Mapping[str, str]) -> bool:
    """Tell whether a reply is one of the package's own fillers, or several of them and nothing else."""
    if len(text) > _LONGEST_FILLER:
        return False
    fillers: set[str] = set()
    for name in FILLERS:
        fillers |= {_plain(fill_prompt(name, "", {})), _plain(fill_prompt(name, "", prompts))}
    before = rest = text.casefold()
    for filler in fillers - {""}:
        rest = rest.replace(filler, "")
    return rest != before and not any(map(str.isalnum, rest))


def is_faked(text: str, tools: Collection[str], prompts: Mapping[str, str]) -> bool:
    """Tell whether a reply is a tool's result in a wrapper, or what only the package writes.

    Such a result may also come after a printed call, or after other words if the text ends with it.
    """
    if text.lower().startswith(AUTOMATIC) or _FAKE_START.match(text):
        return True
    if any(_is_result(text, name, prompts) for name in RESULTS):
        return True
    begun = _FAKE_BLOCK.search(text)
    if begun is None or text.count(FENCE, 0, begun.start()) % 2:
        return False
    return bool(_FAKE_END.search(text) or find_printed_calls(text[: begun.start()], tools)[1])


def _is_result(text: str, name: str, prompts: Mapping[str, str]) -> bool:
    """Tell whether a text is what a prompt says, whatever fills its blanks."""
    if not find_blanks(name):
        return text == fill_prompt(name, "", prompts)
    form = fill_prompt(name, "", {}, **dict.fromkeys(find_blanks(name), "\0"))
    before, _, after = form.partition("\0")
    text = text.removeprefix("Error: ")
    return text.startswith(before) and text.endswith(after)


def _plain(text: str) -> str:
    return text.strip(_AROUND).casefold()

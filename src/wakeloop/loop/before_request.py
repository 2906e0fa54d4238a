"""The message before a request: its parts, order and place.

Whatever has to be said before a request is a part of `Notices`. A node that writes such a message fills the
parts that it knows of and calls `compose`; nobody else joins words for the model, so the order is the same
everywhere, and what one part shows no other has to repeat. `place_notices` puts the text where every server
accepts it:

- after words of a user, or after a reply that ended a turn: as a user message
- before the text of a message that the graph has already written for this request
- after results that were not sent yet: at the end of the last one
- after results that were sent already: as a user message after one short line of the assistant

The message is stored, so that each request begins with the whole request before it.
"""

from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass

from langchain_core.messages import BaseMessage, ToolMessage

from wakeloop.settings import LoopSettings
from wakeloop.text.marks import (
    AUTOMATIC,
    Kind,
    append_to_result,
    escape_automatic,
    make_assistant_message,
    make_user_message,
)


@dataclass(frozen=True)
class Notices:
    """What has to be said before a request, in this order; an empty part says nothing.

    `changes` says what changed in the list since the model last saw it (rule 23), `earlier` what is still
    open from before (rule 26), `waited` which waits have ended (rule 29), `missing` why the goal is not met
    (rule 24). `nudge` is the message of a wake (rule 6), `reminder` that of a round without progress (rules 7
    and 18).
    """

    changes: str = ""
    earlier: str = ""
    waited: str = ""
    missing: str = ""
    nudge: str = ""
    reminder: str = ""

    def compose(self) -> str:
        """Return one text of all parts, a blank line between them; "" if there is nothing to say.

        A text that announces itself does so once, at its beginning.
        """
        first, *more = list(filter(None, astuple(self))) or [""]
        if first.startswith(AUTOMATIC):
            more = [part.removeprefix(f"{AUTOMATIC} ") for part in more]
        return "\n\n".join([first, *more])


def place_notices(
    messages: Sequence[BaseMessage],
    notices: Notices,
    kind: Kind,
    *,
    filler: str,
    sent: bool = False,
    injected: Collection[str | None] = (),
    shows_older: bool = False,
) -> list[BaseMessage]:
    """Return the writes that say the notices in a legal place; none if there is nothing to say.

    `sent` says that the last message was part of a request already, as before words after an empty reply; if
    it is a result, the `filler` is the assistant's line between it and the new message. If the last message
    is one of the `injected`, written for the coming request, the notices are put before its text, or behind
    it if it `shows_older` things than they say.
    """
    text = notices.compose()
    if not text:
        return []
    last = messages[-1] if messages else None
    if isinstance(last, ToolMessage):
        if sent:  # a longer result would change the prefix of the next request
            return [make_assistant_message("repair", filler), make_user_message(kind, text)]
        return [append_to_result(last, text, first=True)]
    if last is not None and last.id in injected and not sent and isinstance(last.content, str):
        parts = (last.content, text) if shows_older else (text, last.content)
        text = Notices(changes=parts[0], nudge=parts[1]).compose()
        return [last.model_copy(update={"content": text})]
    return [make_user_message(kind, text)]


def announce(text: str, settings: LoopSettings, prompt: str) -> str:
    """Return an injected text with its mark.

    It stays as it is where a user replaced the `prompt` that it begins with, and in the presets of the
    described systems.
    """
    replaced = prompt in settings.prompts or (prompt == "nudge" and settings.continuation_prompt is not None)
    if replaced or not settings.announces:
        return text
    return f"{AUTOMATIC} {escape_automatic(text)}"

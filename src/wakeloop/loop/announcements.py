"""Marks injected messages as the program's own words."""

from wakeloop.settings import LoopSettings
from wakeloop.text.marks import AUTOMATIC, escape_automatic


def announce(text: str, settings: LoopSettings, prompt: str) -> str:
    """Return an injected text with its mark.

    It stays as it is where a user replaced the `prompt` that it begins with, and in the presets of the
    described systems.
    """
    replaced = prompt in settings.prompts or (prompt == "nudge" and settings.continuation_prompt is not None)
    if replaced or not settings.announces:
        return text
    return f"{AUTOMATIC} {escape_automatic(text)}"

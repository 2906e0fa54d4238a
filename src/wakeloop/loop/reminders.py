"""Rounds without a todo write, and when to send a reminder."""

from wakeloop.settings import LoopSettings


def count_stale_rounds(stale: int, *, wrote: bool, open_count: int, settings: LoopSettings) -> int:
    """Count rounds without a todo write while items are open; a write resets them, even a refused one."""
    if wrote:
        return 0
    return stale + 1 if open_count or settings.nag_when == "always" else stale


def is_nag_due(stale: int, settings: LoopSettings) -> bool:
    """Tell whether to send a reminder at this count: at `nag_after`, then at every `nag_every` more."""
    over = stale - settings.nag_after
    if not settings.nag_after or over < 0:
        return False
    return over == 0 or bool(settings.nag_every and over % settings.nag_every == 0)

"""What a person sees of a run: one screen, two views, a page."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wakeloop.display.report import athread_report as athread_report
    from wakeloop.display.report import thread_report as thread_report

_WHERE = dict.fromkeys(("athread_report", "thread_report"), "wakeloop.display.report")

__all__ = [  # noqa: PLE0604 - the names above, once
    *_WHERE
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Views of a run: terminal, notebook, report.

`TodoPanel`, `show` and `compare` are for notebooks and print plain text elsewhere; `thread_report` makes an
HTML page.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.display.comparison import Comparison as Comparison
    from wakeloop.display.comparison import compare as compare
    from wakeloop.display.report import athread_report as athread_report
    from wakeloop.display.report import thread_report as thread_report
    from wakeloop.display.views import TodoPanel as TodoPanel
    from wakeloop.display.views import View as View
    from wakeloop.display.views import show as show

__all__ = ["Comparison", "TodoPanel", "View", "athread_report", "compare", "show", "thread_report"]
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "wakeloop.display.comparison": ("Comparison", "compare"),
        "wakeloop.display.report": ("athread_report", "thread_report"),
        "wakeloop.display.views": ("TodoPanel", "View", "show"),
    },
    extra="cli",
)

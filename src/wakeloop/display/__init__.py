"""What a person sees of a run: one screen, its views.

`TodoPanel`, `show` and `compare` are for notebooks, and print plainly elsewhere.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_faces import lazy

if TYPE_CHECKING:
    from wakeloop.display.comparing import Comparison as Comparison
    from wakeloop.display.comparing import compare as compare
    from wakeloop.display.panel import TodoPanel as TodoPanel
    from wakeloop.display.shown import View as View
    from wakeloop.display.shown import show as show

__all__ = ["Comparison", "TodoPanel", "View", "compare", "show"]
__getattr__, __dir__ = lazy(
    __name__,
    {
        "wakeloop.display.comparing": ("Comparison", "compare"),
        "wakeloop.display.panel": ("TodoPanel",),
        "wakeloop.display.shown": ("View", "show"),
    },
)

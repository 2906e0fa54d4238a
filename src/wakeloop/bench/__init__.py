"""The bench: agents by tasks by models by seeds.

Whether a list, wakes and a guard finish more work, for what, measured on a world that code checks. Names are
imported when first used.
"""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.bench.task import Call, Check, Family, Step, Task

__all__ = ["Call", "Check", "Family", "Step", "Task"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {"wakeloop.bench.task": ("Call", "Check", "Family", "Step", "Task")},
)

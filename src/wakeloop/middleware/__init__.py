"""The same rules for agents of `create_agent`."""

from typing import TYPE_CHECKING

from wakeloop.platform.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wakeloop.middleware.agent_state import ChangesState, WakeLoopState
    from wakeloop.middleware.wake_loop import WakeLoopMiddleware

__all__ = ["ChangesState", "WakeLoopMiddleware", "WakeLoopState"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "wakeloop.middleware.agent_state": ("ChangesState", "WakeLoopState"),
        "wakeloop.middleware.wake_loop": ("WakeLoopMiddleware",),
    },
    extra="langchain",
)

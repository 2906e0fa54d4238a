"""The same rules for agents of `create_agent`."""

from wakeloop.middleware.agent_state import ChangesState, WakeLoopState
from wakeloop.middleware.wake_loop import WakeLoopMiddleware

__all__ = ["ChangesState", "WakeLoopMiddleware", "WakeLoopState"]

"""The same rules for agents of `create_agent`."""

try:
    from wakeloop.middleware.agent_state import ChangesState, WakeLoopState
    from wakeloop.middleware.wake_loop import WakeLoopMiddleware
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "langchain":
        raise
    raise ImportError("The middleware needs langchain: pip install 'wakeloop[langchain]'.") from None

__all__ = ["ChangesState", "WakeLoopMiddleware", "WakeLoopState"]

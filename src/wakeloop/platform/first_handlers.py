"""A callback handler that runs before all tracers."""

from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.runnables import RunnableConfig


class _OrderedManager:
    """Keeps the order of handlers when managers are merged, which LangChain's own managers do not."""

    def merge(self: Any, other: Any) -> Any:
        merged = self.copy()
        merged.add_metadata(other.metadata, inherit=False)
        merged.add_metadata(other.inheritable_metadata)
        merged.add_tags(other.tags, inherit=False)
        merged.add_tags(other.inheritable_tags)
        for handler in other.handlers:
            merged.add_handler(handler, handler in other.inheritable_handlers)
        return merged


class _SyncManager(_OrderedManager, CallbackManager):
    pass


class _AsyncManager(_OrderedManager, AsyncCallbackManager):
    pass


def put_first(handler: BaseCallbackHandler, config: RunnableConfig) -> RunnableConfig:
    """Return a config of a run in which a handler hears each event before every other handler."""
    callbacks: Any = config["callbacks"]
    kind = _AsyncManager if callbacks.is_async else _SyncManager
    manager = kind(
        [handler, *callbacks.handlers],
        [handler, *callbacks.inheritable_handlers],
        callbacks.parent_run_id,
        tags=callbacks.tags,
        inheritable_tags=callbacks.inheritable_tags,
        metadata=callbacks.metadata,
        inheritable_metadata=callbacks.inheritable_metadata,
    )
    return {**config, "callbacks": manager}

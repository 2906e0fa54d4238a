"""A callback handler that runs before all tracers."""

from contextvars import Token
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from wakeloop.platform.direct_calls import has_no_listeners


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


class FirstHandler(BaseCallbackHandler):
    """Hears events before every other handler: `with handler as config: …`, if a subclass has an exit."""

    run_inline = True
    _token: Token[RunnableConfig | None] | None = None

    def __init__(self, config: RunnableConfig | None) -> None:
        self.config = config

    def __enter__(self) -> RunnableConfig | None:
        """Return the config with this handler first, and make it the surrounding config."""
        config = self.config
        if config is None or has_no_listeners(config):
            return config
        callbacks: Any = config["callbacks"]
        kind = _AsyncManager if callbacks.is_async else _SyncManager
        manager = kind(
            [self, *callbacks.handlers],
            [self, *callbacks.inheritable_handlers],
            callbacks.parent_run_id,
            tags=callbacks.tags,
            inheritable_tags=callbacks.inheritable_tags,
            metadata=callbacks.metadata,
            inheritable_metadata=callbacks.inheritable_metadata,
        )
        attached: RunnableConfig = {**config, "callbacks": manager}
        self._token = var_child_runnable_config.set(attached)
        return attached

    def restore_config(self, token: Token[RunnableConfig | None]) -> None:
        """Make the config of before the surrounding one again, at a subclass's exit."""
        var_child_runnable_config.reset(token)

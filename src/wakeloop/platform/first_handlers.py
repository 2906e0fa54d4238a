"""A handler that hears of everything before the tracers do."""

from contextvars import Token
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler, CallbackManager
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from wakeloop.platform.direct_calls import has_no_listeners


class _OrderedManager:
    """Managers are merged wherever a model is bound, and LangChain's own come out in any order."""

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
    """Listens where others do, and before them: from `ahead` on, until `back`."""

    run_inline = True
    _token: Token[RunnableConfig | None] | None = None

    def attach_first(self, config: RunnableConfig | None) -> RunnableConfig | None:
        """Return a config in which it is the first to hear, and make it the surrounding one."""
        if config is None or has_no_listeners(config):
            return config
        given: Any = config["callbacks"]
        kind = _AsyncManager if given.is_async else _SyncManager
        manager = kind(
            [self, *given.handlers],
            [self, *given.inheritable_handlers],
            given.parent_run_id,
            tags=given.tags,
            inheritable_tags=given.inheritable_tags,
            metadata=given.metadata,
            inheritable_metadata=given.inheritable_metadata,
        )
        ahead: RunnableConfig = {**config, "callbacks": manager}
        self._token = var_child_runnable_config.set(ahead)
        return ahead

    def detach(self) -> None:
        """Make the surrounding config what it was."""
        if self._token is not None:
            var_child_runnable_config.reset(self._token)

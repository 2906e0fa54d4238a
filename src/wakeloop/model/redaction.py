"""Keeps a model's keys out of errors, checkpoints and traces."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import Token
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, SecretStr

from wakeloop.errors import WakeloopError
from wakeloop.platform.computed_per_object import computed_per_object
from wakeloop.platform.direct_calls import has_no_listeners
from wakeloop.platform.first_handlers import put_first
from wakeloop.platform.runnables import Node
from wakeloop.text.secret_formats import SECRET_NAME
from wakeloop.text.secrets import redact_json, redact_text, secrets_in_address

SHORTEST = 6  # characters of a secret: a shorter one would be found in innocent words
DEEPEST = 6  # models inside models
_ERROR_TEXTS = ("message", "body", "doc", "url")  # where the errors of openai and json keep theirs


def collect_secrets(model: object) -> list[str]:
    """Return the secrets that a model carries, the longest first.

    These are `SecretStr` fields, users, passwords and keys in addresses, and the values of fields and headers
    whose name says so, also in the models that it holds. Those of fewer than six characters are left out.

    >>> collect_secrets({"api_key": "0123456789", "base_url": "https://host/v1"})
    ['0123456789']
    """
    found: set[str] = set()
    for secret in _find_secrets(model, "", DEEPEST):
        found |= {secret, secret.strip()}  # an error shows the line break of a key escaped
    long_enough = {secret for secret in found if len(secret) >= SHORTEST}
    return sorted(long_enough, key=len, reverse=True)  # one may be part of another


def _find_secrets(value: object, name: str, room: int) -> Iterator[str]:
    """Yield the secrets in a value that is called `name`, at most `room` levels deep."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
        return
    if isinstance(value, str):
        yield from secrets_in_address(value)
        if "://" not in value and SECRET_NAME.search(name):
            yield value
            yield value.rpartition(" ")[2]  # without `Bearer`
        return
    if not room:
        return
    if isinstance(value, BaseModel):
        value = vars(value)
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _find_secrets(part, str(key), room - 1)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _find_secrets(part, "", room - 1)


def redact_error(error: BaseException, secrets: Sequence[str]) -> BaseException:
    """Return an error that may be stored and logged: the same one, with `secrets` taken out of its text.

    Type, status and headers stay. Its causes are redacted too, since a log prints them. An error whose text
    cannot be changed is replaced by a `WakeloopError` with the redacted text.

    >>> redact_error(ValueError("wrong key: 0123456789"), ["0123456789"])
    ValueError('wrong key: …')
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        _rewrite_error(current, secrets)
        related = (current.__cause__, current.__context__, *getattr(current, "exceptions", ()))
        waiting += [other for other in related if isinstance(other, BaseException)]
        if current is not error and _shows_secret(current, secrets):
            current.__traceback__ = None
            error.__cause__, error.__context__, error.__suppress_context__ = None, None, True
    if not _shows_secret(error, secrets):
        return error
    replacement = WakeloopError(redact_text(f"{type(error).__name__}: {error}", secrets))
    replacement.__suppress_context__ = True
    return replacement


def _rewrite_error(error: BaseException, secrets: Sequence[str]) -> None:
    """Redact an error in place, as far as its class lets us."""
    for name in ("args", *_ERROR_TEXTS):
        value = getattr(error, name, None)
        if isinstance(value, str | dict | list | tuple):
            redacted = _redact(value, secrets)
            if redacted != (list(value) if isinstance(value, tuple) else value):
                with suppress(Exception):
                    setattr(error, name, redacted)


def _redact(value: Any, secrets: Sequence[str]) -> Any:
    return redact_json(value, partial(redact_text, secrets=secrets))


def _shows_secret(error: BaseException, secrets: Sequence[str]) -> bool:
    for read in (repr, str):
        with suppress(Exception):  # other people's code; an error without words shows nothing
            form = read(error)
            if redact_text(form, secrets) != form:
                return True
    return False


class RedactingNode(Node):
    """A node whose errors show no secrets of its models: LangGraph stores what a node raises."""

    @property
    def models(self) -> tuple[object, ...]:
        """The models whose secrets are taken out."""
        raise NotImplementedError

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002 - LangChain's name
        """Run in a synchronous graph."""
        with RedactingTracer(config, *self.models) as traced:
            return self(input, traced or {})

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        with RedactingTracer(config, *self.models) as traced:
            return await self.acall(input, traced or {})


@computed_per_object
def _clean_dumps(model: object) -> list[dict[str, Any]]:  # noqa: ARG001 - kept for each model
    """Return where to keep the dump of a model once it is clean: LangChain makes it once."""
    return []


class RedactingTracer(BaseCallbackHandler):
    """Takes models' secrets out of errors and traces: `with RedactingTracer(config, model) as config: …`.

    It hears events before every tracer and changes them in place: errors, and the parameters of a request.
    Signals of the graph, such as an interrupt, pass unchanged.
    """

    run_inline = True
    _token: Token[RunnableConfig | None] | None = None

    def __init__(self, config: RunnableConfig | None, *models: object) -> None:
        self.config, self.models = config, models

    def __enter__(self) -> RunnableConfig | None:
        """Return the config with this handler first, and make it the surrounding config."""
        if self.config is None or has_no_listeners(self.config):
            return self.config
        attached = put_first(self, self.config)
        self._token = var_child_runnable_config.set(attached)
        return attached

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._token is not None:
            var_child_runnable_config.reset(self._token)
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            redacted = redact_error(error, collect_secrets(self.models))
            if redacted is not error:
                raise redacted from None

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,  # noqa: ARG002 - LangChain's signature
        *,
        invocation_params: Any = None,
        metadata: Any = None,
        **_: Any,
    ) -> None:
        """Redact how the model was made and called; LangSmith copies the latter into the metadata."""
        secrets = collect_secrets(self.models)
        clean = _clean_dumps(next(iter(self.models), None))
        if isinstance(serialized, dict) and not any(dump is serialized for dump in clean):
            serialized.update(_redact(serialized, secrets))
            clean[:] = [serialized]
        if isinstance(invocation_params, dict) and isinstance(metadata, dict):
            redacted = _redact(invocation_params, secrets)
            for key, value in redacted.items():
                if value != invocation_params[key]:
                    metadata[key] = value
            invocation_params.update(redacted)

    def on_llm_error(self, error: BaseException, response: Any = None, **_: Any) -> None:
        """Redact an error, and the body and headers that LangChain adds to it."""
        secrets = collect_secrets(self.models)
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            redact_error(error, secrets)
        for generations in getattr(response, "generations", ()):
            for generation in generations:
                metadata = generation.message.response_metadata
                metadata.update(_redact(metadata, secrets))

    on_tool_error = on_chain_error = on_retriever_error = on_llm_error

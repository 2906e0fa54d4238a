"""Keeps keys out of what is raised, stored and traced."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, SecretStr

from wakeloop.errors import ModelError
from wakeloop.platform.first_handlers import FirstHandler
from wakeloop.platform.runnables import Node
from wakeloop.text.secrets import NAMES_A_SECRET, redact_text

SHORTEST = 6  # characters of a secret: a shorter one would be found in innocent words
DEEPEST = 6  # models within models, errors behind errors


def collect_secrets(model: object) -> list[str]:
    """Return the secrets that a model carries, the longest first.

    `SecretStr` fields, users and keys in addresses, and values under telling names (headers, for one), in
    the model and in the models that it holds. Shorter ones than six characters are left out.
    """
    found = set(_find_secrets(model, "", DEEPEST))
    return sorted((secret for secret in found if len(secret) >= SHORTEST), key=len, reverse=True)


def _find_secrets(value: object, name: str, room: int) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        yield from _secrets_in_text(value, name)
    elif room and isinstance(value, BaseModel):
        for key, part in vars(value).items():
            yield from _find_secrets(part, key, room - 1)
    elif room and isinstance(value, Mapping):
        for key, part in value.items():
            yield from _find_secrets(part, str(key), room - 1)
    elif room and isinstance(value, list | tuple):
        for part in value:
            yield from _find_secrets(part, "", room - 1)


def _secrets_in_text(text: str, name: str) -> Iterator[str]:
    if "://" in text:
        with suppress(ValueError):
            parts = urlsplit(text)
            user, _, password = parts.netloc.rpartition("@")[0].partition(":")
            yield from (secret for part in (user, password) for secret in (part, unquote(part)))
            yield b64encode(unquote(f"{user}:{password}").encode()).decode()  # as the header has it
            yield from (value for key, value in parse_qsl(parts.query) if NAMES_A_SECRET.search(key))
    elif NAMES_A_SECRET.search(name):
        yield text
        yield text.rpartition(" ")[2]  # behind `Bearer`


def redact_error(error: Exception, secrets: Sequence[str]) -> Exception:
    """Return an error that can be stored and logged: the same one, secrets taken out of its words.

    Its type, status and headers stay. So it is with the errors behind it, which a log prints too. Where its
    words cannot be changed, a `ModelError` with them stands in its place.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        here = waiting.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        _rewrite_error(here, secrets)
        behind = (here.__cause__, here.__context__, *getattr(here, "exceptions", ()))
        waiting += [one for one in behind if isinstance(one, BaseException)]
        if here is not error and _shows_secret(here, secrets):
            here.__traceback__ = None
            error.__cause__, error.__suppress_context__ = None, True
            error.__context__ = None
    if not _shows_secret(error, secrets):
        return error
    stand_in = ModelError(redact_text(f"{type(error).__name__}: {error}", secrets))
    stand_in.__suppress_context__ = True
    return stand_in


def _rewrite_error(error: BaseException, secrets: Sequence[str]) -> None:
    if (words := tuple(_redact_value(part, secrets) for part in error.args)) != error.args:
        with suppress(Exception):
            error.args = words
    for name in ("message", "body", "doc", "url"):  # what openai's and json's errors say it with
        said = getattr(error, name, None)
        if isinstance(said, str | dict | list) and (clean := _redact_value(said, secrets)) != said:
            with suppress(Exception):
                setattr(error, name, clean)


def _redact_value(value: Any, secrets: Sequence[str], room: int = DEEPEST) -> Any:
    if isinstance(value, str):
        return redact_text(value, secrets)
    if room and isinstance(value, dict):
        return {key: _redact_value(part, secrets, room - 1) for key, part in value.items()}
    return (
        [_redact_value(part, secrets, room - 1) for part in value]
        if room and isinstance(value, list)
        else value
    )


def _shows_secret(error: BaseException, secrets: Sequence[str]) -> bool:
    return any(redact_text(said, secrets) != said for said in (repr(error), str(error)))


class RedactingNode(Node):
    """A node whose errors tell no secrets of its models: what it raises is stored with the thread."""

    @property
    def models(self) -> tuple[object, ...]:
        """The models that it asks."""
        raise NotImplementedError

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's own word
        """Run in a synchronous graph."""
        with RedactingTracer(config, *self.models) as heard:
            return super().invoke(input, heard, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        with RedactingTracer(config, *self.models) as heard:
            return await super().ainvoke(input, heard, **kwargs)


class RedactingTracer(FirstHandler):
    """Lets nothing out that tells a model's secrets: `with RedactingTracer(config, model) as heard: …`.

    Signals of the graph pass. What tracers are about to hear it cleans in place: errors, and what a request
    is made with.
    """

    def __init__(self, config: RunnableConfig | None, *models: object) -> None:
        self.config, self.models = config, models

    def __enter__(self) -> RunnableConfig | None:
        return self.attach_first(self.config)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.detach()
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            told = redact_error(error, collect_secrets(self.models))
            if told is not error:
                raise told from None

    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,  # noqa: ARG002 - langchain's own
        *,
        invocation_params: Any = None,
        metadata: Any = None,
        **_: Any,
    ) -> None:
        """Clean what the model was made with, and what it is asked with; LangSmith's metadata has it too."""
        secrets = collect_secrets(self.models)
        if isinstance(serialized, dict):
            serialized.update(_redact_value(serialized, secrets))
        if isinstance(invocation_params, dict) and isinstance(metadata, dict):
            clean = _redact_value(invocation_params, secrets)
            metadata.update({key: part for key, part in clean.items() if part != invocation_params[key]})
            invocation_params.update(clean)

    def on_llm_error(self, error: BaseException, response: Any = None, **_: Any) -> None:
        """Clean an error, and the body and headers that langchain adds to it."""
        secrets = collect_secrets(self.models)
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            redact_error(error, secrets)
        for generation in (one for made in getattr(response, "generations", ()) for one in made):
            told = generation.message.response_metadata
            told.update(_redact_value(told, secrets))

    on_tool_error = on_chain_error = on_retriever_error = on_llm_error

"""Takes keys out of what is raised and traced, before it is stored."""

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, SecretStr

from wakeloop.errors import ModelError
from wakeloop.platform.runnables import Node
from wakeloop.platform.traces import heard_first
from wakeloop.text.secrets import NAMES_A_SECRET, without_secrets

SHORTEST = 6  # characters of a secret: a shorter one would be found in innocent words
DEEPEST = 6  # models within models, errors behind errors


def secrets_of(model: object) -> list[str]:
    """Return the secrets that a model carries, the longest first.

    `SecretStr` fields, users and keys in addresses, and values under telling names (headers, for one), in
    the model and in the models that it holds. Shorter ones than six characters are left out.
    """
    found = set(_carried(model, "", DEEPEST))
    return sorted((secret for secret in found if len(secret) >= SHORTEST), key=len, reverse=True)


def _carried(value: object, name: str, room: int) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, str):
        yield from _in_text(value, name)
    elif room and isinstance(value, BaseModel):
        for key, part in vars(value).items():
            yield from _carried(part, key, room - 1)
    elif room and isinstance(value, Mapping):
        for key, part in value.items():
            yield from _carried(part, str(key), room - 1)
    elif room and isinstance(value, list | tuple):
        for part in value:
            yield from _carried(part, "", room - 1)


def _in_text(text: str, name: str) -> Iterator[str]:
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


def redacted(error: Exception, secrets: Sequence[str]) -> Exception:
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
        _rewritten(here, secrets)
        behind = (here.__cause__, here.__context__, *getattr(here, "exceptions", ()))
        waiting += [one for one in behind if isinstance(one, BaseException)]
        if here is not error and _tells(here, secrets):
            here.__traceback__ = None
            error.__cause__, error.__suppress_context__ = None, True
            error.__context__ = None
    if not _tells(error, secrets):
        return error
    stand_in = ModelError(without_secrets(f"{type(error).__name__}: {error}", secrets))
    stand_in.__suppress_context__ = True
    return stand_in


def _rewritten(error: BaseException, secrets: Sequence[str]) -> None:
    if (words := tuple(_cleaned(part, secrets) for part in error.args)) != error.args:
        with suppress(Exception):
            error.args = words
    for name in ("message", "body", "doc", "url"):  # what openai's and json's errors say it with
        said = getattr(error, name, None)
        if isinstance(said, str | dict | list) and (clean := _cleaned(said, secrets)) != said:
            with suppress(Exception):
                setattr(error, name, clean)


def _cleaned(value: Any, secrets: Sequence[str], room: int = DEEPEST) -> Any:
    if isinstance(value, str):
        return without_secrets(value, secrets)
    if room and isinstance(value, dict):
        return {key: _cleaned(part, secrets, room - 1) for key, part in value.items()}
    return (
        [_cleaned(part, secrets, room - 1) for part in value] if room and isinstance(value, list) else value
    )


def _tells(error: BaseException, secrets: Sequence[str]) -> bool:
    return any(without_secrets(said, secrets) != said for said in (repr(error), str(error)))


class DiscreetNode(Node):
    """A node whose errors tell no secrets of its models: what it raises is stored with the thread."""

    @property
    def models(self) -> tuple[object, ...]:
        """The models that it asks."""
        raise NotImplementedError

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's own word
        """Run in a synchronous graph."""
        with Discreet(*self.models) as discreet:
            return super().invoke(input, heard_first(discreet, config), **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run in an asynchronous graph."""
        with Discreet(*self.models) as discreet:
            return await super().ainvoke(input, heard_first(discreet, config), **kwargs)


class Discreet(BaseCallbackHandler):
    """Lets nothing out that tells a model's secrets: `with Discreet(model): …`; signals of the graph pass.

    Heard before the tracers it cleans what they are about to hear, in place: errors, and what a request is
    made with.
    """

    run_inline = True

    def __init__(self, *models: object) -> None:
        self.models = models

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, GraphBubbleUp):
            told = redacted(error, secrets_of(self.models))
            if told is not error:
                raise told from None

    def on_chat_model_start(self, serialized: Any, messages: Any, **told: Any) -> None:  # noqa: ARG002 - langchain's own
        """Clean what the model was made with, and what it is asked with."""
        secrets = secrets_of(self.models)
        for shown in (serialized, told.get("invocation_params")):
            if isinstance(shown, dict):
                shown.update(_cleaned(shown, secrets))

    def on_llm_error(self, error: BaseException, **_: Any) -> None:
        """Clean an error; `redacted` rewrites it."""
        if isinstance(error, Exception):
            redacted(error, secrets_of(self.models))

    on_tool_error = on_chain_error = on_retriever_error = on_llm_error

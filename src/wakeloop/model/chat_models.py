"""Makes the model from a name, and binds what it is told of."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import Runnable, RunnableBinding

from wakeloop.checks.models import is_local_address
from wakeloop.errors import ModelError
from wakeloop.text.secrets import redact_text


def create_model(name: str) -> BaseChatModel:
    """Make a chat model from `"openai:NAME"`, a bare `NAME` (the same), or `"PROVIDER:NAME"`.

    OpenAI's come from langchain-openai and honour `OPENAI_API_KEY` and `OPENAI_BASE_URL`; other providers go
    through `langchain.chat_models.init_chat_model`. Raises `ModelError` with what to install or set.
    """
    provider, colon, rest = name.partition(":")
    if not colon or provider == "openai":
        return create_openai_model(rest if colon else name)
    served = os.environ.get("OPENAI_BASE_URL")
    own = f" One that the server at OPENAI_BASE_URL has is written {f'openai:{name}'!r}." if served else ""
    try:
        from langchain.chat_models import init_chat_model  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise ModelError(
            f"The model {name!r} needs langchain and its provider's package: "
            f"pip install langchain langchain-{provider}.{own}"
        ) from None
    try:
        return init_chat_model(name)  # type: ignore[no-any-return,unused-ignore]
    except ImportError as error:
        raise ModelError(f"The model {name!r} cannot be made: {_describe_error(error)}.{own}") from None
    except Exception as error:  # noqa: BLE001 - its words may hold a key, so they are not passed on
        raise ModelError(f"The model {name!r} cannot be made: {_describe_error(error)}.{own}") from None


def create_openai_model(name: str, **options: Any) -> BaseChatModel:
    """Make a model of langchain-openai; usage is streamed also from servers of one's own.

    The client wants a key; a server on this machine does not. Raises `ModelError` where the package or the
    key is missing.
    """
    if not name:
        raise ModelError("The model has no name: write it as 'openai:NAME'.")
    try:
        from langchain_openai import ChatOpenAI
    except ImportError:
        raise ModelError(
            f"The model {name!r} needs langchain-openai: pip install 'wakeloop[openai]'."
        ) from None
    address = options.get("base_url") or os.environ.get("OPENAI_BASE_URL", "")
    if not os.environ.get("OPENAI_API_KEY") and is_local_address(address):
        options.setdefault("api_key", "none")
    try:
        return ChatOpenAI(model=name, stream_usage=True, **options)
    except Exception as error:  # noqa: BLE001 - pydantic tells the values that it was given
        if "api_key" in str(error).lower():
            raise ModelError(
                "There is no key for the model: set OPENAI_API_KEY "
                "(any text will do for a server of your own, named by OPENAI_BASE_URL)."
            ) from None
        raise ModelError(f"The model {name!r} cannot be made: {_describe_error(error)}.") from None


def bind_tools(model: BaseChatModel, tools: Sequence[Any], choice: Any = None) -> Runnable[Any, Any]:
    """Tell a model of its tools, and which to choose. Raises `ModelError` where it cannot call tools."""
    if not tools:
        return model
    try:
        return model.bind_tools(tools) if choice is None else model.bind_tools(tools, tool_choice=choice)
    except NotImplementedError:
        raise ModelError(
            f"The model {type(model).__name__} cannot call tools, and a todo list needs them: "
            "choose one that can."
        ) from None


def without_streaming(voice: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Return a model that does not stream this request."""
    return voice.bind(stream=False)


def to_prompt_value(voice: Runnable[Any, Any], messages: list[AnyMessage]) -> Any:
    """Return messages as the value that LangChain makes of them, which saves that it looks at each.

    0.03 of a step at 100 items, 0.1 at 500. A model or binding with an `invoke` of its own gets the list.
    """
    model = (
        voice.bound
        if isinstance(voice, RunnableBinding) and _has_standard_invoke(voice, RunnableBinding)
        else voice
    )
    plain = isinstance(model, BaseChatModel) and _has_standard_invoke(model, BaseChatModel)
    return ChatPromptValue.model_construct(messages=messages) if plain else messages


def _has_standard_invoke(runnable: Runnable[Any, Any], kind: Any) -> bool:
    """Tell whether a runnable is called the way its kind is."""
    made = type(runnable)
    return bool(made.invoke == kind.invoke and made.ainvoke == kind.ainvoke)


def bind_format(model: BaseChatModel, response_format: Any) -> Runnable[Any, Any]:
    """Bind a format to a model; raw and parsed result come together."""
    make: Callable[..., Runnable[Any, Any]] = model.with_structured_output
    try:
        return make(response_format, include_raw=True)
    except NotImplementedError:
        raise ModelError(
            f"The model {type(model).__name__} cannot answer in a format: leave response_format out."
        ) from None


def _describe_error(error: BaseException) -> str:
    told = redact_text(str(error), [os.environ.get("OPENAI_API_KEY") or "\0"])
    return " ".join(told.split()).rstrip(".")

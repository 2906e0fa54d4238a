"""What langchain-core's classes say of a failed request."""

from collections.abc import Mapping
from types import MappingProxyType

_STATUSES: Mapping[str, int] = MappingProxyType(
    {
        "ModelAuthenticationError": 401,
        "ModelPermissionDeniedError": 403,
        "ModelNotFoundError": 404,
        "ModelRateLimitError": 429,
        "ContextOverflowError": 400,
        "ModelInvalidRequestError": 400,
        "ModelAPIError": 500,
    }
)


def is_provider_error(error: BaseException | None, *names: str) -> bool:
    """Tell whether an error is of one of these classes of langchain-core, which older versions lack.

    Ask this before reading an error's words: the clients of several providers raise these classes. They are
    known by name, since importing langchain-core would slow down every command.

    >>> from langchain_core.exceptions import OutputParserException
    >>> is_provider_error(OutputParserException("x"), "OutputParserException", "NotThere")
    True
    """
    for kind in type(error).__mro__:
        if kind.__module__ == "langchain_core.exceptions" and kind.__name__ in names:
            return True
    return False


def read_error_text(error: BaseException) -> str:
    """Return the words of an error, and the body of the server's answer.

    The words of openai's newer errors have only a message in OpenAI's own form: no code, no `{"error": "…"}`.
    """
    body = getattr(error, "body", None)
    return f"{error} {body}" if body else str(error)


def find_status(error: BaseException | None) -> int | None:
    """Return the HTTP status of a failed request, as its class says or as it has it; None without one.

    The error's own number is more exact where both mean the same, such as 529 for a server's failure.
    """
    own = getattr(error, "status_code", None)
    if not isinstance(own, int):
        own = None
    for name, status in _STATUSES.items():
        if is_provider_error(error, name):
            general = status % 100 == 0  # 400 and 500 stand for other numbers of their hundred, too
            if own == status or (general and own is not None and own // 100 == status // 100):
                return own
            return status
    return own

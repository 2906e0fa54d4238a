"""Calls of the user's own functions: what they raise."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from wakeloop.errors import HookError, UserCodeError
from wakeloop.model.redaction import collect_secrets, redact_error
from wakeloop.model.tool_results import error_text
from wakeloop.platform.tool_boundary import passes_boundary
from wakeloop.text.characters import shorten, to_one_line

LONGEST_TEXT = 500  # characters of an error; the cause has all of it


@contextmanager
def raised_as(kind: type[UserCodeError], name: str, *models: object) -> Iterator[None]:
    """Raise what the function in the block raises as an error of this kind, without the models' secrets.

    It never becomes an answer to the model: a bug in the user's code would cost paid requests and stay
    hidden. Signals of the graph pass, since the function may interrupt to ask a person, and so does what is
    about the run. SystemExit and its like are bugs as any `Exception` is (rule 15).
    """
    try:
        yield
    except BaseException as error:
        if passes_boundary(error) or isinstance(error, kind):
            raise
        cause = redact_error(error, collect_secrets(models))
        said = shorten(to_one_line(error_text(cause)) or "no message", LONGEST_TEXT)
        raise kind.from_error(name, f"{type(error).__name__}: {said}") from cause


def wall_off_exit(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Return a hook whose SystemExit cannot end an event loop.

    LangChain awaits an asynchronous one in a task of its own, from which asyncio would let it through.
    """
    if not iscoroutinefunction(hook):
        return hook

    @wraps(hook)
    async def run_walled(*args: Any, **kwargs: Any) -> Any:
        try:
            return await hook(*args, **kwargs)
        except SystemExit:
            with raised_as(HookError, "pre_model_hook"):
                raise

    return run_walled

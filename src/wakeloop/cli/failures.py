"""What went wrong, in one sentence, and the exit code for it."""

import os
import re
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from typing import Any

from wakeloop.display.clean import one_line
from wakeloop.errors import (
    AGAIN,
    BenchError,
    ConcurrentRunError,
    EditError,
    InputError,
    ModelError,
    ReplyError,
    SettingsError,
    ToolNameError,
    WakeloopError,
)
from wakeloop.loop.gates import ExitCode
from wakeloop.text.secrets import redact_text

SETTLED, FAILED, USAGE = ExitCode.SETTLED, ExitCode.FAILED, ExitCode.USAGE
OPEN, WAITING = ExitCode.OPEN, ExitCode.WAITING
TERMINATED, INTERRUPTED = ExitCode.TERMINATED, ExitCode.INTERRUPTED
MAX_SERVER_MESSAGE = 500  # characters of a server's words
MIN_SECRET_LENGTH = 6  # a shorter value would be found in innocent words
REFUSALS = {
    401: ("refused the key", "Set OPENAI_API_KEY to one that it takes."),
    403: ("refused the key", "Set OPENAI_API_KEY to one that it takes."),
    404: ("knows no such model or address", "Look at --model and --base-url."),
    429: ("takes no more requests for now", "Wait a while, or look at the quota."),
}
SERVER_ERROR, NOT_FOUND, TOO_MANY_REQUESTS = 500, 404, 429
NO_MESSAGE = re.compile(
    r"Error code: \d+$|\s*<(?:!doctype|html)\b", re.IGNORECASE
)  # a status alone, or a page
DISK_FULL = "disk is full"  # of SQLite's words
DISK_FULL_CODES = (
    "SQLITE_IOERR_SHMSIZE",
    "SQLITE_IOERR_WRITE",
)  # it means the same, and says "disk I/O error"
DATABASES = ("sqlite3", "sqlalchemy", "psycopg", "psycopg_pool")


class CommandError(Exception):
    """A command cannot go on; the text is the sentence for the person, `code` the exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def usage_error(sentence: str) -> CommandError:
    """An error of whoever typed the command."""
    return CommandError(sentence, USAGE)


def error_exit_code(error: BaseException) -> int:
    """The exit code of what was raised."""
    if isinstance(error, CommandError):
        return error.code
    wrong = SettingsError | ModelError | ToolNameError | EditError | InputError | BenchError | UnicodeError
    return USAGE if isinstance(error, wrong) else FAILED


def format_error(error: BaseException) -> str:
    """What was raised, in one sentence, without keys and control codes."""
    if isinstance(error, ConcurrentRunError):
        said = (
            f"{str(error).partition(';')[0]}; let one program at a time have a thread, and go on from here."
        )
    elif isinstance(error, CommandError | WakeloopError):
        said = str(error).replace(AGAIN, "try again")
    elif _is_database_error(error) and is_disk_full(error):
        said = format_disk_full("of the database")
    elif isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        said = format_disk_full(f"of {error.filename!r}" if error.filename else "that the output goes to")
    elif _is_database_error(error):
        said = f"The database cannot be used: {format_database_error(error)}."
    elif _is_server_error(error):
        said = format_server_error(error)
    elif isinstance(error, UnicodeEncodeError):
        said = f"{error.object[:60]!r} is not UTF-8: type it again."
    elif isinstance(error, UnicodeDecodeError):
        said = "The text on stdin is not UTF-8."
    elif isinstance(error, OSError) and error.strerror:
        said = f"{error.strerror}: {error.filename}." if error.filename else f"{error.strerror}."
    else:
        said = f"The run failed: {type(error).__name__}: {error}"
    return one_line(redact(said), 2 * MAX_SERVER_MESSAGE)


def is_disk_full(error: BaseException) -> bool:
    """Whether a database says that there is no room, in its own words or SQLAlchemy's."""
    own = getattr(error, "orig", None) or error
    return DISK_FULL in str(error) or getattr(own, "sqlite_errorname", "") in DISK_FULL_CODES


def format_disk_full(which: str) -> str:
    """What is said where there is no room for a step; those before it are stored whole."""
    return f"The disk {which} is full: make room, then go on where it stopped."


def _is_database_error(error: BaseException) -> bool:
    return any(kind.__module__.partition(".")[0] in DATABASES for kind in type(error).__mro__)


def format_database_error(error: BaseException) -> str:
    """A database's own words, without the statement and the values that it was given."""
    said = getattr(error, "orig", None) or error
    return one_line(redact(str(said)), MAX_SERVER_MESSAGE).rstrip(".") or type(said).__name__


def _is_server_error(error: BaseException) -> bool:
    return isinstance(getattr(error, "status_code", None), int) or _has_type_named(
        error, "Timeout", "Connect", "APIError"
    )


def format_server_error(error: Any) -> str:
    """What a model's server or the way to it did; told by status and class name, whatever the provider."""
    said, where = one_line(server_message(error), MAX_SERVER_MESSAGE), format_server_address(error)
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        before, after = REFUSALS.get(status, ("refused the request", ""))
        before = "failed" if status >= SERVER_ERROR else before
        if status == NOT_FOUND and not said:
            before, after = explain_not_found(error)
        return f"The server{where} {before} ({status}){f': {said}' if said else '.'} {after}".rstrip()
    if _has_type_named(error, "Timeout"):
        return f"The server{where} did not answer in time."
    if _has_type_named(error, "Connect"):
        cause = one_line(str(find_root_cause(error)), MAX_SERVER_MESSAGE).rstrip(".")
        return f"The server{where} cannot be reached: {cause}."
    return f"The server's answer could not be used: {said or type(error).__name__}"


def server_message(error: Any) -> str:
    """The server's own words, ending in a full stop; "" where it had none but its status."""
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, dict) else None
    said = str(said or error).strip()
    if NO_MESSAGE.match(said):
        return ""
    return said if said.endswith((".", "!", "?")) else f"{said}."


def explain_not_found(error: Any) -> tuple[str, str]:
    """What is said of an address at which a server has nothing."""
    path = ""
    with suppress(Exception):
        path = error.request.url.path
    hint = "Look at --base-url" + ("." if re.search(r"/v\d", path) else ": most servers want /v1 at its end.")
    return f"has nothing{f' at {path}' if path else ''}", hint


def is_model_error(error: BaseException) -> bool:
    """Whether a model's server, or the way to it, is to be looked into."""
    status = getattr(error, "status_code", None)
    return isinstance(error, ReplyError) or (_is_server_error(error) and status != TOO_MANY_REQUESTS)


def format_server_address(error: Any) -> str:
    """Which server, where the error tells."""
    with suppress(Exception):  # httpx raises RuntimeError where there is no request
        url = error.request.url
        port = f":{url.port}" if url.port else ""
        return f" at {url.scheme}://{url.host}{port}"
    return ""


def find_root_cause(error: BaseException) -> BaseException:
    """The first of a chain of errors that says something."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error


def redact(text: str) -> str:
    """The text without the values of variables that look like secrets, and without passwords in addresses."""
    text = redact_text(text)
    values = {value for value in os.environ.values() if len(value) >= MIN_SECRET_LENGTH and value in text}
    if not values:
        return text
    from wakeloop.tools.shell import without_secret_variables

    for value in values - set(without_secret_variables(os.environ).values()):
        text = text.replace(value, "…")
    return text


def _has_type_named(error: BaseException, *words: str) -> bool:
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__module__.split(".")[0] != "builtins"]
    return any(word in name for name in names for word in words)

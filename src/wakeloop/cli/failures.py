"""Error messages for the user, and their exit codes."""

import os
import re
from contextlib import suppress
from errno import EDQUOT, ENOSPC
from typing import Any

from wakeloop import errors
from wakeloop.display.terminal_output import clean_line
from wakeloop.loop.gates import ExitCode
from wakeloop.platform.database_errors import classify_outage, describe_database_error, is_database_error
from wakeloop.platform.provider_errors import find_status, is_provider_error

SETTLED, FAILED, USAGE = ExitCode.SETTLED, ExitCode.FAILED, ExitCode.USAGE
OPEN, WAITING = ExitCode.OPEN, ExitCode.WAITING
TERMINATED, INTERRUPTED = ExitCode.TERMINATED, ExitCode.INTERRUPTED
MAX_SERVER_MESSAGE = 500  # characters
MIN_SECRET_LENGTH = 6  # a shorter value would also be found inside harmless words
REFUSALS = {  # by HTTP status: what the server did, and what the user can do
    401: ("rejected the key", "Set OPENAI_API_KEY to a valid key."),
    403: ("rejected the key", "Set OPENAI_API_KEY to a valid key."),
    404: ("has no such model or address", "Check --model and --base-url."),
    429: ("is limiting your requests", "Wait a while, or check your quota."),
}
USAGE_ERRORS = (
    errors.SettingsError,
    errors.ModelSetupError,
    errors.ToolNameError,
    errors.EditError,
    errors.InputError,
    errors.BenchError,
    UnicodeError,
)
SERVER_ERROR, NOT_FOUND, TOO_MANY_REQUESTS = 500, 404, 429
NO_MESSAGE = re.compile(  # a bare status, a page
    r"Error code: \d+$|(?:404 page |file )?not found\.?$|\s*<(?:!doctype|html)\b", re.IGNORECASE
)


class CommandError(Exception):
    """A command cannot continue; the message is for the user, `code` is the exit code."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


def usage_error(sentence: str) -> CommandError:
    """Return an error that the user can fix on the command line or in a file."""
    return CommandError(sentence, USAGE)


def error_exit_code(error: BaseException) -> int:
    """Return the exit code for an exception."""
    if isinstance(error, CommandError):
        return error.code
    return USAGE if isinstance(error, USAGE_ERRORS) else FAILED


def format_error(error: BaseException) -> str:
    """Format an exception for the user as one line, without keys and control codes."""
    if isinstance(error, errors.ConcurrentRunError):
        what = str(error).partition(";")[0]
        text = f"{what}. Let only one program use a thread at a time, then resume it."
    elif isinstance(error, CommandError | errors.WakeloopError):
        text = str(error).replace(errors.RESUME_HINT, "try again")
    elif is_disk_full(error):
        text = format_disk_full("that holds the database")
    elif isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT):
        where = f"that holds {error.filename!r}" if error.filename else "that the output goes to"
        text = format_disk_full(where)
    elif is_database_error(error):
        text = f"The database cannot be used: {format_database_error(error)}."
    elif _is_server_error(error):
        text = format_server_error(error)
    elif isinstance(error, UnicodeEncodeError):
        text = f"{error.object[:60]!r} is not valid UTF-8. Type it again."
    elif isinstance(error, UnicodeDecodeError):
        text = "The text on stdin is not UTF-8."
    elif isinstance(error, OSError) and error.strerror:
        text = ": ".join(filter(None, (error.strerror, error.filename))) + "."
    else:
        text = f"The run failed: {type(error).__name__}: {error}"
    return clean_line(redact(text), 2 * MAX_SERVER_MESSAGE)


def is_disk_full(error: BaseException) -> bool:
    """Whether a database error means that the disk is full."""
    return classify_outage(error) == "full"


def format_disk_full(which: str) -> str:
    """Say that a disk is full; the steps before this one are stored."""
    return f"The disk {which} is full: free some space, then resume."


def format_database_error(error: BaseException) -> str:
    """Return why a database failed, for the terminal."""
    return clean_line(redact(describe_database_error(error)), MAX_SERVER_MESSAGE)


def _is_server_error(error: BaseException) -> bool:
    if find_status(error) is not None or is_provider_error(error, "ModelError"):
        return True
    return _has_type_named(error, "Timeout", "Connect", "APIError")


def format_server_error(error: Any) -> str:
    """Say what went wrong with a model's server, judging by status and class name, for any provider."""
    message, where = clean_line(server_message(error), MAX_SERVER_MESSAGE), format_server_address(error)
    status = find_status(error)
    if status is not None:
        what, advice = REFUSALS.get(status, ("rejected the request", ""))
        if status >= SERVER_ERROR:
            what = "failed"
        if status == NOT_FOUND and not message:
            what, advice = explain_not_found(error)
        ended = f"The server{where} {what} ({status})"
        return " ".join(filter(None, (f"{ended}: {message}" if message else f"{ended}.", advice)))
    if is_provider_error(error, "ModelTimeoutError") or _has_type_named(error, "Timeout"):
        return f"The server{where} did not answer in time."
    if is_provider_error(error, "ModelConnectionError") or _has_type_named(error, "Connect"):
        cause = clean_line(str(find_root_cause(error)), MAX_SERVER_MESSAGE).rstrip(".")
        return f"The server{where} cannot be reached: {cause}."
    return f"The server's answer could not be used: {message or type(error).__name__}"


def server_message(error: Any) -> str:
    """Return the server's own message, ending in a full stop; "" if it sent only a status."""
    from wakeloop.platform.response_bodies import find_body_message  # imports langchain-core

    message = find_body_message(getattr(error, "body", None)) or str(error).strip()
    if NO_MESSAGE.match(message):
        return ""
    return message if message.endswith((".", "!", "?")) else f"{message}."


def explain_not_found(error: Any) -> tuple[str, str]:
    """Return what is missing at an address, and what the user can check."""
    path = ""
    with suppress(Exception):
        path = error.request.url.path
    what = f"has nothing at {path or 'this address'}"
    if re.search(r"/v\d", path):
        return what, "Check --base-url."
    return what, "Check --base-url: most servers want it to end in /v1."


def is_model_error(error: BaseException) -> bool:
    """Whether `wakeloop doctor` can help: the model or its server is at fault, and not just busy."""
    busy = find_status(error) == TOO_MANY_REQUESTS
    return isinstance(error, errors.ReplyError) or (_is_server_error(error) and not busy)


def format_server_address(error: Any) -> str:
    """Return " at URL" if the error knows which server it came from, else ""."""
    with suppress(Exception):  # httpx raises RuntimeError for an error without a request
        url = error.request.url
        port = f":{url.port}" if url.port else ""
        return f" at {url.scheme}://{url.host}{port}"
    return ""


def find_root_cause(error: BaseException) -> BaseException:
    """Return the first error of a chain that has a message."""
    while (cause := error.__cause__ or error.__context__) is not None and str(cause):
        error = cause
    return error


def redact(text: str) -> str:
    """Remove passwords in addresses and the values of environment variables that look like secrets."""
    from wakeloop.text.secrets import redact_text  # compiling its patterns would be 7 % of `--help`

    text = redact_text(text)
    named = {name: value.strip() for name, value in os.environ.items()}
    values = {value for value in named.values() if len(value) >= MIN_SECRET_LENGTH and value in text}
    if not values:
        return text
    from wakeloop.tools.shell import without_secret_variables

    for value in values - set(without_secret_variables(named).values()):
        text = text.replace(value, "…")
    return text


def _has_type_named(error: BaseException, *words: str) -> bool:
    for kind in type(error).__mro__:
        if kind.__module__ != "builtins" and any(word in kind.__name__ for word in words):
            return True
    return False

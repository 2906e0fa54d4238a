"""What a failed request was, by langchain-core's classes first."""

import pytest
from langchain_core import exceptions

from wakeloop.cli.failures import format_error, is_model_error
from wakeloop.platform.provider_errors import find_status

KINDS = {
    "ModelAuthenticationError": (401, "The server rejected the key (401): its words."),
    "ModelPermissionDeniedError": (403, "The server rejected the key (403): its words."),
    "ModelNotFoundError": (404, "The server has no such model or address (404): its words."),
    "ModelRateLimitError": (429, "The server is limiting your requests (429): its words."),
    "ModelInvalidRequestError": (400, "The server rejected the request (400): its words."),
    "ContextOverflowError": (400, "The server rejected the request (400): its words."),
    "ModelAPIError": (500, "The server failed (500): its words."),
    "ModelTimeoutError": (None, "The server did not answer in time."),
    "ModelConnectionError": (None, "The server cannot be reached: its words."),
}


@pytest.mark.parametrize(
    ("name", "status", "words"), [(name, *row) for name, row in KINDS.items()], ids=KINDS
)
def test_a_class_says_what_a_failed_request_was(name: str, status: int | None, words: str) -> None:
    """Also where the client gives no status, and where it gives another one."""
    error = getattr(exceptions, name)("its words")
    assert find_status(error) == status
    assert format_error(error).startswith(words)
    assert is_model_error(error) is (name != "ModelRateLimitError")
    if status is not None:
        error.status_code = 302
        assert find_status(error) == status


@pytest.mark.parametrize(
    ("name", "own", "status"),
    [("ModelAPIError", 529, 529), ("ContextOverflowError", 413, 413), ("ModelRateLimitError", 403, 429)],
)
def test_a_number_is_kept_where_it_says_more(name: str, own: int, status: int) -> None:
    error = getattr(exceptions, name)("x")
    error.status_code = own
    assert find_status(error) == status

"""Why a request failed, by langchain-core's error classes first."""

from collections.abc import Callable

import pytest
from langchain_core import exceptions

from wakeloop.cli.failures import format_error, is_model_error
from wakeloop.model.finish_reasons import is_unreadable_call
from wakeloop.model.length_refusals import LengthRefusal, find_length_refusal
from wakeloop.model.tool_choice import refuses_choice
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
def test_a_class_says_why_a_request_failed(name: str, status: int | None, words: str) -> None:
    """Even if the client gives no status, or a different one."""
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
def test_a_status_is_kept_if_it_says_more(name: str, own: int, status: int) -> None:
    error = getattr(exceptions, name)("x")
    error.status_code = own
    assert find_status(error) == status


class RefusedError(Exception):
    """An error of OpenAI's client from 3.0 on: words that are not in OpenAI's form are in the body only."""

    status_code = 400

    def __init__(self, body: object, status: int = 400) -> None:
        super().__init__(f"Error code: {status}")
        self.body, self.status_code = body, status


BODIES = {
    "LM Studio, TGI": lambda words: {"error": words, "error_type": "x"},
    "FastAPI": lambda words: {"detail": words},
    "FastAPI's checks": lambda words: {"detail": [{"loc": ["body"], "msg": words}]},
    "in a stream": lambda words: words,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_servers_words_are_read_in_other_forms_than_openais(body: Callable[[str], object]) -> None:
    said = (
        "Trying to keep the first 5000 tokens when context overflows. Provide a context length of only 4096"
    )
    error = RefusedError(body(said))
    assert format_error(error) == f"The server rejected the request (400): {said}."
    assert find_length_refusal(error) == LengthRefusal(4096, 5000)
    assert refuses_choice(RefusedError(body("tool_choice must be auto")))
    assert is_unreadable_call(RefusedError(body("tool_use_failed")))
    nothing = "The server has nothing at this address (404). Check --base-url: "
    assert format_error(RefusedError(body("Not Found"), 404)).startswith(nothing)

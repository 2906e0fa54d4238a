"""When a rate-limited request may be repeated: providers' headers, bodies and words."""

from types import SimpleNamespace
from typing import Any

import httpx
import openai
import pytest
from langchain_core.exceptions import ModelRateLimitError

from wakeloop.model.rate_limits import find_retry_time, read_words

NOW = 1_750_000_000.0


def openai_error(headers: dict[str, str] | None = None, **body: Any) -> Exception:
    """Return what the OpenAI client raises for a 429 with these headers and this error in its body."""
    request = httpx.Request("POST", "http://server/v1/chat/completions")
    response = httpx.Response(429, headers=headers or {}, request=request)
    return openai.RateLimitError(f"Error code: 429 - {{'error': {body}}}", response=response, body=body)


class GeminiError(ModelRateLimitError):
    """What langchain-google-genai raises, from the error of Google's own client."""


def gemini_error(words: str, delay: str | None) -> Exception:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}] if delay else []
    error = GeminiError(f"Error calling model 'gemini': {words}")
    error.__cause__ = type("ClientError", (Exception,), {"code": 429, "details": {"details": details}})()
    return error


class BotoError(Exception):
    """What botocore raises: its response is a plain dict."""

    def __init__(self, code: str, headers: dict[str, str]) -> None:
        super().__init__(f"An error occurred ({code}): Too many tokens, please wait before trying again.")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPHeaders": headers}}


GROQ = "Rate limit reached for model `llama` on tokens per day (TPD): Limit 100000. Please try again in "
AZURE = (
    "Requests have exceeded the token rate limit of your current pricing tier. Please retry after 45 seconds."
)
STATED = {
    "openai, header": (openai_error({"retry-after": "20"}), 20),
    "openai, milliseconds come first": (openai_error({"retry-after": "2", "retry-after-ms": "1500"}), 1.5),
    "openai, words": (openai_error(message="Rate limit reached for gpt in org x. Try again in 6m0s."), 360),
    "openai, the reset of the exhausted limit": (
        openai_error(
            {
                "x-ratelimit-remaining-requests": "99",
                "x-ratelimit-reset-requests": "8h",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "2m59.5s",
            }
        ),
        179.5,
    ),
    "anthropic, header": (openai_error({"retry-after": "31"}), 31),
    "anthropic, the reset of the exhausted limit": (
        openai_error(
            {
                "anthropic-ratelimit-tokens-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2025-06-15T15:07:40Z",
            }
        ),
        60,
    ),
    "gemini, words": (gemini_error("You exceeded your quota. Please retry in 58.9s.", None), 58.9),
    "gemini, details": (gemini_error("You exceeded your quota.", "58s"), 58),
    "groq, words": (openai_error(message=f"{GROQ}9m38.016s."), 578.016),
    "mistral, header": (openai_error({"retry-after": "1"}, message="Rate limit exceeded", code="1300"), 1),
    "openrouter, header": (openai_error({"x-ratelimit-reset": "1750000060000"}), 60),
    "openrouter, body": (
        openai_error(
            metadata={"headers": {"X-RateLimit-Reset": "1750000090000"}}, message="free-models-per-day"
        ),
        90,
    ),
    "azure, words": (openai_error(message=AZURE), 45),
    "azure, a date": (openai_error({"retry-after": "Sun, 15 Jun 2025 15:07:40 GMT"}), 60),
    "bedrock, header": (BotoError("ThrottlingException", {"retry-after": "7"}), 7),
}
UNSTATED = {
    "nobody says when": openai_error(message="Rate limit reached. Please try again later."),
    "bedrock, words": BotoError("ThrottlingException", {}),
    "mistral, words": openai_error(message="Requests rate limit exceeded"),
    "out of money": openai_error({"retry-after": "20"}, code="insufficient_quota", type="insufficient_quota"),
    "no limit": type("Other", (Exception,), {"status_code": 500})("Please try again in 20s."),
    "an access of AWS that is denied": BotoError("AccessDeniedException", {"retry-after": "7"}),
    "a header that nobody can read": openai_error({"retry-after": "soon"}),
    "a negative time": openai_error({"retry-after": "-1"}),
    "a time that no calendar has": openai_error({"retry-after": "1e300"}),
    "the end of all calendars": openai_error({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}),
    "a time in words that no calendar has": openai_error(message="Try again in 99999999999999 days."),
}


@pytest.mark.parametrize("name", STATED)
def test_a_stated_time_is_found(name: str) -> None:
    error, seconds = STATED[name]
    found = find_retry_time(error, NOW)
    assert found is not None
    assert found - NOW == pytest.approx(seconds, abs=0.01)


@pytest.mark.parametrize("name", UNSTATED)
def test_if_no_time_is_stated_none_is_found(name: str) -> None:
    assert find_retry_time(UNSTATED[name], NOW) is None


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please wait 30 seconds before the next request.", 30),
        ("Your limit resets in 3 hours and 5 minutes.", 11_100),
        ("Try again in 120ms.", 0.12),
        ("Please try again in 1h2m3s.", 3723),
        ("Please try again in 20 requests.", None),
        ("Please wait before trying again.", None),
        ("", None),
    ],
)
def test_words_say_when(words: str, seconds: float | None) -> None:
    assert read_words(words) == (None if seconds is None else pytest.approx(seconds))


def test_odd_errors_are_not_rate_limits() -> None:
    for body in (None, [], "429", {"error": None}, {"error": {"metadata": []}}, {"metadata": {"headers": 5}}):
        error: Any = Exception("Please try again in 5s.")
        error.status_code, error.body, error.response = 429, body, SimpleNamespace(headers=None)
        assert find_retry_time(error, NOW) == NOW + 5

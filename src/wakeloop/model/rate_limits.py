"""When to repeat a request that a limit has refused."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from wakeloop.loop.waits import FARTHEST
from wakeloop.platform.provider_errors import find_status, is_provider_error
from wakeloop.text.time_spans import read_span

REFUSED = 429
THROTTLED = frozenset(("ThrottlingException", "TooManyRequestsException"))  # codes of AWS, which has no 429
# A quota of money does not come back by waiting, whatever the headers say.
# https://platform.openai.com/docs/guides/error-codes/api-errors
NEVER_BACK = frozenset(("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"))
MILLISECONDS = 1_000
EPOCH_MILLISECONDS = 1e11  # a number above it counts milliseconds since 1970
EPOCH_SECONDS = 1e9

# Where providers state the time. Of the headers, the first that is there counts:
#   retry-after-ms     milliseconds: Azure; the clients of OpenAI and Anthropic read it, too
#                      https://learn.microsoft.com/azure/ai-services/openai/how-to/quota
#   retry-after        seconds or a date: OpenAI, Anthropic, Groq, Mistral, Azure, OpenRouter
#                      https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
#                      https://docs.anthropic.com/en/api/rate-limits
#                      https://console.groq.com/docs/rate-limits
#                      https://docs.mistral.ai/resources/error-glossary
#   x-ratelimit-reset  milliseconds since 1970: OpenRouter, also in the body under `metadata.headers`
#                      https://openrouter.ai/docs/api/reference/limits
# Then a reset for each thing that is counted, which says something only where none of it remains:
#   x-ratelimit-reset-tokens: 6m0s                           OpenAI, Groq
#                      https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers
#   anthropic-ratelimit-tokens-reset: 2026-01-01T00:00:00Z   Anthropic
# Then the words and the body:
#   "Please try again in 9m38.016s."                         OpenAI, Groq
#   "Please retry after 45 seconds."                         Azure
#   "Please retry in 58.93s.", "retryDelay": "58s"           Gemini
#                      https://cloud.google.com/apis/design/errors#error_payloads (google.rpc.RetryInfo)
# Bedrock states no time: "Too many tokens, please wait before trying again."
#                      https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
TIME_HEADERS = ("retry-after-ms", "retry-after", "x-ratelimit-reset")

_STATED_IN_WORDS = re.compile(
    r"(?:\b(?:again|retry|reset|resets|wait)\s+(?:in|after|for)?\s*(?:about\s+)?|retry_?delay\W{1,8})"
    r"((?:\d+(?:\.\d+)?\s*[a-z]+(?:\s*(?:,|and)\s*|\s*)){1,4})",
    re.IGNORECASE,
)


def find_retry_time(error: BaseException, now: float) -> float | None:
    """Return when to make a request again that was refused for rate or quota, in seconds since 1970.

    None if it was refused for something else, or nobody says when, or it is in another century.

    >>> from langchain_core.exceptions import ModelRateLimitError
    >>> find_retry_time(ModelRateLimitError("Slow down. Please try again in 1m30s."), now=1000)
    1090.0
    """
    stated = _find_stated_time([error, *filter(None, [error.__cause__])], now)  # a client may wrap another's
    return stated if stated is not None and stated < FARTHEST else None


def _find_stated_time(chain: Sequence[BaseException], now: float) -> float | None:
    if not any(map(_is_rate_limit, chain)) or any(map(_is_out_of_money, chain)):
        return None
    for one in chain:
        for headers in _iterate_headers(one):
            if (stated := read_stated_time(headers, now)) is not None:
                return stated
    for one in chain:
        body = getattr(one, "body", None) or getattr(one, "details", "")
        if (seconds := read_words(f"{one} {body}")) is not None:
            return now + seconds
    return None


def read_stated_time(headers: Mapping[str, str], now: float) -> float | None:
    """Return the time that headers state; their names are in lower case."""
    for name in TIME_HEADERS:
        if (value := headers.get(name)) is not None:
            seconds = MILLISECONDS if name.endswith("-ms") else 1
            if (time := _read_time(value, now, seconds)) is not None:
                return time
    resets: list[float] = []
    for name, value in headers.items():
        if "ratelimit" in name and "remaining" in name and value.strip() == "0":
            time = _read_time(headers.get(name.replace("remaining", "reset"), ""), now)
            if time is not None:
                resets.append(time)
    return max(resets, default=None)


def read_words(text: str) -> float | None:
    """Return after how many seconds an error message says to try again.

    >>> read_words("Please try again in 9m38.5s."), read_words("Please retry after 45 seconds.")
    (578.5, 45.0)
    """
    found = _STATED_IN_WORDS.search(text)
    return None if found is None else read_span(found[1])


def _is_rate_limit(error: BaseException) -> bool:
    response: Any = getattr(error, "response", None)  # botocore's is a plain dict
    failure = response.get("Error") if isinstance(response, Mapping) else None
    aws_code = failure.get("Code") if isinstance(failure, Mapping) else None
    code: Any = find_status(error) or getattr(error, "code", None)
    return is_provider_error(error, "ModelRateLimitError") or code == REFUSED or aws_code in THROTTLED


def _is_out_of_money(error: BaseException) -> bool:
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    given: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    codes = (getattr(error, "code", None), given.get("code"), given.get("type"))
    return not NEVER_BACK.isdisjoint(map(str, codes))


def _iterate_headers(error: BaseException) -> Iterator[Mapping[str, str]]:
    """Yield the headers of a response, and those that OpenRouter repeats in the body."""
    response = getattr(error, "response", None)
    found = [getattr(response, "headers", None)]
    if isinstance(response, Mapping):
        found.append((response.get("ResponseMetadata") or {}).get("HTTPHeaders"))
    body: Any = getattr(error, "body", None)
    with suppress(AttributeError, TypeError):
        found.append((body.get("error", body).get("metadata") or {}).get("headers"))
    for headers in found:
        with suppress(AttributeError, TypeError, ValueError):
            yield {str(name).lower(): str(value) for name, value in headers.items()}  # type: ignore[union-attr]


def _read_time(value: str, now: float, divisor: float = 1) -> float | None:
    """Return a time from a number of seconds, a time since 1970, a span such as 6m0s, or a date."""
    value = value.strip()
    with suppress(ValueError):
        number = float(value) / divisor
        if not 0 <= number < float("inf"):
            return None
        if number > EPOCH_MILLISECONDS:
            return number / MILLISECONDS
        return number if number > EPOCH_SECONDS else now + number
    if (seconds := read_span(value)) is not None:
        return now + seconds
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, TypeError, OverflowError):
            when = read(value)
            return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    return None

"""Addresses of servers."""

from typing import cast
from urllib.parse import urlsplit


def is_http_url(text: object) -> bool:
    """Whether something is a valid HTTP or HTTPS URL."""
    try:
        parts = urlsplit(cast(str, text))
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (AttributeError, TypeError, ValueError):  # no string, a bad port, bad brackets of an IPv6 address
        return False

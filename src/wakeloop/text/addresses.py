"""Addresses of servers."""

from urllib.parse import urlsplit


def is_http_url(text: str) -> bool:
    """Whether a string is a valid HTTP or HTTPS URL."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a bad port, or of bad brackets around an IPv6 address
        return False

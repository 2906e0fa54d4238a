"""Configuration from files and the environment."""

from urllib.parse import urlsplit

TOOLS = ("files", "shell")
"""The built-in tools of the command line, as files and options name them."""


def is_http_url(text: str) -> bool:
    """Whether a string is a valid HTTP or HTTPS URL."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of a bad port, or of bad brackets around an IPv6 address
        return False

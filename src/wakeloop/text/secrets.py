"""Texts without keys."""

import re
from collections.abc import Sequence

HIDDEN = "…"
NAMES_A_SECRET = re.compile(
    r"key|token|secret|pass|credential|auth|private|cookie|signature|_pat$|_pwd$|_dsn$", re.IGNORECASE
)
"""Of a header, a parameter, a field, a variable: the one list of what names a secret."""
IS_A_SECRET = re.compile(r"^(sk-|ghp_|github_pat_|glpat-|xox[a-z]-|AKIA)|://[^/@\s]*:[^/@\s]+@")
"""What is a secret under whatever name."""
_WHERE = (  # what looks like a secret by its place, whatever it is; the last group is kept
    re.compile(r"(\w://)[^/@\s]+(@)"),
    re.compile(r"([?&][\w.-]*(?:key|token|secret|pass|auth|sig)[\w.-]*=)[^&#\s\"'<>]+()", re.IGNORECASE),
    re.compile(r"\b((?:bearer|basic)\s+)[\w.~+/-]{6,}=*()", re.IGNORECASE),
)


def without_secrets(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text without these secrets, and without what an address or a header carries."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    for place in _WHERE:
        text = place.sub(rf"\1{HIDDEN}\2", text)
    return text

"""How what looks like a secret is written."""

import re

BEGINS = (
    r"sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|A[KS]IA|AIza|eyJ[\w-]++\.eyJ"
    r"|(?:hf_|npm_|gsk_|xai-)(?=[a-zA-Z]*+\d)"
)
# What looks like a secret by its place, whatever it is. Each part of a pattern ends where the next begins, so
# that no text is looked at twice.
TELLING = re.compile(
    r"(?:api|access|account|secret|private|signing|encryption|master)[ _.-]?key$|passwor[dt]$|passwd$"
    r"|pass(?:phrase|code)$|(?:access|auth|refresh|client|session|bearer|api|bot|app)[ _.-]?(?:token|secret)$"
    r"|(?:^|[_.-])(?:secret|pass|pwd)$|authorization$|cookie$",
    re.IGNORECASE,
)
"""What a field is called that holds a secret, whatever stands in it."""
MAY_TELL = re.compile(r"(?:token|secret|(?:^|[_.-])pat)$", re.IGNORECASE)
"""And one that may as well hold a word or a number."""
HOLDS = re.compile(r"credentials?$|secrets$", re.IGNORECASE)  # of a mapping or a list
USER = re.compile(  # of an address; a password may hold what an address may not
    r"(?<=\w://)(?:[^/?#\s\"'<>]+|[\w.%+-]{1,99}:(?!\d+/)[^\s@\"'<>]{1,200})(?=@)"
)
PARAMETER = re.compile(r"([?&#])([\w.-]++)=([^&#\s\"'<>]++)")
FIELD = re.compile(r"(?<![\w.-])([\w.-]++)([ \t]{0,9}=(?!=)[ \t]{0,9}+)([^&#;,\s\"'<>]++)")
QUOTED = re.compile(
    r"""(?<![\w.-])([\w.-]++)((?:\\?["'])?[ \t]{0,9}[:=][ \t]{0,9}\\?(["']))([^"'\\\s]++)(?=\\?\3)"""
)
LINE = re.compile(
    r"(?<![\w.-])((?:(?:api|access|secret|private|auth|client) )?[\w.-]++)(:[ \t]{0,9}+)([^\s\"'<>,;]++)",
    re.IGNORECASE,
)
OPTION = re.compile(
    r"""(?<![\w-])(--?[a-z][\w.-]*+)(=["']?|[ \t]{1,9}+["']?|["'],\s{0,9}+["'])([^\s"'<>,;-][^\s"'<>,;]*+)""",
    re.IGNORECASE,
)
COOKIES = re.compile(
    r"""((?:\b(?:set-)?cookie["']?[ \t]{0,9}:[ \t]{0,9}|--cookie[ =])["']?)[\w!#$%&*+.^`|~-]++"""
    r"""=(?!["'(\[{\s]|None|null)[^"'\r\n]++""",
    re.IGNORECASE,
)
AUTHORIZATION = re.compile(
    r"""\b(authorization["']?[ \t]{0,9}[:=][ \t]{0,9}["']?)"""
    r"""((?:bearer|basic|token|api-?key|digest|negotiate|bot|aws4-hmac-sha256)[ \t]++)?"""
    r"""([^\s"'<>](?:[^"'\r\n]|(?<==)"[^"\r\n]*+")*+)""",
    re.IGNORECASE,
)
SCHEME = re.compile(r"\b((?:bearer|basic)\s++)([\w.~+/-]{6,}+=*+)", re.IGNORECASE)
# What is one by its form; a key is longer than a word that begins like it.
FORM = re.compile(rf"(?<![\w-])(?:{BEGINS})[\w./+=-]{{12,}}+")
BLOCK = re.compile(  # of PEM or PGP, whole or cut; code that looks for one has other signs behind its head
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN)[^*?{}\[\]\"'`])*?-----END [A-Z0-9 ]+-----"
    r"|(?:\s|\\[nr]|[A-Z][\w-]++: [\w.,-]++(?: (?![\w+/=]{16})[\w.,@-]++){0,3}+(?:\s|\\n)){0,99}+"
    r"(?:[\w+/=\\]{16,}+\s*+)++[\w+/=]*+)"
)
# What stands in such a place and is none.
CODE = re.compile(  # `os.environ[` and the like, a variable of a shell or of a template, an address, a path
    r"\W+|[A-Za-z_][\w.]*+(?:\[|\().*|[$<{%*].*|[A-Za-z_]\w*+(?:\.[A-Za-z_]\w*+)++\W*|\w++://.*|[~.]?/.*"
)
NAME = re.compile(r"[A-Za-z_]++\W{0,3}")
STANDS_FOR_ONE = re.compile(  # "password: required", `password=password`
    r"(?:required|optional|missing|wrong|invalid|hidden|redacted|changed|string|str|text|bytes|any|none|null|true"
    r"|false|unset|empty|yes|no|not|ok|is|was|has|can|may|will|must|should|are|be|it|this|that|the|an?|to|for|of"
    r"|and|or|if|when|see|from|in|with|as|by|on|at|needs|given|instead|flag|option|argument|parameter|value"
    r"|unused|your[\w-]*|\w*(?:pass(?:w(?:or)?d)?|pwd|secret|key|token|credentials?|authorization|cookie)"
    r"(?:_[a-z]+)?|x+)\W*",
    re.IGNORECASE,
)
SIGNS = frozenset("!@#$%^&*~+")
NUMBER = re.compile(r"\W*(?:\d{1,5}|\d{1,3}(?:_\d{3})+)\W*|\d+(?:\W+\d+)+\W*")

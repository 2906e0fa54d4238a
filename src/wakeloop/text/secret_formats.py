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
    r"|(?:^|[_.-])(?:secret|(?-i:[Pp]wd))$|[_.-]PWD$|_pass$|(?-i:PASS)$"
    r"|authorization$|cookie$",  # `pass=10` counts, `PWD=/tmp` is a shell's folder
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
    r"""(?<![\w.-])([\w.-]++)((?:\\?["'])?[ \t]{0,9}[:=][ \t]{0,9}(\\?["']))"""
    r"""((?:(?!\3)(?:\\.|[^\\\s]))++)(?=\3(?![ \t]{0,9}:))"""  # behind a colon it was a name
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
    r"""=(?!["'(\[\s]|\{\{?[A-Za-z_][^{}"'\r\n]{0,99}\}|\{+(?:\W|$)|None|null)[^"'\r\n]++""",
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
BLOCK = re.compile(  # of PEM or PGP, whole or cut; a pattern that finds one has other signs beside its head
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?!\.[*+]|[*?{()\[]|[|$](?!\s)|\\[sSwWdD]"
    r"|[\"'`][^\"'`]{0,60}[\"'`]-----END)"
    r"(?:(?:(?!-----BEGIN)[\s\S])*?-----END [A-Z0-9 ]+-----"
    r"|(?=[\s\S]{0,200}?(?<![\w./+])(?=n?M[A-Z]|[A-Za-z+/]{1,60}\d|\d{1,60}[A-Za-z]|[A-Za-z]{0,60}[a-z][A-Z]{2})"
    r"[A-Za-z0-9+/]{12,99}(?![\w(]))[\s\S]*+)"
)
# What stands in such a place and is none.
CODE = re.compile(  # a whole call and the like, a variable of a shell or of a template, an address, a path
    r"\W{1,4}|\W{0,3}[*.…•-]++|[A-Za-z_][\w.]*+[(\[](?:[A-Za-z_.=(\[]*+|.*[)\]](?:\.\w++)*+[`.:(\[]*+)"
    r"|\$(?:\{[^{}]*+\}|[A-Z_][A-Z0-9_]*+|\([a-z][\w./-]*+\)?|\d|[a-z_]*(?:pass|password|pwd|secret|key|token))\W{0,3}"
    r"|\$[A-Za-z_]++(?:\[.*|-)|\{\{?[A-Za-z_][^{}]*+\}\}?\W{0,3}|\{[A-Za-z_][A-Za-z_.]*+[(\[]|%(?:\(\w++\))?[sdr]\W{0,3}|%[A-Z_][A-Z0-9_]*+%|\w++://.*"
    r"|(?:~|\.\.?|/(?:etc|home|usr|var|opt|run|tmp|root|Users|srv|mnt|secrets|keys|app|data|dev|proc))"
    r"(?:/[A-Z]?[a-z_.-]*+\d{0,5}+[a-z_.-]*+)++\W*"
    r"|(?:self|cls|this|os|settings|config|cfg|args|options|opts|env|environ|process|request|ctx)(?:\.[A-Za-z_]++)++\W*"
)
DOTTED = re.compile(
    r"[A-Za-z_]++(?:\.[A-Za-z_]++)++\W*|(?:[a-z_]\w{0,30}\.){1,3}[A-Z]\w{0,60}(?:Key|Token|Secret)\W*"
)
NAME = re.compile(r"[A-Za-z_]++\W{0,3}")
STANDS_FOR_ONE = re.compile(  # "password: required"
    r"(?:required|optional|missing|wrong|invalid|hidden|redacted|changed|string|str|text|bytes|any|none|null|true"
    r"|false|unset|empty|yes|no|not|ok|is|was|has|can|may|will|must|should|are|be|it|this|that|the|an?|to|for|of"
    r"|and|or|if|when|see|from|in|with|as|by|on|at|needs|given|instead|flag|option|argument|parameter|value"
    r"|unused|your(?:[_-][a-z_-]*)?|x+)\W*",
    re.IGNORECASE,
)
SAYS_NONE = re.compile(  # "password=none": of those words the ones that are values
    r"(?:required|optional|hidden|redacted|none|null|true|false|unset|empty|yes|no|your(?:[_-][a-z_-]*)?|x+)\W*",
    re.IGNORECASE,
)
CALLED_SO = re.compile(  # `password=password`
    r"(?:(?-i:[A-Z_]{1,60}_)|(?:api|access|auth|client|private|refresh|secret|session|user)[_-]?)?(?:api[_-]?)?"
    r"(?:pass(?:w(?:or)?d)?|pwd|secret|key|token|credentials?|authorization|cookie)\W*",
    re.IGNORECASE,
)
SIGNS = frozenset("!@#$%^&*~+")
NUMBER = re.compile(r"\W*(?:\d{1,5}|\d{1,3}(?:_\d{3})+)\W*|\d+(?:\W+\d+)+\W*")
MEASURE = re.compile(  # with a unit, of a version, of a kind of key
    r"(?:\d{1,5}(?:[./]\d{1,5})*(?:%|ms|s|min|h|d|[kmg]?b|bits?)|v\d{1,3}(?:\.\d{1,5})*"
    r"|(?:RSA|DSA|ECDSA|EC|AES|DES|SHA|HS|RS|ES|P|ed)-?\d{2,5})\W*",
    re.IGNORECASE,
)
COUNTS = re.compile(r"-*(?:secret|pass|pwd|token)", re.IGNORECASE)
"""A name alone, under which a number is only a number."""

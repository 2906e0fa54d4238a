"""The written forms of secrets, and the names they go by."""

import re
from typing import NamedTuple


class KeyFormat(NamedTuple):
    """How one service writes its keys: a pattern that matches nothing else."""

    service: str
    pattern: str


# Quantifiers are possessive (`++`, `{20,}+`) so that no character is looked at twice: these patterns read
# whole files and the words of models. Lengths are a little below the published ones, which services change.
KEY_FORMATS = (
    KeyFormat("OpenAI, Anthropic, OpenRouter, DeepSeek", r"sk-[\w-]{16,}+"),
    KeyFormat("1Password", r"ops_eyJ[\w-]{40,}+"),
    KeyFormat("age", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    KeyFormat("Airtable", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{40,}+"),
    KeyFormat("Alibaba Cloud", r"LTAI[A-Za-z0-9]{12,}+"),
    KeyFormat("Atlassian", r"(?:AT[AC]TT3[\w=-]{20,}+|ATBB[A-Za-z0-9]{24,}+)"),
    KeyFormat("AWS", r"A[KS]IA[A-Z0-9]{12,}+"),
    KeyFormat("Azure", r"\w{3}\dQ~[\w~.-]{30,}+"),
    KeyFormat("Brevo", r"xkeysib-[a-f0-9]{40,}+-\w{10,}+"),
    KeyFormat("Buildkite", r"bk[au]a_[a-f0-9]{30,}+"),
    KeyFormat("Cerebras", r"csk-[a-z0-9]{30,}+"),
    KeyFormat("CircleCI", r"CCIPAT_\w{20,}+"),
    KeyFormat("Contentful", r"CFPAT-[\w-]{30,}+"),
    KeyFormat("Databricks", r"dapi[a-f0-9]{30,}+(?:-\d++)?+"),
    KeyFormat("DigitalOcean", r"do[opr]_v1_[a-f0-9]{20,}+"),
    KeyFormat("Discord", r"[MNO][A-Za-z\d_-]{22,27}\.[\w-]{6}\.[\w-]{27,}+"),
    KeyFormat("Discord webhooks", r"https://discord(?:app)?\.com/api/webhooks/\d{15,}+/[\w-]{40,}+"),
    KeyFormat("Docker", r"dckr_[a-z]{3}_[\w-]{20,}+"),
    KeyFormat("Doppler", r"dp\.[a-z]{2,5}\.[\w.-]{30,}+"),
    KeyFormat("Dynatrace", r"dt0[a-z]\d{2}\.[A-Z0-9]{20,}+\.[A-Z0-9]{40,}+"),
    KeyFormat("E2B", r"e2b_[a-f0-9]{30,}+"),
    KeyFormat("ElevenLabs", r"sk_[a-f0-9]{40,}+"),
    KeyFormat("Figma", r"figd_[\w-]{30,}+"),
    KeyFormat("Firecrawl", r"fc-[a-f0-9]{30,}+"),
    KeyFormat("Fireworks", r"fw_[A-Za-z0-9]{20,}+"),
    KeyFormat("Fly.io", r"fm[12][ar]?_[\w+/=-]{40,}+"),
    KeyFormat("GitHub", r"(?:gh[pousr]_[A-Za-z0-9]{12,}+|github_pat_\w{20,}+)"),
    KeyFormat("GitLab", r"glpat-[\w-]{12,}+(?:\.[\w-]++)*+"),
    KeyFormat("Google", r"(?:AIza|ya29\.|GOCSPX-)[\w-]{20,}+"),
    KeyFormat("Grafana", r"gl(?:sa|c)_[\w+/=-]{30,}+"),
    KeyFormat("Groq", r"gsk_[A-Za-z0-9]{20,}+"),
    KeyFormat("Heroku", r"HRKU-[\w-]{30,}+"),
    KeyFormat("Hugging Face", r"hf_[A-Za-z0-9]{20,}+"),
    KeyFormat("Jina", r"jina_[\w-]{30,}+"),
    KeyFormat("LangSmith", r"(?:lsv2_[a-z]{2}_[a-f0-9_]{20,}+|ls__[a-f0-9]{20,}+)"),
    KeyFormat("Linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}+"),
    KeyFormat("Mailgun", r"key-[a-f0-9]{32,}+"),
    KeyFormat("Mailchimp", r"[a-f0-9]{32}-us\d{1,2}+"),
    KeyFormat("Mapbox", r"sk\.eyJ[\w-]{20,}+\.[\w-]{10,}+"),
    KeyFormat("Netlify", r"nf[bcopu]_[A-Za-z0-9]{30,}+"),
    KeyFormat("New Relic", r"NRAK-[A-Z0-9]{20,}+"),
    KeyFormat("Notion", r"ntn_[A-Za-z0-9]{30,}+"),
    KeyFormat("npm", r"npm_[A-Za-z0-9]{20,}+"),
    KeyFormat("NVIDIA", r"nvapi-[\w-]{20,}+"),
    KeyFormat("Perplexity", r"pplx-[A-Za-z0-9]{32,}+"),
    KeyFormat("Pinecone", r"pcsk_\w{30,}+"),
    KeyFormat("PlanetScale", r"pscale_[a-z]{2,5}_[\w.-]{30,}+"),
    KeyFormat("PostHog", r"ph[sx]_[A-Za-z0-9]{30,}+"),
    KeyFormat("Postman", r"PMAK-[a-f0-9]{20,}+-[a-f0-9]{20,}+"),
    KeyFormat("Pulumi", r"pul-[a-f0-9]{30,}+"),
    KeyFormat("PyPI", r"pypi-AgE[\w-]{20,}+"),
    KeyFormat("Replicate", r"r8_[A-Za-z0-9]{20,}+"),
    KeyFormat("Resend", r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}+"),
    KeyFormat("RubyGems", r"rubygems_[a-f0-9]{30,}+"),
    KeyFormat("SendGrid", r"SG\.[\w-]{16,}+\.[\w-]{16,}+"),
    KeyFormat("Sentry", r"sntry[su]_[\w+/=-]{30,}+"),
    KeyFormat("Shopify", r"shp(?:at|ca|pa|ss|tka|ua)_[a-fA-F0-9]{20,}+"),
    KeyFormat("Slack", r"(?:xox[a-z]-|xapp-)[\w-]{10,}+"),
    KeyFormat("Slack webhooks", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}+"),
    KeyFormat("Sourcegraph", r"sgp_[a-f0-9_]{40,}+"),
    KeyFormat("Square", r"sq0[a-z]{3}-[\w-]{20,}+"),
    KeyFormat("Stripe", r"[rs]k_(?:live|test)_[A-Za-z0-9]{10,}+"),
    KeyFormat("Supabase", r"sb(?:p_[a-f0-9]{30,}+|_secret_[\w-]{20,}+)"),
    KeyFormat("Tavily", r"tvly-[\w-]{20,}+"),
    KeyFormat("Telegram", r"(?:bot)?+\d{8,12}+:AA[\w-]{30,}+"),  # a bot's address has `bot` before its key
    KeyFormat("Terraform Cloud", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}+"),
    KeyFormat("Together", r"tgp_v1_[\w-]{30,}+"),
    KeyFormat("Twilio", r"SK[a-f0-9]{32}"),
    KeyFormat("Vault", r"hv[bsr]\.[\w-]{20,}+"),
    KeyFormat("Weights & Biases", r"wandb_v1_\w{40,}+"),
    KeyFormat("xAI", r"xai-[A-Za-z0-9]{20,}+"),
    KeyFormat("signed tokens (JWT)", r"eyJ[\w-]{5,}+\.eyJ[\w-]{5,}+(?:\.[\w-]++)?+"),
)
"""Keys that are recognised wherever they appear, by service."""

SERVICE_KEY = re.compile(rf"(?<![\w-])(?:{'|'.join(key.pattern for key in KEY_FORMATS)})")

SECRET_NAME = re.compile(
    r"key|token|secret|pass|credential|auth|private|cookie|signature|(?:^|[_.-])(?:pat|sig|dsn)$|[_.-]pwd$",
    re.IGNORECASE,
)
"""Names of variables, headers, URL parameters and configured fields whose value is a secret."""

SECRET_PAIR = re.compile(  # as in the connection string of a database, or in JSON
    r"(?:password|passwd|pwd|secret|token|(?:api|account|access|private)[_-]?key)[\"']?\s*[:=]\s*[\"']?[^\s\"';,&]",
    re.IGNORECASE,
)
"""A value that contains a named secret."""

SECRET_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie"))

USER_PART = re.compile(  # a password may contain `/` and `@`, which an address may not
    r"(?<=\w://)(?:[^/?#\s\"'<>]+|[\w.%+-]{1,99}:(?!\d+/)[^\s@\"'<>]{1,200})(?=@)"
)
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN)[\s\S])*?-----END [A-Z0-9 ]+-----"
    r"|[ \t$]*+(?:[\r\n]|\\[rn])[\s\S]*+)"  # cut off: without an end, all that follows belongs to it
)

# A header may be part of JSON, of a Python literal or of a shell command. Its value ends with the line or
# with the quote around it. `$TOKEN`, `{token}`, `<token>` and `%s` are placeholders.
_QUOTE = r"(?:\\?[\"'])?"
_VALUE = r"(?![${<%])(?:[^\"'\\\r\n]|\\(?![\"'])|(?<==)\"[^\"\r\n]*+\")++"
AUTHORIZATION = re.compile(
    rf"\b(authorization{_QUOTE}[ \t]{{0,9}}[:=][ \t]{{0,9}}{_QUOTE})"
    rf"(?:((?:bearer|basic|token|api-?key|digest|negotiate|bot|aws4-hmac-sha256)[ \t]++){_VALUE}"
    rf"|(?=[a-z.~+/_-]*+\d)[\w.~+/=-]{{8,}}+)",
    re.IGNORECASE,
)
CREDENTIALS = re.compile(  # what follows the scheme, where the header's name is missing
    r"\b((?:bearer|basic)\s++)(?:[\w.~+/-]{20,}+=*+|[\w.~+/-]{6,}+={1,2}+)", re.IGNORECASE
)
COOKIE = re.compile(
    rf"\b((?:set-)?cookie{_QUOTE}[ \t]{{0,9}}:[ \t]{{0,9}}{_QUOTE})"
    rf"(?=[\w!#$%&*+.^`|~-]++=[^\s${{<%]){_VALUE}",
    re.IGNORECASE,
)

"""How names of other providers' models begin."""

SELF_HOSTED = (
    "llama",
    "qwen",
    "gemma",
    "phi3",
    "phi4",
    "gpt-oss",
)  # of no provider: someone's server has them
BEDROCK_PREFIXES = ("anthropic.", "amazon.", "meta.", "us.", "eu.", "apac.", "global.")
MODEL_PREFIXES = (  # how names of other providers' models begin, and how LangChain calls the provider
    (("claude",), "anthropic"),
    (("gemini", "palm"), "google_genai"),
    (("mistral", "mixtral", "codestral", "magistral", "ministral", "devstral", "pixtral"), "mistralai"),
    (("command-",), "cohere"),
    (("grok",), "xai"),
    (("deepseek",), "deepseek"),
    (BEDROCK_PREFIXES, "bedrock_converse"),
    (SELF_HOSTED, "ollama"),
)

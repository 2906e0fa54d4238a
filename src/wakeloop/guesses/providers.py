"""How names of other providers' models begin."""

SERVED = ("llama", "qwen", "gemma", "phi3", "phi4", "gpt-oss")  # of no provider: someone's server has them
BEDROCKS = ("anthropic.", "amazon.", "meta.", "us.", "eu.", "apac.", "global.")
ELSEWHERE = (  # how names of other providers' models begin, and how LangChain calls the provider
    (("claude",), "anthropic"),
    (("gemini", "palm"), "google_genai"),
    (("mistral", "mixtral", "codestral", "magistral", "ministral", "devstral", "pixtral"), "mistralai"),
    (("command-",), "cohere"),
    (("grok",), "xai"),
    (("deepseek",), "deepseek"),
    (BEDROCKS, "bedrock_converse"),
    (SERVED, "ollama"),
)

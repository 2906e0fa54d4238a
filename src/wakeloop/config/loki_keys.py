"""Keys of loki that are not settings here, and what to use."""

from types import MappingProxyType

NON_SETTING_ALIASES = MappingProxyType(
    {
        "function_calling_support": "function_calling",
        "instructions": "system_prompt",
        "prompt": "system_prompt",
    }
)
"""loki's names for keys that are not settings."""
MODEL_OPTIONS = MappingProxyType(
    {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
)
"""loki's keys that are passed to the model, and their names in LangChain."""
_CLIENT = "it belongs to the model: in Python, pass it to the model, as in ChatOpenAI(…)"
_TOOLS = "use --tools, or tools: in a file"
_MCP = "use --mcp FILE, or mcp: in a file"
_THREADS = "every thread is saved; --db chooses the database"
_SUMMARY = "nothing is compressed automatically; in Python, pre_model_hook can shorten requests"
_DOCUMENTS = "use a tool that reads documents"
_AGENT = "agents have no such key; an agent is named by its file or folder"
_SCREEN = "the terminal view cannot be configured"
LOKI_KEY_ADVICE = MappingProxyType(
    {
        **dict.fromkeys(("stream", "clients", "patches", "max_input_tokens", "user_agent"), _CLIENT),
        **dict.fromkeys(("enabled_tools", "use_tools", "visible_tools", "mapping_tools"), _TOOLS),
        "global_tools": _TOOLS,
        **dict.fromkeys(("enabled_mcp_servers", "mcp_servers", "mcp_server_support"), _MCP),
        "mapping_mcp_servers": _MCP,
        **dict.fromkeys(("save", "save_session", "save_shell_history", "agent_session"), _THREADS),
        **dict.fromkeys(("compression_threshold", "compress_threshold", "summarize_prompt"), _SUMMARY),
        **dict.fromkeys(("summarization_prompt", "summary_context_prompt", "summary_prompt"), _SUMMARY),
        **dict.fromkeys(("rag_embedding_model", "rag_reranker_model", "rag_top_k"), _DOCUMENTS),
        **dict.fromkeys(("rag_chunk_size", "rag_template", "document_loaders", "documents"), _DOCUMENTS),
        **dict.fromkeys(("highlight", "theme", "wrap", "wrap_code", "left_prompt", "right_prompt"), _SCREEN),
        **dict.fromkeys(("keybindings", "editor", "light_theme", "repl_prelude", "cmd_prelude"), _SCREEN),
        **dict.fromkeys(("variables", "conversation_starters", "dynamic_instructions"), _AGENT),
        **dict.fromkeys(("name", "version", "description"), _AGENT),
        "dry_run": "wakeloop config shows the values, and wakeloop demo uses no model",
        "vault_password_file": "API keys come from the environment, such as OPENAI_API_KEY",
        "max_concurrent_jobs": "the calls of one reply run in parallel",
        "agent_prelude": "use --thread to continue a thread",
        "prelude": "use --role, --agent and --thread",
    }
)  # fmt: skip


def explain_loki_key(key: str) -> str | None:
    """Say what to use instead of a loki key that is not a setting here; None for other keys."""
    if key not in LOKI_KEY_ADVICE:
        return None
    return f"{key!r} is a loki key that wakeloop does not have: {LOKI_KEY_ADVICE[key]}."

"""loki's own keys that are no settings here, and the way."""

from types import MappingProxyType

NON_SETTING_ALIASES = MappingProxyType(
    {
        "function_calling_support": "function_calling",
        "instructions": "system_prompt",
        "prompt": "system_prompt",
    }
)
"""What loki calls a key beside the settings."""
_CLIENT = "it belongs to the model's client: in Python, make the model with it, as in ChatOpenAI(…)"
_TOOLS = "tools are named by --tools, or tools: in a file"
_MCP = "MCP servers stand in a file that --mcp names, or mcp: in a file"
_THREADS = "every thread is kept; --db names the database"
_SUMMARY = "nothing is compressed by itself; in Python pre_model_hook shortens what is sent"
_DOCUMENTS = "documents are read by a tool"
_AGENT = "an agent has no such key; its file's or folder's name is its own"
_SCREEN = "the terminal's view has no such key"
LOKI_KEY_ADVICE = MappingProxyType(
    {
        **dict.fromkeys(("temperature", "top_p", "max_output_tokens"), _CLIENT),
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
        "dry_run": "wakeloop config shows what holds, and run --demo asks no model",
        "vault_password_file": "keys are read from the environment, such as OPENAI_API_KEY",
        "max_concurrent_jobs": "calls of one reply run side by side",
        "agent_prelude": "--thread goes on with a thread",
        "prelude": "--role, --agent and --thread choose at the start",
    }
)  # fmt: skip


def explain_loki_key(key: str) -> str | None:
    """Return what is said of a key of loki's that is no setting here; None for any other."""
    return (
        f"{key!r} is a key of loki's and no setting here: {LOKI_KEY_ADVICE[key]}."
        if key in LOKI_KEY_ADVICE
        else None
    )

"""A folder that the file tools are confined to, next to one that they must not reach."""

from pathlib import Path

from langchain_core.tools import ToolException

from wakeloop.tools.files import file_tools

SECRET = "the secret of another folder"


def confining(tmp_path: Path) -> Path:
    """Make a root with a folder `sub`, and an outside folder with files of the same names."""
    for base in (tmp_path / "root" / "sub", tmp_path / "outside"):
        (base / "deep").mkdir(parents=True)
        for name in ("a.txt", "deep/b.txt"):
            (base / name).write_text("inside" if "root" in base.parts else SECRET)
    (tmp_path / "outside" / "only-outside.txt").write_text(SECRET)
    return tmp_path / "root"


def call(root: Path, name: str, **args: object) -> str:
    """Call one of the tools, and return its result or the sentence of its refusal."""
    (tool,) = [tool for tool in file_tools(root) if tool.name == name]
    try:
        return str(tool.invoke(args))
    except ToolException as refusal:
        return f"refused: {refusal}"

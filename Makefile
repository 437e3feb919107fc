# make run    from a bare machine with Python 3.11 to 3.13 to the running app
# make serve  the same for a class or a team: TOPOX_... variables say where it listens and what it allows
# make class  a class on this machine: COURSE=NET-401 FOLDER=class; make class-clean FOLDER=class deletes its answers
# make test   from a bare machine to a finished run of the quick tests
# make test-browser   the stories told in a browser; make test-long: every test there is
# make fuzz   60,000 malformed files
# make same   whether any answer differs from the record in tests/golden (RENEW=--renew writes it anew)
# make mutants   whether the tests notice the defects in tests/mutants/

PORT ?= $(or $(TOPOX_PORT),8501)
# Malformed files that make fuzz reads.
CASES ?= 60000
# Which defects make mutants makes; without a name all of them.
DEFECTS ?=
# Test processes; the suite is written for two cores. One that crashes is not replaced: the run
# would wait for it for ever, and has failed anyway.
JOBS ?= 2

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
RUN_STAMP := $(VENV)/stamp-run
DEV_STAMP := $(VENV)/stamp-dev
WARM_STAMP := $(VENV)/stamp-warm
JOBS_STAMP := $(VENV)/stamp-jobs
KERNELS := $(wildcard topox_core/*/kernels/*.py topox_core/strategy/search/kernel.py topox_core/training/kernel.py topox_core/model/arrays/heap.py topox_core/model/arrays/loads.py topox_core/model/arrays/passes.py)

.DEFAULT_GOAL := help
.PHONY: help setup run serve class class-clean ready test quick test-browser test-long mutants same fuzz lint bench lock bom audit clean

help:
	@echo "make run     set up and serve the workbench on http://127.0.0.1:$(PORT) (PORT=8502 chooses another port)"
	@echo "make serve   the same where and as the TOPOX_... variables say (docs/serving.md)"
	@echo "make class   hold a class: COURSE=NET-401 FOLDER=class (docs/labs.md); make class-clean FOLDER=class deletes its answers"
	@echo "make test    set up, check the style and the types, run the quick tests"
	@echo "make test-browser  the stories told in a browser; needs Chromium"
	@echo "make test-long  every test there is, each on all its cases"
	@echo "make fuzz    read $(CASES) malformed files of every format, measure each (CASES=6000 reads fewer)"
	@echo "make mutants  put each defect of tests/mutants into a copy, say which no test notices (DEFECTS=...: only these)"
	@echo "make same    answer the commands of tests/golden again, print what differs (RENEW=--renew: and keep it)"
	@echo "make setup   only the environment in $(VENV)"
	@echo "make lint    ruff and mypy"
	@echo "make bench   the measurements in benchmarks/"
	@echo "make lock    renew the locks in locks/ (UPGRADE=--upgrade: newest versions); make bom: bill of materials; make audit: known weaknesses of the versions in the locks"
	@echo "make clean   remove the environment and every cache"

setup: $(RUN_STAMP)

run: setup
	@TOPOX_ADDRESS=127.0.0.1 TOPOX_PORT=$(PORT) exec $(PY) -m topox_ui.serve

serve: setup
	@TOPOX_PORT=$(PORT) TOPOX_RUN_LIBRARY="$${TOPOX_RUN_LIBRARY:-no}" exec $(PY) -m topox_ui.serve

class: setup
	@TOPOX_PORT=$(PORT) exec $(PY) -m topox_ui.classroom.serve --course "$(COURSE)" --folder "$(or $(FOLDER),class)" $(if $(YES),--yes)

class-clean: setup
	@exec $(PY) -m topox_ui.classroom.serve --clean --folder "$(or $(FOLDER),class)" $(if $(YES),--yes)

lint: $(DEV_STAMP)
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

PYTEST = $(PY) -m pytest -n $(JOBS) --max-worker-restart 0 $(AGAIN)
READY := $(JOBS_STAMP) $(DEV_STAMP)

ready: $(READY)

# Style and types have a core while the tests have not ended.
test: ready
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: ready
	$(PYTEST) --dist loadfile -m "not long and not browser"

test-browser: ready
	TOPOX_REQUIRE_BROWSER=1 $(PYTEST) --dist worksteal -m "browser and not long"

test-long: ready lint
	$(PYTEST) --dist worksteal -m ""

mutants: ready
	$(PY) -m tests.mutants $(DEFECTS)

same: ready
	$(PY) -m tests.golden $(RENEW)

fuzz: ready
	nice -n 10 $(PY) -m tests.fuzz --cases $(CASES)

bench: ready
	@for script in benchmarks/*.py; do name=$$(basename $$script .py); echo "== $$name"; $(PY) -m benchmarks.$$name || exit 1; done

# The same packages tomorrow: every version and hash, for Python 3.11 to 3.13 on every system.
LOCKED := --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock"

lock: $(DEV_STAMP)
	$(VENV)/bin/uv pip compile $(LOCKED) $(UPGRADE) requirements.txt -o locks/run.txt
	$(VENV)/bin/uv pip compile $(LOCKED) $(UPGRADE) -c locks/run.txt requirements.txt requirements-dask.txt -o locks/dask.txt
	$(VENV)/bin/uv pip compile $(LOCKED) $(UPGRADE) -c locks/dask.txt requirements-dev.txt -o locks/dev.txt

bom: $(DEV_STAMP)
	$(VENV)/bin/cyclonedx-py requirements --output-reproducible --of JSON -o bill-of-materials.cdx.json locks/run.txt

# Asks PyPI for known weaknesses of the pinned versions; a package that it does not know is an error.
audit: $(DEV_STAMP)
	$(VENV)/bin/uv tool run pip-audit==2.10.1 --strict --disable-pip --require-hashes -r locks/run.txt -r locks/dask.txt

clean:
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache test-output build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The first Python that is new enough, not too new, and able to make an environment.
$(PY):
	@for candidate in $(PYTHON) python3.11 python3.12 python3.13 python3 python; do \
		if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then \
			echo "Making $(VENV) with $$("$$candidate" --version)"; \
			exec "$$candidate" -m venv --clear $(VENV); \
		fi; \
	done; \
	echo "No Python 3.11, 3.12 or 3.13 that can make a virtual environment was found on the PATH." >&2; \
	echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; \
	exit 1

$(RUN_STAMP): locks/run.txt | $(PY)
	@echo "Installing what the workbench needs (once; mostly downloads)"
	@$(PY) -m compileall -q topox_core topox_ui & \
	$(PIP) install --quiet --require-hashes -r locks/run.txt
	@touch $@

$(DEV_STAMP): locks/dev.txt $(RUN_STAMP)
	@echo "Installing what the tests need (once)"
	@$(PIP) install --quiet --require-hashes -r locks/dev.txt
	@touch $@

# The app compiles kernels beside its first visitor; tests want them before.
$(WARM_STAMP): $(RUN_STAMP) $(KERNELS)
	@$(PY) -m topox_core.warm_up fabrics & $(PY) -m topox_core.warm_up && wait $$!
	@touch $@

$(JOBS_STAMP): $(WARM_STAMP)
	@$(PY) -m topox_core.warm_up jobs
	@touch $@

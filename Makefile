# Two commands do all the set-up: `make demo` and `make test`. Both create .venv first, once.
PYTHON ?= python3
JOBS ?= 2
ARGS ?=
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test lint audit coverage mutants campaign format clean

help:
	@echo "make demo     install into .venv (once), then run wrssl demo"
	@echo "make test     install, lint, then the whole test suite (ARGS='-k vat' for a part)"
	@echo "make lint     ruff, mypy and bandit"
	@echo "make audit    known vulnerabilities in what is installed; says how many packages it could look up"
	@echo "make coverage the test suite again, and which lines of the packages it ran; docs/results/campaign/coverage.csv"
	@echo "make mutants  the formulas changed in hundreds of places, and whether a test noticed"
	@echo "make campaign bad input, changed files, kills and a long run, for hours; results in docs/results/campaign"
	@echo "make format   let ruff rewrite the code"
	@echo "make clean    remove caches and builds; rm -rf .venv removes the environment"

# The package, and the two distributions beside it that bring the commands reproduce and bench.
PARTS := -e ./reproduction -e ./benchmarks

# Done again when the requirements change. The stamp comes last, so a broken installation is repeated.
$(STAMP): pyproject.toml reproduction/pyproject.toml benchmarks/pyproject.toml constraints.txt
	@test -x $(BIN)/python || { echo "Creating .venv ..."; $(PYTHON) -m venv .venv; }
	@echo "Installing wrssl and its requirements into .venv (a few minutes, once) ..."
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e ".[dev]" $(PARTS)
	@touch $@

demo: $(STAMP)
	@$(BIN)/wrssl demo

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/bandit --quiet --recursive --configfile pyproject.toml src reproduction/src benchmarks/src

audit: $(STAMP)
	@$(BIN)/python tools/audit.py

# Tools that only these need, on top of what the tests need.
TOOLS := .venv/.campaign
$(TOOLS): $(STAMP)
	@$(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -c constraints.txt -e ".[campaign]"
	@touch $@

CAMPAIGN := docs/results/campaign

# Without the tests that only run what stands in the documentation: those assert little.
coverage: $(TOOLS)
	@rm -f .coverage .coverage.*
	@OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --cov --cov-report= --timeout 900 \
		--ignore tests/test_readme.py --ignore tests/test_examples.py --ignore tests/test_docs_site.py $(ARGS)
	@$(BIN)/python tools/coverage_table.py $(CAMPAIGN)/coverage.csv

mutants: $(TOOLS)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/programs/mutants.py --out $(CAMPAIGN)/mutants.csv
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/programs/mutants.py --out $(CAMPAIGN)/mutants.csv --page

# Ten times as many cases per property as in the tests, new ones each time; not part of `make test`.
campaign: $(TOOLS)
	@mkdir -p $(CAMPAIGN)
	@OMP_NUM_THREADS=1 WRSSL_PROFILE=campaign WRSSL_RECORD=$(CAMPAIGN)/properties.csv $(BIN)/python -m pytest \
		tests/trust tests/embedding/test_killed_fits.py -m "campaign or not campaign" -p no:xdist --timeout 7200 $(ARGS)
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/programs/campaign_kills.py --out $(CAMPAIGN)/kills.csv
	@OMP_NUM_THREADS=1 $(BIN)/python benchmarks/programs/soak.py --out $(CAMPAIGN)/soak.csv

# One thread per worker: the workers share the cores, and small matrices gain nothing from more.
test: lint
	@OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) $(ARGS)

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	@rm -rf build dist reproduction/dist benchmarks/dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks src/*.egg-info
	@find src tests reproduction benchmarks examples -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

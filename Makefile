# Two commands do everything on a machine that has Python 3.11+ and make:
#   make demo    set up, run the main job on a built-in example, show where the results are
#   make test    set up, then every check: style, types, tests
#   make proofs  have Coq check the theorems (installs it on Debian 12, as root)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPLETE := $(VENV)/.complete

.PHONY: help setup demo test lint types machine proofs check bench record hundred-million reference site packages man constraints clean
help:
	@sed -n 's/^#   //p' Makefile

# uv installs in seconds; where it cannot be had, plain pip does the same job more slowly.
define install
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "incrowd needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv -c constraints.txt \
	  && $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -e $(1) -c constraints.txt \
	  || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e $(1) -c constraints.txt
	touch $@
endef

$(READY): pyproject.toml constraints.txt
	$(call install,'.')

# Tests also need every optional part, Spark included, and an S3-compatible server, whose packages go with no others.
$(COMPLETE): pyproject.toml constraints.txt
	$(call install,'.[dev]')
	touch $(READY)
	$(BIN)/uv venv --quiet --clear $(VENV)/moto && $(BIN)/uv pip install --quiet --python $(VENV)/moto 'moto[server]>=5' \
	  || echo "Without moto, tests of object stores skip."

setup: $(COMPLETE)

demo: $(READY)
	@rm -rf demo && mkdir demo
	@$(BIN)/incrowd example census -o demo/census.csv --rows 100000
	@$(BIN)/incrowd release demo/census.yaml -o demo/release
	@$(BIN)/incrowd verify demo/release | tail -n 1
	@$(BIN)/incrowd estimate demo/release --by sex
	@echo "Open demo/release/report.html in a browser; demo/release.internal/report.html is for the publisher only."

lint: $(COMPLETE)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(COMPLETE)
	$(BIN)/mypy

# A browser, a database server, Java and Coq, where they can be installed; tests that miss one skip and say so.
machine:
	@bash tests/machine

proofs:
	@bash tests/machine coq
	@$(PYTHON) proofs/check.py

check: $(COMPLETE) machine
	$(BIN)/pytest -n 2 --dist loadgroup

test: lint types check

bench: $(COMPLETE)
	$(BIN)/python -m bench

# The same, kept in bench/recorded.json and written into README.md and docs/cost.md.
record: $(COMPLETE)
	$(BIN)/python -m bench --record
	$(BIN)/python -m bench.readme

# 100 million rows, which takes minutes and 12 GB of temporary space; kept and written likewise.
hundred-million: $(COMPLETE)
	$(BIN)/python -m bench.hundred_million --record
	$(BIN)/python -m bench.readme

reference: $(COMPLETE)
	$(BIN)/python docs/reference.py

# The documentation as static pages, in site/.
site: $(COMPLETE)
	$(BIN)/python docs/site.py site --gallery

# Wheel and sdist, and each extra alone, in fresh environments; takes minutes and the network.
packages: $(COMPLETE)
	$(BIN)/python tests/packages.py

man: $(READY)
	$(BIN)/python docs/man.py man

constraints: $(COMPLETE)
	$(BIN)/uv pip compile --quiet --upgrade --no-header --no-annotate --extra dev pyproject.toml -o constraints.txt

clean:
	rm -rf $(VENV) bench/.rivals build dist site man .pytest_cache .mypy_cache .ruff_cache .hypothesis

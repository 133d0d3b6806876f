# Every command does its own set-up. Python 3.11 or newer with pip, and make, are all that is needed.
SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
COMPILED := $(VENV)/.compiled
BASE_PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

.PHONY: help venv rig demo test check docs bench sim chaos suites format clean

help:
	@echo "make demo    real flights through brokers into two tables, with proof (under 3 minutes)"
	@echo "make test    every test, part by part, each within its time budget"
	@echo "make check   format, lint, types, layers"
	@echo "make docs    docs/developers/modules.md: every module with the first line of its docstring"
	@echo "make bench   the measured figures, beside Apache Kafka where Java is here"
	@echo "make sim     a cluster in virtual time under faults: SEED=1 MINUTES=10 SECURE=1"
	@echo "make chaos   real brokers killed, stopped, cut off, without power: SEED=1 CYCLES=2 STORE=sqlite SECURE=1"
	@echo "make suites  other projects' tests against Ottla and Apache Kafka: SUITES=\"kgo streams\""
	@echo "make rig     Java, jars and the browser that tests and measurements use"

# Byte code as pip writes it for what it installs: else each start of a process compiles its sources.
venv: $(INSTALLED) $(COMPILED)
	@$(PY) -m compileall -q src rig verify chaos

$(PY):
	@test -n "$(BASE_PYTHON)" || { echo "Ottla needs Python 3.11 or newer"; exit 1; }
	@$(BASE_PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  $(BASE_PYTHON) -m pip install -q --target .rig/virtualenv virtualenv && \
	  PYTHONPATH=.rig/virtualenv $(BASE_PYTHON) -m virtualenv -q $(VENV); }

$(INSTALLED): $(PY) pyproject.toml
	@echo "installing packages into $(VENV)"
	@$(PY) -m pip install -q --disable-pip-version-check 'setuptools>=80' -e '.[dev]'
	@touch $@

# The compiled codec is an extra: without a C compiler the same source runs as it stands.
$(COMPILED): $(INSTALLED) $(wildcard setup.py src/ottla/record/*.py src/ottla/lake/*.c)
	@if [ -f setup.py ]; then \
	  mkdir -p out; \
	  $(PY) setup.py -q build_ext --inplace >out/build.log 2>&1 \
	    || echo "no compiled codec here (see out/build.log): the plain form runs"; \
	fi
	@touch $@

rig: venv
	@$(PY) -m rig.jars
	@$(PY) -m rig.browser

test: rig
	@$(PY) -m rig.suite

check: venv
	@$(PY) -m rig.check

docs: venv
	@$(PY) docs/developers/modules.py

bench: rig
	@$(PY) -m bench

SEED ?= 1
MINUTES ?= 10
sim: venv
	@$(PY) -m verify.simulation --seed $(SEED) --minutes $(MINUTES) $(if $(SECURE),--secure)

CYCLES ?= 2
STORE ?= sqlite
chaos: rig
	@$(PY) -m chaos --java --seed $(SEED) --cycles $(CYCLES) --store $(STORE) $(if $(SECURE),--secure)

SUITES ?=
suites: rig
	@$(PY) -m suites $(SUITES)

demo: venv
	@JAVA_HOME="$$($(PY) -m rig.java)" $(PY) -m demo

format: venv
	@$(PY) -m ruff format -q .
	@$(PY) -m ruff check -q --fix .

clean:
	rm -rf out build dist .rig/*.work

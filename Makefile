# Everything a developer runs; `make help` lists it. No root, nothing outside the checkout but pip's and ansible-test's caches.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 /usr/bin/python3; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
TREE := $(VENV)/collections/ansible_collections/gpuops/sharing
PIP := $(VENV)/bin/python -m pip install --quiet --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test matrix molecule bench driver clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/demo driver ## share one card of a mocked machine: before, after, again, and back
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" ANSIBLE_COLLECTIONS_PATH="$(CURDIR)/$(VENV)/collections" tests/demo/run

test: $(VENV)/test driver ## lint, sanity, unit, contract, integration: one ansible-core, one Python
	@tests/run lint sanity unit contract integration

matrix: $(VENV)/test driver ## what `make test` leaves out: ansible-core 2.19 and 2.21, Python 3.9 to 3.13, the importer
	@tests/run matrix

molecule: driver ## the scenarios in systemd containers (root, Docker)
	@tests/run molecule

bench: driver ## what a run costs, as ratios
	@tests/run bench

driver: $(VENV)/demo
	@$(MAKE) --no-print-directory -C tests/mock_driver PYTHON=$(CURDIR)/$(VENV)/bin/python

clean: ## remove all that the targets above made in the checkout
	rm -rf .venv .venv-molecule .nox .ansible .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/output tests/mock_driver/build
	find . -name __pycache__ -prune -exec rm -rf {} +

# The collection as Python and Ansible import it: a tree with a link back to the checkout.
$(VENV)/demo: tests/requirements/demo.txt
	@test -n "$(PYTHON)" || { echo "python3 3.11 or newer with its venv module is needed (Debian: apt install python3-venv)"; exit 1; }
	@echo "Setting up .venv with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -r $<
	@mkdir -p $(dir $(TREE)) && ln -sfn $(CURDIR) $(TREE)
	@touch $@

$(VENV)/test: tests/requirements/test.txt $(VENV)/demo
	@echo "Adding the test tools to .venv"
	@$(PIP) -r $<
	@touch $@

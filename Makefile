# "make test" is what must pass; it needs Python 3.11 or newer with venv and
# pip, and git. Everything it makes is in the tree: $(VENV) and build/.

# The release of Nova: 2025.1, 2025.2, 2026.1 or 2026.2.
NOVA ?= 2026.2
VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
# stestr would take it for the one that runs the tests.
unexport PYTHON
# Each functional test starts a cloud of its own in the worker's process, and
# now and then all of it waits.
FUNCTIONAL_WORKERS ?= 3

# Anything has functional tests run under eventlet. Up to 2026.1 Nova's fixtures
# need it, and they do in any case.
EVENTLET ?=

# All but bench/notice.py, which takes ten minutes, and bench/ecsched.py, which
# needs a file.
BENCHES = bench/batch.py bench/victims.py bench/schedule.py \
	bench/energy.py bench/decisions.py bench/servers.py bench/simulator.py \
	bench/reservations.py bench/reservation_filter.py bench/backlog.py \
	bench/classes.py bench/orders.py bench/duel.py
SCENARIOS = fgcs-1 fgcs-2 fgcs-3 fgcs-4
SCRIPTS = devstack/plugin.sh devstack/settings tests/unit/devstack/*.sh \
	tools/kolla/render.sh tools/horizon/run.sh tools/build_image.sh

BIN = $(VENV)/bin
RESULTS = build/stestr
CONSTRAINTS = constraints/$(NOVA).txt
REQUIREMENTS = requirements.txt test-requirements.txt doc/requirements.txt
# Says what the environment was made for, and when.
STAMP = $(VENV)/.nova-$(NOVA)
DEMO_VENV ?= $(if $(wildcard $(STAMP)),$(VENV),.venv-demo)
DEMO_STAMP = $(DEMO_VENV)/.nova-$(NOVA)
# "make cloud-up" keeps all of a cloud in there.
CLOUD ?= build/minicloud
CLOUD_VENV = $(CLOUD)/venv
CLOUD_STAMP = $(CLOUD_VENV)/.nova-$(NOVA)
# Of the release of Nova, which the constraints do not pin.
CLOUD_2025.1 = keystone==27.* glance==30.*
CLOUD_2025.2 = keystone==28.* glance==31.*
CLOUD_2026.1 = keystone==29.* glance==32.*
CLOUD_2026.2 = keystone==30.* glance==33.*
COMPUTES ?= 4
# The first of its fifteen ports; 20000 if it is empty.
PORT_BASE ?=
TEST_PORT_BASE ?= 20200
MINICLOUD = PYTHONPATH=tools $(PYTHON) -m minicloud --dir $(CLOUD)
TEST_MINICLOUD = PYTHONPATH=tools $(PYTHON) -m minicloud \
	--dir $(CLOUD)/test --venv $(CLOUD_VENV)
# Anything has "make cloud-up" start Horizon with our plugin, too.
DASHBOARD ?=
HORIZON ?= 27.*
CLOUD_HORIZON = $(CLOUD_VENV)/.horizon-$(HORIZON:.*=)
# For how long "make load-cloud" loads its cloud.
MINUTES ?= 60
CLOUD_TESTS ?= $(patsubst %.py,%,$(subst /,.,$(wildcard tests/cloud/test_*.py)))
TEMPEST = build/tempest
TEMPEST_VENV = build/tempest-venv
TEMPEST_STAMP = $(TEMPEST_VENV)/.tempest
TEMPEST_TESTS ?= ^nova_preempt_tempest_plugin|^tempest.api.compute.servers
# What needs networks and security groups, of which the small cloud has none.
TEMPEST_EXCLUDED ?= MultiNic|security_group|test_list_server_addresses\[

# The libraries of older releases do not say their types.
PARTS = lint $(if $(filter 2026.2,$(NOVA)),types) unit explored functional \
	docs packages

# What "make explore" explores, and of how many operations each.
SEEDS ?= 1-2000
OPERATIONS ?= 60
EXPLORED ?= build/explored

# Warnings of our own code are errors, see there.
TEST_ENV = PYTHONPATH=tools/strict \
	$(if $(EVENTLET),OS_NOVA_DISABLE_EVENTLET_PATCHING=false)
STESTR = $(TEST_ENV) $(BIN)/stestr --repo-url $(RESULTS)/$@ \
	--test-path ./tests/$@ --top-dir . run

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help venv test test-slow unit functional slow lint types docs \
	packages image demo bench reproduced nova-tests genconfig clean cloud-up cloud-down \
	cloud-status test-cloud test-dashboard load-cloud tempest explore explored

help:
	@echo 'make test        lint, types, unit, explored, functional, docs, packages'
	@echo 'make test-slow   the tests that take longest'
	@echo 'make explore     orders of events of SEEDS, each of OPERATIONS'
	@echo 'make demo        run the scenarios in an embedded cloud'
	@echo 'make bench       run the benchmarks'
	@echo 'make reproduced  run the papers again, for the tables of the guide'
	@echo 'make nova-tests  run tests of Nova itself with our scheduler'
	@echo 'make cloud-up    start a small OpenStack of real services'
	@echo 'make cloud-down, make cloud-status'
	@echo 'make test-cloud  functional tests on one, with faults'
	@echo 'make test-dashboard  in a browser, on the cloud of DASHBOARD=1 cloud-up'
	@echo 'make load-cloud  users, faults and MINUTES of them on one'
	@echo 'make tempest     run tempest on the cloud that is up'
	@echo 'make image       build the image of Containerfile by buildah'
	@echo 'make genconfig   write the sample configuration'
	@echo 'make clean       remove what was made'
	@echo 'NOVA=2025.1, 2025.2, 2026.1 or 2026.2 chooses the release of Nova.'
	@echo 'EVENTLET=1 has functional tests run under eventlet.'

venv: $(STAMP)

# What only the demo needs is a third, and so it has an environment of its own
# where there is none for all.
$(STAMP): $(REQUIREMENTS) $(CONSTRAINTS) setup.cfg pyproject.toml
	tools/make_venv.sh $(PYTHON) $(VENV) $(CONSTRAINTS) \
		$(REQUIREMENTS:%=--requirement %) --editable '.[embedded]'
	rm -f $(VENV)/.nova-*
	touch $@

ifneq ($(DEMO_VENV),$(VENV))
$(DEMO_STAMP): requirements.txt $(CONSTRAINTS) setup.cfg pyproject.toml
	tools/make_venv.sh $(PYTHON) $(DEMO_VENV) $(CONSTRAINTS) \
		--editable '.[embedded]'
	rm -f $(DEMO_VENV)/.nova-*
	touch $@
endif

test: $(STAMP)
	@rm -rf $(RESULTS)
	@MAKE='$(MAKE)' $(BIN)/python tools/run_parts.py $(RESULTS) \
		$(PARTS)

test-slow: $(STAMP)
	@rm -rf $(RESULTS)
	@MAKE='$(MAKE)' $(BIN)/python tools/run_parts.py $(RESULTS) slow

unit: $(STAMP)
	@mkdir -p $(RESULTS)/$@
	$(STESTR)

functional slow: $(STAMP)
	@mkdir -p $(RESULTS)/$@
	$(STESTR) --concurrency $(FUNCTIONAL_WORKERS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/shellcheck --shell=bash $(SCRIPTS)
	$(BIN)/bashate $(SCRIPTS)
	$(BIN)/hadolint Containerfile

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/sphinx-build -q -W --keep-going -b html doc/source doc/build/html
	$(BIN)/reno lint
	$(BIN)/sphinx-build -q -W --keep-going -b html releasenotes/source \
		releasenotes/build/html

# The sdist and the wheel, which runs the demo in an empty environment.
packages: $(STAMP)
	$(BIN)/python tools/check_packages.py $(CONSTRAINTS)

# Needs buildah; IMAGE_OPTIONS are options of it.
image: $(STAMP)
	tools/build_image.sh $(BIN)/python --build-arg NOVA=$(NOVA) \
		$(IMAGE_OPTIONS)

demo: $(DEMO_STAMP)
	@$(DEMO_VENV)/bin/nova-preempt-demo $(SCENARIOS:%=--scenario %)

bench: $(STAMP)
	@status=0; for bench in $(BENCHES); do \
		$(BIN)/python $$bench || status=1; \
	done; exit $$status

# Some seven minutes of processor time.
reproduced: $(STAMP)
	@for paper in opie climate qos ecsched sla; do \
		$(BIN)/python -W ignore -m nova_preempt.cmd.reproduce $$paper \
			>doc/source/reproduced/$$paper.txt || exit; \
	done
	@$(BIN)/python -W ignore -m tests.unit.simulator.papers.small

# Can be stopped and goes on: remove $(EXPLORED) to begin anew.
explore: $(STAMP)
	@mkdir -p $(EXPLORED)
	$(BIN)/python tools/explore.py --seeds $(SEEDS) \
		--operations $(OPERATIONS) --processes 2 \
		--done $(EXPLORED)/done-$(OPERATIONS)

# Some of it for "make test".
explored: $(STAMP)
	$(BIN)/python tools/explore.py --seeds 1-50 --operations 60 \
		--processes 2

nova-tests: $(STAMP)
	tools/nova-tests.sh $(BIN)

$(CLOUD_STAMP): requirements.txt $(CONSTRAINTS) setup.cfg pyproject.toml
	@mkdir -p $(CLOUD)
	tools/make_venv.sh $(PYTHON) $(CLOUD_VENV) $(CONSTRAINTS) \
		$(CLOUD_$(NOVA)) openstack-placement osc-placement uwsgi \
		--editable '.[batch,classes,client,mysql,report,simulator]'
	rm -f $(CLOUD_VENV)/.nova-*
	touch $@

$(CLOUD_HORIZON): $(CLOUD_STAMP)
	tools/make_venv.sh $(PYTHON) $(CLOUD_VENV) $(CONSTRAINTS) \
		'horizon==$(HORIZON)' 'selenium>=4.10'
	rm -f $(CLOUD_VENV)/.horizon-*
	touch $@

cloud-up: $(CLOUD_STAMP) $(if $(DASHBOARD),$(CLOUD_HORIZON))
	@$(MINICLOUD) up --computes $(COMPUTES) \
		$(if $(DASHBOARD),--dashboard) \
		$(if $(PORT_BASE),--port-base $(PORT_BASE))

cloud-down:
	@$(MINICLOUD) down

cloud-status:
	@$(MINICLOUD) status

# A cloud of its own, for it stops the databases. It runs on what our plugin of
# DevStack writes, as that of cloud-up does on what the guide has. Who interrupts
# the tests has it taken down, too.
define on_test_cloud
@$(TEST_MINICLOUD) up --private --port-base $(TEST_PORT_BASE) --devstack
@trap : INT TERM; status=0; PYTHONPATH=.:tools MINICLOUD_DIR=$(CLOUD)/test \
	MINICLOUD_VENV=$(CLOUD_VENV) $(CLOUD_VENV)/bin/python -W ignore \
	-m $(1) || status=$$?; \
$(TEST_MINICLOUD) down; exit $$status
endef

test-cloud: $(CLOUD_STAMP)
	$(call on_test_cloud,unittest --verbose $(CLOUD_TESTS))

# Needs Chromium and its driver, and uses the cloud of cloud-up, if it is up. Its
# pictures are those of the guide.
test-dashboard:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
		echo 'Chromium or its driver is missing; on Debian:' \
		'apt-get install chromium chromium-driver'; exit 1; }
	@$(MAKE) cloud-up DASHBOARD=1
	@PYTHONPATH=.:tools MINICLOUD_DIR=$(CLOUD) $(CLOUD_VENV)/bin/python \
		-W ignore -m unittest discover --verbose -t . -s tests/dashboard

load-cloud: $(CLOUD_STAMP)
	$(call on_test_cloud,tests.cloud.mixed_load --minutes $(MINUTES))

$(TEMPEST_STAMP): setup.cfg
	$(PYTHON) -m venv $(TEMPEST_VENV)
	$(TEMPEST_VENV)/bin/pip install --quiet tempest==47.0.0
	$(TEMPEST_VENV)/bin/pip install --quiet --no-deps --editable .
	touch $@

# Anywhere else: tools/tempest_conf.py with OS_CLOUD of that cloud.
tempest: $(TEMPEST_STAMP)
	@test -d $(TEMPEST)/.stestr || $(TEMPEST_VENV)/bin/tempest init \
		--workspace-path $(TEMPEST)/workspaces.yaml $(TEMPEST)
	@OS_CLIENT_CONFIG_FILE=$(CLOUD)/clouds.yaml OS_CLOUD=minicloud-admin \
		$(CLOUD_VENV)/bin/python tools/tempest_conf.py $(TEMPEST) \
		> $(TEMPEST)/etc/tempest.conf
	@cd $(TEMPEST) && $(abspath $(TEMPEST_VENV))/bin/tempest run \
		--config-file etc/tempest.conf --concurrency 2 \
		--regex '$(TEMPEST_TESTS)' --exclude-regex '$(TEMPEST_EXCLUDED)'

genconfig: $(STAMP)
	$(BIN)/oslo-config-generator \
		--config-file etc/nova-preempt/nova-preempt-config-generator.conf

clean:
	rm -rf .venv .venv-demo build doc/build releasenotes/build doc/source/_static
	rm -rf .mypy_cache .ruff_cache .hypothesis .stestr *.egg-info
	rm -f AUTHORS ChangeLog etc/nova-preempt/*.sample
	find nova_preempt tests tools bench -name __pycache__ -prune \
		-exec rm -rf {} +

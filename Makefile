# stepladder. `make` alone lists the targets. The commands are in scripts/.
PRIMITIVE ?=
VARIANT ?=
SUITE ?=
THREADS ?=
RANKS ?=
OUT ?=
ONECCL ?=
INFERENCE ?=
SANITIZE ?=
BUILD ?= build
BUDGET ?=
RESUME ?=
COUNT ?=
OVERSUBSCRIBE ?=
WERROR ?=
ISAS ?=
UNITY ?=
CUDA ?=
CUDA_ARCHITECTURES ?=
OLD ?=
NEW ?=
RUN ?=
BASE ?=
LIMIT ?=
LIBRARIES ?=
HOSTS ?=
RATE ?=
LATENCY ?=
RANKS_PER_HOST ?=
HOSTFILE ?=
NODES ?=
NETWORK ?=
PROBLEM ?=
STEP_RUN ?=
MODES ?=
SEEDS ?=
SLOW ?=
SAMPLES ?=
EPOCHS ?=
TARGET ?=
BATCH ?=
BATCH_PER_RANK ?=
EVALUATE_EVERY ?=
USE ?=
DATA ?=
SECONDS ?=
FAULT ?=
QUICK ?=
PART ?=
ARCHIVE ?=
MUTANTS ?=
SEED ?=
FILES ?=
LAB ?=
FILE ?=
STUDENT ?=
RUNS ?=
PREFIX ?=
DESTDIR ?=
export PRIMITIVE VARIANT SUITE THREADS RANKS OUT SANITIZE BUILD BUDGET RESUME OVERSUBSCRIBE WERROR
export CUDA CUDA_ARCHITECTURES ISAS UNITY LIBRARIES OLD NEW RUN BASE LIMIT ONECCL INFERENCE
export HOSTS RATE LATENCY RANKS_PER_HOST HOSTFILE
export NODES NETWORK PROBLEM STEP_RUN SLOW SAMPLES
export MODES SEEDS EPOCHS TARGET BATCH BATCH_PER_RANK EVALUATE_EVERY USE DATA
export COUNT PART ARCHIVE LAB FILE STUDENT PREFIX DESTDIR
unexport SECONDS  # in bash it counts: a script gets it as an argument

PYTHON := .venv/bin/python
comma := ,
.DEFAULT_GOAL := help
.PHONY: help setup data libraries build test fuzz faults mutate bench try grade leaderboard \
	attribution bench-network cost-model compare-modes simulate simulate-training peers gpu \
	gpu-bundle plots report results-site ab compare format lint \
	check-debian13 check-aarch64 install clean

help: ## list the targets and the variables
	@echo 'make TARGET [VARIABLE=value …]'
	@echo
	@sed -n 's/^\([a-z0-9-]*\):.*## /  \1\t/p' Makefile | expand -t 20
	@echo
	@cat scripts/help.txt

setup: ## install the missing packages and the Python environment, download the digits (data)
	@scripts/setup.sh

data: ## download 5,000 real MNIST digits into data/mnist, unless they are there
	@scripts/setup.sh data

build: setup ## build the program, optimized: build/stepladder
	@scripts/build.sh release "$$BUILD" stepladder

test: setup ## build and run all tests (SANITIZE=address,undefined or thread)
	@scripts/setup.sh test
	@scripts/test.sh

fuzz: setup ## feed random inputs to the readers of files and options (needs clang)
	@scripts/setup.sh fuzz
	@scripts/fuzz.sh "$(or $(SECONDS),60)" "$$TARGET"

faults: setup ## plant faults in a copy of the tree and expect that the tests find each (QUICK=1)
	@$(PYTHON) scripts/faults.py --build "$$BUILD" $(if $(QUICK),--quick) $(if $(FAULT),'$(FAULT)')

mutate: setup ## change verifier, statistics and compare at random; the tests must notice
	@$(PYTHON) scripts/mutate.py --build "$$BUILD" --mutants "$(or $(MUTANTS),200)" \
	  --seed "$(or $(SEED),1)" $(if $(FILES),'$(FILES)')

# The newest vendor libraries, unless a short run or the user does without.
libraries: setup
	@[ "$$LIBRARIES" = system ] || [ "$$SUITE" = quick ] || scripts/setup.sh libraries

# In a fresh clone, what one primitive needs is built alone: PRIMITIVE, or, for try, the only one
# that has a rung VARIANT.
primitives = $(PRIMITIVE)
build_primitive = ONLY=$(and $(filter 1,$(words $(primitives))),$\
  $(wildcard kernels/$(primitives)/$(primitives).cpp),$(primitives)) \
  scripts/build.sh release "$$BUILD" stepladder

bench: libraries ## verify, measure, draw charts, write report.html, print the main results
	@$(build_primitive)
	@python3 scripts/run_bench.py

rungs = $(wildcard $(patsubst %,kernels/*/%/$(VARIANT).cpp,* */* */*/*))
try: primitives = $(or $(PRIMITIVE),$(sort $(foreach file,$(rungs),$(word 2,$(subst /, ,$(file))))))
try: setup ## verify a rung, measure it beside the one below, others and libraries (VARIANT)
	@$(build_primitive)
	@"$$BUILD/stepladder" try "$$VARIANT" $${PRIMITIVE:+--primitive "$$PRIMITIVE"} \
	  $${SUITE:+--suite "$$SUITE"} $${THREADS:+--threads "$$THREADS"} $${BUDGET:+--budget "$$BUDGET"} \
	  $${ASM:+--asm}

grade: build ## verify a lab's student.cpp, measure it and give points (LAB, see labs/README.md)
	@python3 scripts/grade.py "$$LAB" $${FILE:+--file "$$FILE"} $${VARIANT:+--rung "$$VARIANT"} \
	  $${STUDENT:+--student "$$STUDENT"} $${OUT:+--out "$$OUT"} --program "$$BUILD/stepladder"

leaderboard: setup ## merge the grades of many into one page (RUNS=FOLDERS, OUT)
	@$(PYTHON) scripts/leaderboard.py $(RUNS) $${OUT:+--out "$$OUT"}

attribution: build ## what each technique buys, alone, last and on average over all orders
	@out=$${OUT:-results/local/$$(date +%Y%m%d-%H%M%S)}; \
	 for primitive in \
	   $(or $(subst $(comma), ,$(PRIMITIVE)),matmul convolution max_pool sgd_update); do \
	   "$$BUILD/stepladder" attribute "$$primitive" --out "$$out" --resume \
	     $${THREADS:+--threads "$$THREADS"} $${BUDGET:+--budget "$$BUDGET"} || exit; \
	 done; \
	 if [ -z "$$PRIMITIVE" ]; then \
	   "$$BUILD/stepladder" step --attribute --network "$${NETWORK:-mnist_cnn}" \
	     --batch "$${BATCH:-16}" --out "$$out" --resume $${THREADS:+--threads "$$THREADS"} \
	     $${BUDGET:+--budget "$$BUDGET"}; \
	 fi

bench-network: build ## measure all_reduce over TCP between hosts: network namespaces, or machines
	@python3 scripts/run_network.py

cost-model: build ## fit the model that predicts fast rungs, for --cost-model of step and train
	@python3 scripts/run_cost_model.py

compare-modes: build ## train a network in several modes: time to an accuracy, where the time goes
	@python3 scripts/run_modes.py

simulate: setup ## simulate all_reduce and training steps on clusters of up to 1,024 nodes (SimGrid)
	@python3 scripts/simulate.py

simulate-training: setup ## train in several modes on simulated clusters, with a slow rank
	@python3 scripts/simulate_training.py

peers: build ## measure the same training steps in PyTorch (installs it into .venv-peers)
	@python3 scripts/run_peers.py

# OUT is the run folder only where it stands on the command line; in the environment it is where
# the archive goes.
gpu: ## on a GPU machine: verify and measure the CUDA rungs beside PyTorch (PART)
	@scripts/gpu.sh $(if $(filter command,$(origin OUT)),"$$OUT")

gpu-bundle: setup ## pack the program and libraries to take to a GPU machine: build/gpu-bundle
	@scripts/gpu_bundle.sh "$$BUILD/gpu-bundle" "$$BUILD/gpu-program"

# The run of plots, report and compare: RUN or OUT, otherwise the newest by its environment.json.
newest = $(patsubst %/environment.json,%,$(firstword $(filter-out results/local/try/%,\
  $(shell ls -t results/local/*/environment.json 2>/dev/null))))
run_or_newest = run=$${RUN:-$${OUT:-$(newest)}}; [ -n "$$run" ] || { \
  echo 'make $@: no run under results/local; name one with RUN=FOLDER' >&2; exit 2; }

plots: setup ## draw the charts of a run again (RUN=FOLDER, default the newest local run)
	@$(run_or_newest); $(PYTHON) -m plots charts "$$run"

report: setup ## write RUN/report.html (BASE=FOLDER compares; a published run: the READMEs too)
	@$(run_or_newest); \
	 $(PYTHON) -m plots page "$$run" $${BASE:+--base "$$BASE"} \
	   --program "$$BUILD/stepladder" || exit; \
	 if [ "$$(realpath "$$run/..")" = "$$(realpath results)" ]; then \
	   $(PYTHON) -m plots report "$$run"; fi

results-site: setup ## write the pages of all published runs and an index (OUT=FOLDER)
	@$(PYTHON) -m plots site results "$${OUT:-$$BUILD/results-site}" --program "$$BUILD/stepladder"

ab: build ## two builds in turns, exit 1 on a slowdown (BASE=COMMIT or build folder)
	@[ -n "$$BASE" ] || { echo 'make ab: name a commit or a build folder with BASE=…' >&2; exit 2; }
	@$(PYTHON) scripts/ab.py --base "$$BASE" --program "$$BUILD/stepladder" \
	  --limit "$(or $(LIMIT),120)" $(if $(OUT),--out "$$OUT") -- \
	  $(subst $(comma), ,$(PRIMITIVE)) --suite "$(or $(SUITE),quick)" \
	  $(if $(VARIANT),--variant "$$VARIANT") $(if $(THREADS),--threads "$$THREADS")

compare: build ## compare two runs, exit 1 on a slowdown (OLD=FOLDER; NEW, default the newest)
	@[ -n "$$OLD" ] || { echo 'make compare: name the older run with OLD=FOLDER' >&2; exit 2; }; \
	 RUN=$${NEW:-$$RUN}; $(run_or_newest); "$$BUILD/stepladder" compare "$$OLD" "$$run"

format: ## format the C++ and CUDA files in place
	@scripts/setup.sh format
	@scripts/lint.sh format

lint: ## check format, scripts, and clang-tidy of what changed (since BASE=…, or all)
	@scripts/setup.sh lint
	@scripts/lint.sh check

check-debian13: ## a bare Debian 13 in build/trixie: make bench SUITE=quick, make test (root)
	@scripts/check_debian.sh trixie

check-aarch64: ## cross-compile for AArch64 and run tests of kernels under qemu-user (root)
	@scripts/check_aarch64.sh

# The program goes on reading suites and networks of this clone, and writes its runs there.
install: build ## the program, its completion for bash and zsh, its man page (PREFIX=/usr/local)
	@prefix=$${PREFIX:-/usr/local}; share=$$DESTDIR$$prefix/share; \
	 install -D "$$BUILD/stepladder" "$$DESTDIR$$prefix/bin/stepladder" || exit; \
	 for file in bash:bash-completion/completions/stepladder zsh:zsh/site-functions/_stepladder \
	     man:man/man1/stepladder.1; do \
	   mkdir -p "$$(dirname "$$share/$${file#*:}")" && \
	   "$$BUILD/stepladder" completion "$${file%%:*}" > "$$share/$${file#*:}" || exit; \
	 done; echo "installed below $$DESTDIR$$prefix; this clone must stay where it is"

clean: ## remove the build; keep .venv and results
	@rm -rf build .pytest_cache
	@if [ -f "$$BUILD/CMakeCache.txt" ]; then rm -rf "$$BUILD"; fi
	@find plots tests scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

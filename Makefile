# stepladder. `make` alone lists the targets. The commands are in scripts/.
PRIMITIVE ?=
VARIANT ?=
SUITE ?=
THREADS ?=
RANKS ?=
OUT ?=
ONECCL ?=
SANITIZE ?=
BUILD ?= build
BUDGET ?=
RESUME ?=
COUNT ?=
OVERSUBSCRIBE ?=
WERROR ?=
CUDA ?=
CUDA_ARCHITECTURES ?=
OLD ?=
NEW ?=
RUN ?=
BASE ?=
LIMIT ?=
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
export PRIMITIVE VARIANT SUITE THREADS RANKS OUT SANITIZE BUILD BUDGET RESUME OVERSUBSCRIBE WERROR
export CUDA CUDA_ARCHITECTURES OLD NEW RUN BASE LIMIT ONECCL
export HOSTS RATE LATENCY RANKS_PER_HOST HOSTFILE
export NODES NETWORK PROBLEM STEP_RUN SLOW SAMPLES
export MODES SEEDS EPOCHS TARGET BATCH BATCH_PER_RANK EVALUATE_EVERY USE DATA
export COUNT PART ARCHIVE
unexport SECONDS  # in bash it counts: a script gets it as an argument

PYTHON := .venv/bin/python
comma := ,
.DEFAULT_GOAL := help
.PHONY: help setup data build test fuzz faults mutate bench bench-network cost-model compare-modes simulate \
	simulate-training peers gpu gpu-bundle plots report results-site ab compare format lint clean

help: ## list the targets and the variables
	@echo 'make TARGET [VARIABLE=value …]'
	@echo
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 20
	@echo
	@echo 'Variables of bench, all optional:'
	@echo '  PRIMITIVE=matmul,max_pool   only these, and no training steps'
	@echo '  VARIANT=packed,open*        only these rungs'
	@echo '  SUITE=layers,squares        the problem sizes, see bench/suites (layers); quick: one small layer of each kind'
	@echo '  THREADS=1,2                 threads of each measurement (1 and all cores)'
	@echo '  RANKS=2,4                   MPI ranks of all_reduce (2 and all cores); more ranks than'
	@echo '                              cores only with OVERSUBSCRIBE=1'
	@echo '  BUDGET=0.5                  longest time for one row, in seconds'
	@echo '  OUT=FOLDER                  the run folder (results/local/<time>); RESUME=1 resumes it'
	@echo 'Variables of bench-network: SUITE VARIANT BUDGET OUT RESUME as above, and'
	@echo '  HOSTS=4                     network namespaces of this machine'
	@echo '  RATE=1gbit LATENCY=0ms      of the link of each host'
	@echo '  HOSTFILE=FILE               machines reached by ssh instead (docs/cluster.md)'
	@echo '  RANKS_PER_HOST=1,2          MPI ranks of each host, one count after another (1)'
	@echo 'Variables of cost-model: THREADS BUDGET RESUME as above, OUT=results/local/cost_model.json, and'
	@echo '  COUNT=200                   random products that it is fitted to, and twice as many convolutions'
	@echo 'Variables of compare-modes: THREADS OUT RESUME as above; with HOSTS or HOSTFILE the ranks are on hosts, and'
	@echo "  MODES='synchronous;ssp,bound=2'  modes of stepladder train, separated by ; (all; single is always one)"
	@echo '  NETWORK=mnist_cnn RANKS=4   several counts of ranks, such as 2,4, also show the scaling'
	@echo '  SEEDS=1,2,3,4,5 EPOCHS=10   every mode trains so long with every seed'
	@echo '  TARGET=0.97                 held-out accuracy whose time is compared'
	@echo '  EVALUATE_EVERY=1000         samples between two evaluations'
	@echo '  BATCH=64                    samples of an update; of each rank with BATCH_PER_RANK=1'
	@echo '  OPTIMIZER=adam LEARNING_RATE=0.001  instead of those of the network'
	@echo '  USE=best DATA=FOLDER        the rungs and the images, as for stepladder train'
	@echo 'Variables of simulate: VARIANT OUT RESUME as above, LIMIT=120 (CPU seconds of one simulation), and'
	@echo '  NODES=64,256,1024           numbers of nodes; one rank on each'
	@echo '  NETWORK=flat-10g,fattree-100g  or flat-1g; measured:RUN compares with a run of bench-network'
	@echo '  PROBLEM=mnist_cnn,alexnet   names in bench/suites/all_reduce.csv'
	@echo '  STEP_RUN=RUN                the run with the compute time of a training step'
	@echo 'Variables of simulate-training: NODES NETWORK PROBLEM STEP_RUN LIMIT OUT RESUME as above, and'
	@echo "  MODES='synchronous;downpour'  modes of stepladder train, separated by ;"
	@echo '  SLOW=none,permanent,passing  the slow rank; or RANK:FACTOR[:FROM:TO]'
	@echo '  SAMPLES=40000 BATCH=8       of a training, and of a step of one rank'
	@echo '  TARGET=0.85 USE=serial,...  accuracy whose time is shown, rungs'
	@echo 'Variables of peers: OUT as above, and'
	@echo '  NETWORK=mlp,mnist_cnn       networks of the training steps'
	@echo '  RANKS=2                     data-parallel steps over that many ranks instead'
	@echo '  PRIMITIVE=all_reduce        all_reduce in other MPI libraries, gloo and (ONECCL=1, 2 GB) oneCCL'
	@echo '                              instead, with SUITE (sweep) RANKS (2) VARIANT BUDGET as above'
	@echo 'Variables of report:'
	@echo '  RUN=results/local/<time>    the run; results/<machine> also rewrites the tables of the READMEs'
	@echo '  BASE=FOLDER                 an earlier run: ratios and verdicts for every row'
	@echo 'Variables of ab: PRIMITIVE VARIANT SUITE (quick) THREADS as above, and'
	@echo '  BASE=main                   a commit, which is built in build/ab, or the folder of another build'
	@echo '  LIMIT=120                   seconds in total; OUT keeps the repetitions'
	@echo 'Variables of fuzz:'
	@echo '  SECONDS=60                  in total'
	@echo '  TARGET=network,idx          only these of tests/fuzz'
	@echo 'Variables of gpu: PRIMITIVE VARIANT SUITE BUDGET RESUME as above, OUT on the command line, and'
	@echo '  PART=check                  correctness only, at most 4 minutes; measure: times, at most 7'
	@echo '  LIMIT=240                   seconds in total'
	@echo '  ARCHIVE=FILE.tar.gz         all that was written; OUT/gpu-run.tar.gz where the environment has OUT'
	@echo '  PRIMITIVE with the OUT of an earlier run measures that primitive again.'
	@echo "Variables of faults: FAULT='matmul*' (names of tests/faults), QUICK=1 (the cheap ones, without the floor)"
	@echo 'Variables of mutate, after make test:'
	@echo '  MUTANTS=200 SEED=1          how many are judged, and the seed of the draw'
	@echo "  FILES='harness/verify/*'    only these of the verifier, the statistics and compare"
	@echo 'Variables of every build: CUDA=ON compiles the CUDA rungs without a GPU too (AUTO),'
	@echo '  CUDA_ARCHITECTURES=90a, WERROR=ON, BUILD=FOLDER (build); of test: SANITIZE=address,undefined or thread'

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

mutate: setup ## change the verifier, the statistics and compare at random and expect that the tests notice
	@$(PYTHON) scripts/mutate.py --build "$$BUILD" --mutants "$(or $(MUTANTS),200)" --seed "$(or $(SEED),1)" \
	  $(if $(FILES),'$(FILES)')

bench: build ## verify and measure, draw the charts, write report.html, print the main results
	@scripts/bench.sh

bench-network: build ## measure all_reduce over TCP between hosts: network namespaces, or machines
	@scripts/bench_network.sh

cost-model: build ## fit the model that predicts the fast rungs of a layer, for --cost-model of step and train
	@scripts/cost_model.sh

compare-modes: build ## train a network in several modes: time to an accuracy, where the time goes
	@scripts/compare_modes.sh

simulate: setup ## simulate all_reduce and training steps on clusters of up to 1,024 nodes (SimGrid)
	@python3 scripts/simulate.py

simulate-training: setup ## train a small network in several modes on simulated clusters, with a slow rank
	@python3 scripts/simulate_training.py

peers: build ## measure the same training steps in PyTorch (installs it into .venv-peers)
	@scripts/peers.sh

# OUT is the run folder only where it stands on the command line; in the environment it is where the archive goes.
gpu: ## on a GPU machine: verify and measure the CUDA rungs beside PyTorch (PART=check, measure; OUT=FOLDER)
	@scripts/gpu.sh $(if $(filter command,$(origin OUT)),"$$OUT")

gpu-bundle: setup ## pack the program and libraries to take to a GPU machine: build/gpu-bundle
	@scripts/gpu_bundle.sh "$$BUILD/gpu-bundle" "$$BUILD/gpu-program"

plots: setup ## draw the charts of a run again (OUT=FOLDER, default the newest local run)
	@run=$${OUT:-$(lastword $(sort $(wildcard results/local/*/)))}; \
	 [ -n "$$run" ] || { echo 'make plots: no run under results/local; name one with OUT=FOLDER' >&2; exit 2; }; \
	 $(PYTHON) -m plots charts "$$run"

report: setup ## write the page of a run: RUN/report.html (BASE=FOLDER compares; a published run: the READMEs too)
	@[ -n "$$RUN" ] || { echo 'make report: name the run with RUN=FOLDER' >&2; exit 2; }
	@$(PYTHON) -m plots page "$$RUN" $${BASE:+--base "$$BASE"} --program "$$BUILD/stepladder"
	@if [ "$$(realpath "$$RUN/..")" = "$$(realpath results)" ]; then $(PYTHON) -m plots report "$$RUN"; fi

results-site: setup ## write the pages of all published runs and an index (OUT=FOLDER, default build/results-site)
	@$(PYTHON) -m plots site results "$${OUT:-$$BUILD/results-site}" --program "$$BUILD/stepladder"

ab: build ## two builds in turns, exit 1 on a slowdown (BASE=COMMIT or build folder)
	@[ -n "$$BASE" ] || { echo 'make ab: name a commit or a build folder with BASE=…' >&2; exit 2; }
	@$(PYTHON) scripts/ab.py --base "$$BASE" --program "$$BUILD/stepladder" --limit "$(or $(LIMIT),120)" \
	  $(if $(OUT),--out "$$OUT") -- $(subst $(comma), ,$(PRIMITIVE)) --suite "$(or $(SUITE),quick)" \
	  $(if $(VARIANT),--variant "$$VARIANT") $(if $(THREADS),--threads "$$THREADS")

compare: build ## compare two runs, exit 1 on a slowdown (OLD=FOLDER NEW=FOLDER)
	@[ -n "$$OLD" ] && [ -n "$$NEW" ] || { echo 'make compare: name two runs with OLD=FOLDER NEW=FOLDER' >&2; exit 2; }
	@"$$BUILD/stepladder" compare "$$OLD" "$$NEW"

format: ## format the C++ and CUDA files in place
	@scripts/setup.sh format
	@scripts/lint.sh format

lint: ## check format and clang-tidy; every finding is an error
	@scripts/setup.sh lint
	@scripts/lint.sh check

clean: ## remove the build; keep .venv and results
	@rm -rf build .pytest_cache
	@if [ -f "$$BUILD/CMakeCache.txt" ]; then rm -rf "$$BUILD"; fi
	@find plots tests scripts -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

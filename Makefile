# Every command of the project; each sets up what is missing first (setup/, docs/adr/0002).
# What a recipe's $(WITH) runs finds .venv, Java and Toxiproxy by its environment.

# A distribution's build of Python needs some 15 % less CPU than one compiled without profiles.
PYTHON ?= $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null \
	&& echo /usr/bin/python3 || echo python3)
PYTHON := $(PYTHON)
WITH := @$(PYTHON) -m setup
# Tests start many processes; without bytecode, each would compile the project again.
unexport PYTHONDONTWRITEBYTECODE

TARGET ?= processes
MUTANT ?=
SYSTEM ?= kafka
COVERAGE ?= 85
WORKERS ?= 2
COUNT ?=
DRAWN := lost-update:list-append write-skew:list-append long-fork:list-append stale-read:register \
	fifo-violation:fifo-queue

.DEFAULT_GOAL := help
.PHONY: help setup demo image test prove bench bench-lake bench-spark bench-porcupine bench-objects bench-isolation bench-zookeeper bench-partitions bench-beside-kafka adversarial pictures historic verdicts twins oracles hostile fuzz-frames lives ensembles same clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

setup: ## the locked environment, Java and Toxiproxy, where they are missing
	$(WITH)

demo: ## a real cluster under faults, judged by Spark (MUTANT=name TARGET=processes|containers SYSTEM=apache-kafka:3.9.1)
	$(WITH) faultline run examples/plans/demo.toml --target $(TARGET) --system $(SYSTEM) \
		--results results \
		$(addprefix --mutant ,$(MUTANT))

image: ## the images of TARGET=containers and of docker-compose.yml; needs a Docker engine
	$(WITH) python -m harness.cluster.containers.image

test: ## lint, types, import rules, and all tests with coverage
	$(WITH) ruff check
	$(WITH) ruff format --check
	$(WITH) mypy
	$(WITH) lint-imports --no-logo
	$(WITH) pytest -q -n $(WORKERS) --dist loadgroup -m "not prove" \
		--cov --cov-report=term:skip-covered --cov-fail-under=$(COVERAGE)

prove: ## planted bugs are found; a killed harness loses nothing; clusters of Spark find what inline finds
	$(WITH) pytest -q -m prove tests/scenarios tests/harness/app tests/checkers tests/sim tests/bench \
		tests/broker_impl/zookeeper/kazoo tests/broker_impl/console_tools tests/test_notebook.py

bench: ## what is measured, against named peers
	$(WITH) python -m bench

bench-lake: ## a lake of 500 simulated runs: SQL, and a planted slow-down that trends must find
	$(WITH) python -m bench.lake

bench-spark: ## histories of up to ten million operations, inline and on Spark (ARGS="--sizes 1e8 --kinds idempotent")
	$(WITH) python -m bench.spark $(ARGS)

bench-porcupine: ## linearizability next to Porcupine, on the same histories; needs Go (ARGS="--rounds 1")
	$(WITH) python -m bench.porcupine $(ARGS)

bench-objects: ## histories of objects of up to ten million operations, from Parquet (ARGS="--sizes 1e5 1e6")
	$(WITH) python -m bench.objects $(ARGS)

bench-isolation: ## transactions on lists, up to ten million, inline and on Spark (ARGS="--inline 1e5 1e6 --spark")
	$(WITH) python -m bench.isolation $(ARGS)

bench-zookeeper: ## ZooKeeper ensembles of this project and of Apache, in one run; needs Java (ARGS="--short")
	$(WITH) python -m bench.zookeeper $(ARGS)

bench-partitions: ## what up to 2,000 idle partitions cost (ARGS="--short --without-sessions")
	$(WITH) python -m bench.partitions $(ARGS)

bench-beside-kafka: ## this project's broker next to Apache Kafka 2.8.2, in one run; needs Java (ARGS="--short")
	$(WITH) python -m bench.beside_kafka $(ARGS)

adversarial: ## histories that are hard to judge: right verdicts or none, within steps and memory (ARGS="--memory 256")
	$(WITH) python -m bench.adversarial $(ARGS)

pictures: ## the pictures of docs/pictures.md, from examples/histories
	$(WITH) sh -c '$(foreach each,$(DRAWN),faultline check examples/histories/$(subst :,.edn --model ,$(each)) \
		--pictures docs/pictures; test $$? = 1 || exit 1;)'

historic: ## historic bugs of Kafka and ZooKeeper on the releases that had them; takes hours (RUNS=n seeds of each)
	$(WITH) python -m bench.historic --runs $(or $(RUNS),5)
	$(WITH) python -m bench.zookeeper_bugs

verdicts: ## 5,000 random correct histories, and 5,000 with corruptions (COUNT=n)
	$(WITH) python -m bench.verdicts --count $(or $(COUNT),5000)

twins: ## generated histories judged whole and in parts: the same findings (COUNT=n of each kind)
	@FAULTLINE_SEEDS=$(or $(COUNT),100) $(PYTHON) -m setup pytest -q -n $(WORKERS) tests/checkers/distributed

oracles: ## 50,000 small random histories of each data type, judged as by trying every order (COUNT=n)
	$(WITH) python -m bench.oracles --count $(or $(COUNT),50000)

hostile: ## 300 hostile inputs: histories, folders, plans, suites, options (COUNT=n, 0 for all)
	$(WITH) python -m bench.hostile --count $(or $(COUNT),300)

fuzz-frames: ## 100,000 mutated frames, before and after the authentication (COUNT=n; ARGS="--seed 7")
	$(WITH) python -m bench.frames --frames $(or $(COUNT),100000) $(ARGS)

ensembles: ## simulated ZooKeeper ensembles under faults, invariants between any two events (COUNT=n; ARGS="--voters 5 --observers 2")
	$(WITH) python -m bench.ensembles --count $(or $(COUNT),200) --workers $(WORKERS) $(ARGS)

lives: ## 20,000 random lives of a ZooKeeper's data directory: nothing acknowledged is lost (COUNT=n)
	$(WITH) python -m bench.lives --count $(or $(COUNT),20000)

same: ## simulations record, and checkers find in them, what they did before (tests/sim/same.json)
	$(WITH) python tests/sim/same.py

clean: ## remove what set-up and the tools made; results stay
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

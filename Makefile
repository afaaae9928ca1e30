# Every target makes what it needs: `make demo` on a bare checkout is enough. No root anywhere.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
BUILD ?= build
# native: the instruction set of this processor. Also all, or some of v2 v3 v4, separated by semicolons.
LEVELS ?= native
# Compiler warnings are errors in CI; a user's newer compiler may warn about what ours does not.
WERROR ?= OFF
# A worker keeps neighbours, which need the same libraries and fixtures, and takes from others when it
# is done: a quarter less time than dealing tests out one by one.
PYTEST_ARGS ?= -n auto --dist worksteal

# Tests start some hundred processes, and each would compile the modules that it imports: 0.3 s.
unexport PYTHONDONTWRITEBYTECODE

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
STAMPS := $(VENV)/.stamps
# Outside the virtual environment nobody sees the editable install, which would win over PYTHONPATH.
BASE_PYTHON = $$($(PY) -c 'import sys; print(sys._base_executable)')
SITE_PACKAGES = $$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
# $(call requirements,table,key): what pyproject.toml asks for there, without building the package.
requirements = $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))$(1))')

kernel_text := $(shell find backends tests benchmarks/wollemi_bench -name '*.cpp' -o -name '*.hpp' -o -name '*.cu')
# Only what the C++ is built or generated from: an editable install sees every other change by itself.
native_inputs := pyproject.toml benchmarks/pyproject.toml CMakeLists.txt $(shell find backends/omp backends/gpu -name '*.[ch]pp' -o -name 'generate*.py') \
	core/operation.py $(shell find backends/cpu backends/unified core/operations core/step solvers -name '*.hpp' -o -name '*.py')

cmake_option = --config-settings=cmake.define.$(1)
INSTALL = $(PIP) install --no-build-isolation --no-deps $(call cmake_option,WOLLEMI_WERROR=$(WERROR))

.PHONY: help develop demo test test-name test-all test-gpu petsc lint format sanitize fuzz fuzz-systems bench performance api wheel release-check notebooks site site-check clean

help:
	@echo 'make demo      solve a real system, print a table, draw convergence.png (4 to 5 minutes on two cores the first time)'
	@echo 'make test      every test this machine can run (PYTEST_ARGS=..., COVERAGE=--cov)'
	@echo 'make test-name NAME=fcg  the tests of one solver or preconditioner'
	@echo 'make test-all  the same with coverage and the slow tests that seldom find something: other GPU targets, SYCL kernels of GPUs'
	@echo 'make test-gpu  the tests that need a GPU, with the current Python (PYTHON=...) and no network (GPU_ARGS="-n 16")'
	@echo 'make petsc     NumPy 1 in build/petsc, for the tests with python3-petsc4py of Debian'
	@echo 'make lint      ruff, mypy, clang-format, the limits of vague words and the width of prose, changing nothing'
	@echo 'make format    ruff, clang-format and lines of prose, in place'
	@echo 'make sanitize  the omp tests under the address and undefined-behaviour sanitizers'
	@echo 'make fuzz      random calls on matrices, files, expressions, eigenvalue problems and batches, a minute each (SECONDS=600 SEED=7 SANITIZE=ON)'
	@echo 'make fuzz-systems  100,000 systems of random batches with bad members (ON=omp SYSTEMS=100000 EACH=1000 SEED=0 SANITIZE=ON)'
	@echo 'make bench     the benchmarks'
	@echo 'make performance  build/performance/measurements.md and its plots, from benchmarks/results'
	@echo 'make api       tests/api/public_names.txt: what is public, as of this version'
	@echo 'make develop   an editable install for this processor, with pytest (LEVELS=all builds every instruction set)'
	@echo 'make wheel     sdist, wheel and pure wheel (no native modules) in dist/; the wheel is installed and imported once'
	@echo 'make release-check  the wheel without a compiler, its size and libraries, the oldest NumPy, extras, aarch64, C++ for macOS and Windows, the site in a browser (RELEASE_ARGS="--quick --python python3.13")'
	@echo 'make notebooks  docs/notebooks, from the text in docs/tutorials, with every cell run'
	@echo 'make site      the site in build/site/html, with every tutorial and example run'
	@echo 'make site-check  the site in a browser: links, contrast, headings, search; screenshots in build/site/screenshots'
	@echo 'make clean     remove what was built, but not the virtual environment'

$(PY):
	@$(PYTHON) -m venv $(VENV)

# What a build needs lives in the environment: a build folder cannot outlive pip's own temporary one.
$(STAMPS)/build: pyproject.toml | $(PY)
	@mkdir -p $(STAMPS)
	@echo 'installing CMake, Ninja and pybind11 into $(VENV) ...'
	@$(PIP) install build cmake ninja $(call requirements,["build-system"]["requires"])
	@touch $@

$(STAMPS)/native: $(native_inputs) | $(STAMPS)/build
	@echo 'compiling the kernels for this processor: 4 to 5 minutes on two cores the first time ...'
	@$(PY) packaging/with_progress.py $(subst --quiet,--verbose,$(INSTALL)) --config-settings=build-dir=$(BUILD)/editable \
		$(call cmake_option,'WOLLEMI_NATIVE_LEVELS=$(LEVELS)') --editable .
	@touch $@

# The package is installed by then: these add the requirements of an extra. The benchmarks come last and without
# their own requirements, because pip would report each missing one as an error.
INSTALL_BENCHMARKS = $(PIP) install --no-build-isolation --no-deps --editable ./benchmarks

# Needs no package of this checkout, so that it is installed while the kernels are compiled. Python compiles the
# modules that a program imports; pip would compile all of them, which takes the compiler's time.
$(STAMPS)/demo: pyproject.toml | $(STAMPS)/build
	@echo 'installing NumPy, SciPy and matplotlib ...'
	@$(PIP) install --no-compile $(call requirements,["project"]["dependencies"]) \
		$(call requirements,["project"]["optional-dependencies"]["plot"])
	@touch $@

# Enough for pytest, but for a few files that import PyTorch. `make test` brings all libraries.
$(STAMPS)/develop: pyproject.toml | $(STAMPS)/build
	@echo 'installing NumPy, SciPy and pytest ...'
	@$(PIP) install $(call requirements,["project"]["dependencies"]) \
		$(call requirements,["project"]["optional-dependencies"]["pytest"])
	@$(INSTALL_BENCHMARKS)
	@touch $@

# The CPU build of torch; the newest would bring gigabytes of CUDA.
$(STAMPS)/test: pyproject.toml | $(STAMPS)/native
	@echo 'installing the requirements of the tests (2 GB, minutes the first time) ...'
	$(PIP) install 'wollemi[test]' torch==2.13.0
	$(INSTALL_BENCHMARKS)
	@touch $@

$(STAMPS)/bench: pyproject.toml | $(STAMPS)/native
	$(INSTALL_BENCHMARKS)
	$(PIP) install 'wollemi[bench]'
	@touch $@

$(STAMPS)/lint: pyproject.toml | $(PY)
	@mkdir -p $(STAMPS)
	$(PIP) install $(call requirements,["project"]["dependencies"]) \
		$(call requirements,["project"]["optional-dependencies"]["lint"])
	@touch $@

develop: $(STAMPS)/native $(STAMPS)/develop

demo: begun := $(shell date +%s)
demo: $(STAMPS)/build
	@$(MAKE) --no-print-directory --jobs 2 $(STAMPS)/native $(STAMPS)/demo
	@$(PY) examples/demo.py
	@echo "make demo took $$(( $$(date +%s) - $(begun) )) s in all; the next time takes seconds"

# Workers of pytest share the cores with the OpenMP of PyTorch and Numba, whose threads must sleep when they wait.
# Those of OpenBLAS spin after each small product, so that it has one: tests of eigenvalues take a third less time.
THREADS_OF_TESTS = OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1
test: $(STAMPS)/native $(STAMPS)/test
	$(THREADS_OF_TESTS) $(PY) -m pytest $(COVERAGE) $(PYTEST_ARGS)

# Ids have a name between brackets, hyphens, dots and slashes; pytest compares without case.
NAME_IN_IDS = [$(NAME)- or [$(NAME). or [$(NAME)] or -$(NAME)- or -$(NAME). or -$(NAME)] or .$(NAME)- or .$(NAME)] or /$(NAME).
# Tests that compare lists of all names.
OF_ALL_NAMES = test_captures or unknown_names or lists_every_public_solver
test-name: $(STAMPS)/native $(STAMPS)/test
	$(THREADS_OF_TESTS) $(PY) -m pytest $(PYTEST_ARGS) tests/core tests/backends tests/solvers tests/docs \
		-k "$(NAME_IN_IDS) or test_$(NAME).py or $(OF_ALL_NAMES)"

# Counting the lines that run takes about a fifth of the time of the tests.
test-all: export WOLLEMI_TEST_ALL = 1
test-all: COVERAGE = --cov --cov-report=term:skip-covered
test-all: test

# Debian's petsc4py was built for NumPy 1, which its tests put before the NumPy of the environment.
petsc: $(BUILD)/petsc/numpy/__init__.py

$(BUILD)/petsc/numpy/__init__.py: | $(PY)
	$(PIP) install --no-deps --target $(BUILD)/petsc 'numpy<2'

bench: $(STAMPS)/native $(STAMPS)/bench
	$(PY) -m benchmarks $(BENCH_ARGS)

performance: $(STAMPS)/native $(STAMPS)/bench
	$(VENV)/bin/wollemi bench report benchmarks/results/*.jsonl --markdown $(BUILD)/performance/measurements.md

api: $(STAMPS)/test
	$(PY) -m tests.api.record

test-gpu:
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --no-index --upgrade \
		--target $(BUILD)/gpu/site $(call cmake_option,'WOLLEMI_NATIVE_LEVELS=$(LEVELS)') \
		--config-settings=build-dir=$(BUILD)/gpu/cmake .
	$(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --no-index --upgrade \
		--target $(BUILD)/gpu/site ./benchmarks
	PYTHONPATH=$(abspath $(BUILD))/gpu/site $(PYTHON) -m pytest -m gpu \
		--dist worksteal $(GPU_ARGS)

lint: $(STAMPS)/lint
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(PY) packaging/check_words.py
	$(PY) -m website.wrap_prose --check
	$(VENV)/bin/clang-format --dry-run -Werror $(kernel_text)
	$(VENV)/bin/mypy

format: $(STAMPS)/lint
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/clang-format -i $(kernel_text)
	$(PY) -m website.wrap_prose

# libstdc++ is preloaded too: without it the sanitizer finds no __cxa_throw and ends at the first exception.
# Leaks are off, because the interpreter never frees what it interns.
SANITIZED := $(abspath $(BUILD))/sanitize/site
INSTALL_SANITIZED = $(INSTALL) --upgrade --target $(SANITIZED) --config-settings=build-dir=$(BUILD)/sanitize/cmake \
	--config-settings=install.strip=false $(call cmake_option,WOLLEMI_SANITIZE=ON) \
	$(call cmake_option,WOLLEMI_NATIVE_LEVELS=$(if $(filter x86_64,$(shell uname -m)),v3,generic)) .
PYTHON_SANITIZED = LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	PYTHONPATH=$(SANITIZED):$(SITE_PACKAGES):$(abspath benchmarks) $(BASE_PYTHON)

# The kernels of other executors are built elsewhere, and their runtimes do not load beside a sanitizer. How soon
# Ctrl-C is answered is not a question for a build that takes several times as long.
SANITIZE_TESTS ?= tests/backends $(addprefix --ignore=tests/backends/,cuda dpcpp gpu hip lockstep simt) \
	-k "omp and not a_long_call_is_interrupted"
sanitize: $(STAMPS)/test
	$(INSTALL_SANITIZED)
	$(PYTHON_SANITIZED) -m pytest -p no:cacheprovider $(SANITIZE_TESTS)

# Random calls on matrices, files, expressions, eigenvalue problems, batches, some seconds each: make fuzz SECONDS=600 SANITIZE=ON
SECONDS ?= 60
SEED ?= 0
SANITIZE ?= OFF
fuzz: $(STAMPS)/test
	$(if $(filter ON,$(SANITIZE)),$(INSTALL_SANITIZED))
	@status=0; for target in arrays files expressions eigenvalues scales least_squares preconditioners batches; do \
		$(if $(filter ON,$(SANITIZE)),$(PYTHON_SANITIZED),$(PY)) -m tests.fuzz $$target --seconds $(SECONDS) --seed $(SEED) \
			|| status=$$?; \
	done; exit $$status

# Large batches with bad members on one executor: make fuzz-systems ON=cuda SYSTEMS=100000 SEED=7
ON ?= omp
SYSTEMS ?= 100000
EACH ?= 1000
fuzz-systems: $(STAMPS)/test
	$(if $(filter ON,$(SANITIZE)),$(INSTALL_SANITIZED))
	$(if $(filter ON,$(SANITIZE)),$(PYTHON_SANITIZED),$(PY)) -m tests.fuzz.many_systems $(ON) $(SYSTEMS) --seed $(SEED) --each $(EACH)

$(STAMPS)/kernels: pyproject.toml | $(STAMPS)/build
	$(PIP) install $$($(PY) -c 'import tomllib; \
		settings = tomllib.load(open("pyproject.toml", "rb"))["tool"]["scikit-build"]["overrides"]; \
		print(*(line for one in settings for line in one.get("build", {}).get("requires", ())))')
	@touch $@

# The wheel is built from the sdist, so a file missing there shows here; so does kernel text missing in the wheel.
# gpu/*.cpp is compiled into a module.
runtime_text := find unified simt cpu gpu cuda dpcpp -name '*.[ch]pp' -not -path 'gpu/*.cpp' -o -name '*.cu' | sort
# pip unpacks an sdist into a folder of another name each time; a fixed one keeps what was compiled.
SDIST := $(BUILD)/sdist
# A wheel is for every processor, whatever the one here is, and carries kernels that NVRTC compiles here, which
# takes some fifteen minutes on two cores the first time: WHEEL_KERNELS= leaves them out.
WHEEL_LEVELS ?= all
WHEEL_KERNELS ?= sm_80;sm_90;sm_100
wheel: $(STAMPS)/build $(if $(WHEEL_KERNELS),$(STAMPS)/kernels)
	rm -rf dist $(BUILD)/wheel $(SDIST)
	$(PY) -m build --no-isolation --sdist --outdir dist
	$(PY) -m build --no-isolation --outdir dist benchmarks
	mkdir -p $(SDIST) && tar -x -f dist/wollemi-*.tar.gz -C $(SDIST) --strip-components=1
	WOLLEMI_CUDA_KERNELS='$(WHEEL_KERNELS)' $(PIP) wheel --no-build-isolation --no-deps --no-index --wheel-dir dist $(call cmake_option,WOLLEMI_WERROR=$(WERROR)) \
		$(call cmake_option,'WOLLEMI_NATIVE_LEVELS=$(WHEEL_LEVELS)') --config-settings=build-dir=$(abspath $(SDIST))/build/editable $(SDIST)
	$(PIP) install $(call requirements,["project"]["dependencies"])
	$(PIP) install --no-deps --target $(BUILD)/wheel dist/*.whl
	diff <(cd backends && $(runtime_text)) <(cd $(BUILD)/wheel/wollemi/backends && $(runtime_text))
	PYTHONPATH=$(abspath $(BUILD))/wheel:$(SITE_PACKAGES) $(BASE_PYTHON) -P -c 'import wollemi, wollemi_bench; print(wollemi.__file__)'
	WOLLEMI_PURE=1 $(PIP) wheel --no-build-isolation --no-deps --no-index --wheel-dir dist $(SDIST)

$(STAMPS)/docs: pyproject.toml | $(STAMPS)/native
	@echo 'installing the requirements of the site (150 MB) ...'
	$(PIP) install 'wollemi[docs]'
	$(INSTALL_BENCHMARKS)
	@touch $@

# Programs that need PyTorch or JAX are shown without their output where these are not installed.
notebooks: $(STAMPS)/native $(STAMPS)/docs
	$(PY) packaging/write_notebooks.py

site: $(STAMPS)/native $(STAMPS)/docs
	$(PY) -m website.build

$(STAMPS)/browser: pyproject.toml | $(STAMPS)/native
	$(PIP) install 'wollemi[browser]'
	@touch $@

# Chromium of the system, or: .venv/bin/playwright install chromium
site-check: site $(STAMPS)/browser
	$(PY) packaging/site_check.py $(SITE_ARGS)

# What is slow or needs a package index, and seldom breaks: before a release, and not in .ci/run.
release-check: $(STAMPS)/build $(STAMPS)/test
	test -e dist || $(MAKE) wheel
	$(PY) packaging/release_check.py $(RELEASE_ARGS)
	$(MAKE) site-check

clean:
	rm -rf $(BUILD) dist $(STAMPS)/native .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov

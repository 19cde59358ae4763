# make report       installs what is missing, builds, runs the studies on the simulator and some on real kernel code,
#                   and writes the page of all results; it has a first answer once the simulator is compiled
# make report-all   runs all studies on real kernel code and on the emulated board too
# make test         runs all lints, and all tests except the long ones
# make agreement    runs the long tests: every study, suite and calibration in full
# make bench        measures the simulator's speed, into build/bench.json
# make lint         runs the lints alone
# make fuzz         runs random programs on simulator and user-mode Linux until they differ;
#                   FUZZ='--class any --minutes 60' replaces its options
# make fuzz-inputs  tries hostile files and options until a command ends in more than one line;
#                   FUZZ_INPUTS=10000 is the number of each kind
# make chaos        interrupts commands by kills, full disks and the like at random moments;
#                   CHAOS='200 7' is the number of them, and the seed
# make docs         builds the documents as a site whose search works offline, build/docs/site/index.html;
#                   the playground is part of it
# make docs-generated  writes the reference pages, the live figures' pictures and the notebooks' output again
# make build        builds the program, .venv/bin/flashbed, and the agent
# make wheel        builds a wheel for this architecture into build/wheels (docs/guide/install.md)
# make wheels       builds wheels for x86_64 and aarch64, and an sdist, into build/wheels
# make playground   puts the whole stack into one page for a browser, build/playground/index.html
# make agents       builds the agent for boards of other architectures; make sql-agents: with SQLite, for all
#
# Needs Python 3.11, Rust and a Debian-like system, and root (or sudo) only to install packages with apt. Without root,
# one line names what cannot be installed, and the rest continues.

PYTHON ?= python3
BIN := .venv/bin
DOCS_VENV := build/docs/venv
STAMPS := build/stamps
LOGS := build/logs
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export CARGO_TERM_PROGRESS_WHEN := never
# Compiled once and never again: what a second compilation would need is not written.
export CARGO_INCREMENTAL := 0
# Python's bytecode is kept, so that a command need not compile flashbed each time.
unexport PYTHONDONTWRITEBYTECODE

RUST := $(shell find sim common image bind -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
C := $(shell find agent kernel tests experiments -name '*.[ch]')
AGENT_PYTHON = $(BIN)/python
AGENT_NEEDS = $(STAMPS)/packages

# Of the agents for boards, `make test` compiles the one that is least like this machine's; `make agreement` tests all.
SAMPLE_AGENT := build/agent/flashbed-agent-mipsel
# Tests also wait for emulated boards and for browsers, so two more run than there are processors.
WORKERS := $(shell expr $$(nproc) + 2)

KERNELS :=
FUZZ ?= --cases 0
FUZZ_INPUTS ?= 2000

.PHONY: playground wheel wheels report report-all report-sim report-kernel test agreement system sim-test guest-sqlite bench fuzz fuzz-inputs chaos lint build clean qemu uml chromium ssh qemu-user
.PHONY: docs docs-generated docs-packages
.PHONY: lost-wheel uml-kernel exec-kernel qemu-tools uml-tools cppcheck strace tools agents sql-agents
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := report
include agent/agent.mk

# Finished parts of the report. A part is made again when one of its inputs is newer, so a second run only prints the
# page's path.
MADE := results/.made
STUDIES := readahead methodology sqlite
PROGRAM_SHOWN := programs/git
KERNEL_SHOWN := readahead/figure3 methodology/layout sqlite/levels
REPORT_NEEDS := $(STAMPS)/program $(shell find python boards experiments policies -name '*.py' -o -name '*.toml' -o -name '*.parquet')
step = echo "== report, step $(1) of 4: $(2)"

# The simulator comes first, because its answers need nothing else. The kernel is built at the same time; the agents of
# boards are not built.
report: tools
	@[ -f $(STAMPS)/program ] || $(call step,1,Python packages and the simulator (two or three minutes the first time))
	@$(MAKE) -j2 $(STAMPS)/program
	@$(MAKE) -j2 report-sim report-kernel
	@if [ -f $(MADE)/kernel ]; then $(MAKE) $(MADE)/uml; \
	  else echo "make: user-mode Linux is missing ($(LOGS)/report-kernel.log): the page shows the simulator only" >&2; fi
	@$(BIN)/flashbed report

report-all: report
	@echo "== next: 4,000 cases on user-mode Linux; then QEMU, a cross compiler, a kernel and 1,200 cases on the emulated board"
	@echo "== about an hour the first time on two cores; after an interruption the same command continues"
	@$(MAKE) qemu
	@for study in $(STUDIES); do $(BIN)/flashbed reproduce $$study --on uml,emulator || exit 1; done
	@$(BIN)/flashbed report

report-sim: $(addprefix $(MADE)/sim-,$(STUDIES))

$(MADE)/first: $(REPORT_NEEDS)
	@$(call step,2,a first answer: a program and Figure 3 on the simulator; user-mode Linux is built meanwhile)
	@mkdir -p $(MADE)
	@$(BIN)/flashbed run $(PROGRAM_SHOWN) --on sim >/dev/null
	@$(BIN)/flashbed report results/$(PROGRAM_SHOWN) >/dev/null
	@$(BIN)/flashbed run readahead/figure3 --on sim >/dev/null
	@$(BIN)/flashbed report results/readahead/figure3 >/dev/null
	@echo "first answer: $$($(BIN)/flashbed report)"
	@touch $@

# One study after another: each uses all processors.
$(MADE)/sim-readahead: $(MADE)/first
$(MADE)/sim-methodology: $(MADE)/sim-readahead
$(MADE)/sim-sqlite: $(MADE)/sim-methodology
$(addprefix $(MADE)/sim-,$(STUDIES)): $(MADE)/sim-%:
	@$(call step,3,the study $* on the simulator; it is one of: $(STUDIES))
	@$(BIN)/flashbed reproduce $* --on sim
	@touch $@

report-kernel: $(MADE)/kernel

# Runs at the same time as the simulator, so with a lower priority.
$(MADE)/kernel: $(STAMPS)/program $(wildcard kernel/*/*.[ch] kernel/uml/*) build/agent/flashbed-agent-host
	@mkdir -p $(MADE) $(LOGS)
	@{ $(MAKE) uml-tools; $(MAKE) build/agent/flashbed-agent-sql-host || $(call no_sqlite,uml); \
	  nice -n 10 $(BIN)/flashbed prepare --on uml && touch $@; } >$(LOGS)/report-kernel.log 2>&1 || true

# One quick experiment of each study. report-all runs the others.
$(MADE)/uml: $(addprefix $(MADE)/sim-,$(STUDIES)) $(MADE)/kernel
	@$(call step,4,the same on real kernel code: $(PROGRAM_SHOWN) $(KERNEL_SHOWN))
	@for one in $(PROGRAM_SHOWN) $(KERNEL_SHOWN); do $(BIN)/flashbed run $$one --on uml >/dev/null || exit 1; done
	@for one in $(PROGRAM_SHOWN) $(STUDIES); do $(BIN)/flashbed report results/$$one || exit 1; done
	@touch $@

build: tools $(STAMPS)/program $(AGENTS)

# Packages are installed one after another, because apt locks. Then everything is compiled, four targets at a time: kernels
# and Rust have phases that use one processor only (downloading, unpacking, linking), and cargo's wait for each other.
# KERNELS: all kernels that tests need, because a test's time does not suffice to build one.
test: system
	@$(MAKE) -j4 KERNELS=--stacks build sim-test playground docs-packages guest-sqlite $(SAMPLE_AGENT) uml-kernel exec-kernel lint
	@$(MAKE) qemu uml
	@echo "== all other tests" && $(BIN)/python -m pytest --durations=120 -n $(WORKERS) --dist loadfile --no-loadscope-reorder

agreement: build agents qemu uml $(STAMPS)/test-tools
	@$(BIN)/python -m pytest --long -m "long or sampled" -n auto --dist loadfile --no-loadscope-reorder

system: tools chromium ssh strace cppcheck qemu-user qemu-tools uml-tools

sim-test: tools
	@echo "== simulator's tests" && MAKEFLAGS= cargo test --quiet -p flashbed-sim -p flashbed-common -p flashbed-image

lint: build $(STAMPS)/test-tools cppcheck
	@echo "== lints"
	@cargo fmt --all --check
	@cargo clippy --quiet --workspace --all-targets -- -D warnings
	@$(BIN)/ruff check --quiet python tests docs policies
	@$(BIN)/ruff format --quiet --check python tests docs policies
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m mypy.stubtest --concise --mypy-config-file bind/stubtest.ini flashbed._sim
	@$(BIN)/clang-format --dry-run -Werror $(C)
	@page/lint.sh
	@! command -v cppcheck >/dev/null || cppcheck --quiet --std=c99 --enable=warning,performance,portability \
	  --inline-suppr --suppress='unknownMacro:kernel/uml/programs/*' --error-exitcode=1 -Iagent $(C)

fuzz: build
	@$(BIN)/flashbed fuzz $(FUZZ)

fuzz-inputs: build $(STAMPS)/test-tools
	@FLASHBED_FUZZ_EXAMPLES=$(FUZZ_INPUTS) $(BIN)/python -m pytest -q -n auto --dist load tests/hostile

chaos: build uml $(STAMPS)/test-tools
	@FLASHBED_CHAOS=$(or $(word 1,$(CHAOS)),100) FLASHBED_CHAOS_SEED=$(or $(word 2,$(CHAOS)),1) $(BIN)/python -m pytest tests/chaos

# zig links against the C library of 2014, so the wheel runs on any later system. `pip wheel .` makes one for this system.
pip_wheel = PATH="$(CURDIR)/$(BIN):$$PATH" MATURIN_PEP517_ARGS="--zig --compatibility manylinux2014 $(1)" \
  $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheels .

wheel: $(STAMPS)/wheel
	@ls build/wheels/*.whl

# What a wheel is made of. cargo keeps what it compiled, so a change of Python alone compiles nothing again.
WHEEL_NEEDS := $(RUST) pyproject.toml bind/wheel_backend.py $(shell find python boards experiments policies agent kernel -type f \
  ! -path '*/__pycache__/*' ! -path 'python/flashbed/data/*' ! -name '*.so' ! -name '*.o' ! -name '.*')

$(STAMPS)/wheel: $(WHEEL_NEEDS) $(STAMPS)/packages $(if $(wildcard build/wheels/*.whl),,lost-wheel) | tools
	@echo "building a wheel: compiling the simulator with every optimisation (four to seven minutes the first time)"
	@mkdir -p build/wheels
	@$(call pip_wheel,)
	@touch $@

lost-wheel:

# rustup has Rust's library for the other architecture; a distribution's Rust may lack it.
wheels: tools $(STAMPS)/packages
	@mkdir -p build/wheels
	@for target in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do \
	  ! command -v rustup >/dev/null || rustup --quiet target add $$target || exit 1; \
	  if [ -d "$$(rustc --print target-libdir --target $$target)" ]; then \
	    $(call pip_wheel,--target $$target) || exit 1; \
	  else echo "make: Rust's library for $$target is missing: no wheel for it" >&2; fi; \
	done
	@$(BIN)/maturin sdist --out build/wheels
	@ls build/wheels

bench: tools
	@mkdir -p build
	@FLASHBED_BENCH=$(CURDIR)/build/bench.json cargo bench --quiet -p flashbed-sim --bench stack

playground: $(STAMPS)/program
	@page/build.sh

# Sphinx has a venv of its own, so that the program's stays small. A warning, such as a link that leads nowhere, is an error.
docs: docs-packages playground
	@echo "== documents"
	@$(DOCS_VENV)/bin/sphinx-build -q -W --keep-going -c docs/site -d build/docs/doctrees . build/docs/site
	@echo build/docs/site/index.html

docs-generated: build
	@$(BIN)/python -m docs.generate

docs-packages: $(STAMPS)/docs-packages

clean:
	@rm -rf build target .venv python/flashbed/_sim.*.so

# Programs that must be installed already.
tools:
	@command -v cargo >/dev/null || { echo "make: Rust is missing: install it with rustup (rust-lang.org), version 1.85 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: $(PYTHON) is not Python 3.11 or later; make PYTHON=... names another" >&2; exit 1; }

# apt as root or through sudo; `sudo -n` without a terminal, where a password cannot be typed.
define apt_install
mkdir -p $(LOGS); \
if [ "$$(id -u)" = 0 ]; then as=""; elif [ -t 0 ]; then as="sudo"; else as="sudo -n"; fi; \
if command -v apt-get >/dev/null && { [ -z "$$as" ] || command -v sudo >/dev/null; }; then \
  echo "installing $(1) with apt" >&2; \
  export DEBIAN_FRONTEND=noninteractive; \
  $$as apt-get install -y -q --no-install-recommends $(1) >$(LOGS)/apt-$(1).log 2>&1 || \
  { $$as apt-get update -q >>$(LOGS)/apt-$(1).log 2>&1; $$as apt-get install -y -q --no-install-recommends $(1) >>$(LOGS)/apt-$(1).log 2>&1; }; \
else false; fi
endef

no_sqlite = echo "make: SQLite could not be fetched or compiled ($(LOGS)/sqlite.log): SQL statements will not run on $(1)" >&2

# `qemu` and `uml` make these one by one if this fails.
guest-sqlite: $(STAMPS)/packages
	@$(MAKE) build/agent/flashbed-agent-sql-armv7 build/agent/flashbed-agent-sql-host || true

# Each of these installs only what is missing, and names in one line what it could not install.
qemu-tools:
	@command -v qemu-system-arm >/dev/null || { $(call apt_install,qemu-system-arm); } || \
	  echo "make: qemu-system-arm is missing and could not be installed (apt needs root): the emulator will not be measured" >&2
	@command -v arm-linux-gnueabihf-gcc >/dev/null || { $(call apt_install,gcc-arm-linux-gnueabihf); } || \
	  echo "make: gcc-arm-linux-gnueabihf is missing and could not be installed (apt needs root): the emulator will not be measured" >&2

qemu: build qemu-tools
	@$(MAKE) build/agent/flashbed-agent-sql-armv7 || $(call no_sqlite,emulator)
	@$(BIN)/flashbed prepare --on emulator || true

uml-tools:
	@for tool in flex bison bc; do command -v $$tool >/dev/null || { $(call apt_install,$$tool); } || \
	  echo "make: $$tool is missing and could not be installed (apt needs root): user-mode Linux will not be measured" >&2; done

uml: build uml-tools
	@$(MAKE) build/agent/flashbed-agent-sql-host || $(call no_sqlite,uml)
	@$(BIN)/flashbed prepare --on uml,exec || true

uml-kernel: build uml-tools
	@$(BIN)/flashbed prepare --on uml $(KERNELS) || true

exec-kernel: build uml-tools
	@$(BIN)/flashbed prepare --on exec $(KERNELS) || true

chromium:
	@command -v chromium >/dev/null || { $(call apt_install,chromium); } || \
	  echo "make: chromium is missing and could not be installed (apt needs root): the tests of the report in a browser are skipped" >&2

cppcheck:
	@command -v cppcheck >/dev/null || { $(call apt_install,cppcheck); } || \
	  echo "make: cppcheck is missing and could not be installed (apt needs root): the lints leave it out" >&2

qemu-user:
	@command -v qemu-mipsel >/dev/null || { $(call apt_install,qemu-user); } || \
	  echo "make: qemu-user is missing and could not be installed (apt needs root): the tests of boards' agents are skipped" >&2

strace:
	@command -v strace >/dev/null || { $(call apt_install,strace); } || \
	  echo "make: strace is missing and could not be installed (apt needs root): the recorder is not compared with it" >&2

ssh:
	@command -v ssh >/dev/null || { $(call apt_install,openssh-client); } || \
	  echo "make: ssh is missing and could not be installed (apt needs root): the tests that reach a board over ssh are skipped" >&2

# Debian's Python comes without ensurepip; any installed pip can fill an empty environment.
.venv/bin/python $(DOCS_VENV)/bin/python: VENV = $(@:/bin/python=)
.venv/bin/python $(DOCS_VENV)/bin/python:
	@echo "making $(VENV)"
	@mkdir -p $(LOGS)
	@$(PYTHON) -m venv $(VENV) >$(LOGS)/venv.log 2>&1 || \
	  { rm -rf $(VENV); { $(call apt_install,python3-venv); } && $(PYTHON) -m venv $(VENV) >>$(LOGS)/venv.log 2>&1; } || \
	  { rm -rf $(VENV); $(PYTHON) -m venv --without-pip $(VENV) && $(PYTHON) -m pip --python $@ install --quiet pip; } >>$(LOGS)/venv.log 2>&1 || \
	  { rm -rf $(VENV); echo "make: python3-venv is missing and could not be installed (apt needs root): apt-get install python3-venv" >&2; exit 1; }

# maturin comes first: it compiles the simulator while pip fetches the other packages.
$(STAMPS)/maturin: requirements.txt | .venv/bin/python
	@mkdir -p $(STAMPS)
	@$(BIN)/python -m pip install --quiet $$(grep '^maturin==' requirements.txt)
	@touch $@

$(STAMPS)/packages: requirements.txt $(STAMPS)/maturin
	@echo "installing Python packages"
	@$(BIN)/python -m pip install --quiet -r requirements.txt
	@touch $@

# After the program, because maturin installs into the same folder.
$(STAMPS)/test-tools: requirements-test.txt $(STAMPS)/packages | $(STAMPS)/program
	@$(BIN)/python -m pip install --quiet -r requirements-test.txt
	@touch $@

$(STAMPS)/docs-packages: requirements-docs.txt | $(DOCS_VENV)/bin/python
	@echo "installing what builds the documents"
	@mkdir -p $(STAMPS)
	@$(DOCS_VENV)/bin/python -m pip install --quiet -r requirements-docs.txt
	@touch $@

maturin = VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin $(1) --profile checkout >$(LOGS)/maturin.log 2>&1 || \
  { cat $(LOGS)/maturin.log >&2; exit 1; }

$(STAMPS)/compiled: $(RUST) pyproject.toml $(STAMPS)/maturin
	@echo "compiling the simulator (two or three minutes the first time)"
	@mkdir -p $(LOGS)
	@$(call maturin,build --out build/compiled)
	@touch $@

# maturin finds everything compiled and installs it in a second.
$(STAMPS)/program: $(STAMPS)/packages $(STAMPS)/compiled
	@$(call maturin,develop)
	@$(BIN)/python -m compileall -q python
	@touch $@

agents: $(AGENTS) $(BOARD_AGENTS)

sql-agents: $(SQL_AGENTS)

# ziglang, a Python package, compiles them.
$(AGENTS) $(BOARD_AGENTS): requirements.txt | $(STAMPS)/packages

# make report   installs what is missing, builds, runs the experiments, ends with the path of the report
# make test     all lints and all tests
# make bench    speed of the simulator, into build/bench.json
# make lint     the lints alone
# make fuzz     random programs on simulator and user-mode Linux until they differ; FUZZ='--class any --minutes 60' says otherwise
# make build    the program, .venv/bin/flashbed, and the agent
#
# Needs Python 3.11, Rust and a Debian-like system; root (or sudo) only to install packages with apt. Without root, what
# cannot be installed is said in one line and the rest goes on.

PYTHON ?= python3
BIN := .venv/bin
STAMPS := build/stamps
LOGS := build/logs
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export CARGO_TERM_PROGRESS_WHEN := never

RUST := $(shell find sim bind -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
AGENT := $(wildcard agent/*.c agent/*.h)
# -static runs on any board; the host's own agent is what the tests talk to.
AGENT_FLAGS := -std=c99 -O2 -Wall -Wextra -Werror -static -s
AGENTS := build/agent/flashbed-agent-host build/agent/flashbed-agent-armv7

FUZZ ?= --cases 0

.PHONY: report test bench fuzz lint build clean qemu uml chromium tools
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

report: build qemu uml
	@$(BIN)/flashbed reproduce readahead --on sim,uml,emulator

build: tools $(STAMPS)/program $(AGENTS)

test: lint chromium qemu uml
	@echo "== simulator's tests" && cargo test --quiet -p flashbed-sim
	@echo "== all other tests" && $(BIN)/python -m pytest

lint: build $(STAMPS)/test-tools
	@echo "== lints"
	@cargo fmt --all --check
	@cargo clippy --quiet --workspace --all-targets -- -D warnings
	@$(BIN)/ruff check --quiet python tests
	@$(BIN)/ruff format --quiet --check python tests
	@$(BIN)/mypy --no-error-summary

fuzz: build
	@$(BIN)/flashbed fuzz $(FUZZ)

bench: tools
	@mkdir -p build
	@FLASHBED_BENCH=$(CURDIR)/build/bench.json cargo bench --quiet -p flashbed-sim --bench stack

clean:
	@rm -rf build target .venv python/flashbed/_sim.*.so

# What has to be there already.
tools:
	@command -v cargo >/dev/null || { echo "make: Rust is missing: install it with rustup (rust-lang.org), version 1.85 or later" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "make: $(PYTHON) is not Python 3.11 or later; make PYTHON=... names another" >&2; exit 1; }

# apt, as root or through sudo; `sudo -n` where nobody could type a password.
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

# Each installs only what is missing, and says in one line what could not be.
qemu: build
	@command -v qemu-system-arm >/dev/null || { $(call apt_install,qemu-system-arm); } || \
	  echo "make: qemu-system-arm is missing and could not be installed (apt needs root): the emulator will not be measured" >&2
	@command -v arm-linux-gnueabihf-gcc >/dev/null || { $(call apt_install,gcc-arm-linux-gnueabihf); } || \
	  echo "make: gcc-arm-linux-gnueabihf is missing and could not be installed (apt needs root): the emulator will not be measured" >&2
	@$(BIN)/flashbed prepare --on emulator || true

uml: build
	@for tool in flex bison bc; do command -v $$tool >/dev/null || { $(call apt_install,$$tool); } || \
	  echo "make: $$tool is missing and could not be installed (apt needs root): user-mode Linux will not be measured" >&2; done
	@$(BIN)/flashbed prepare --on uml || true

chromium:
	@command -v chromium >/dev/null || { $(call apt_install,chromium); } || \
	  echo "make: chromium is missing and could not be installed (apt needs root): the tests of the report in a browser are skipped" >&2

# Debian's Python comes without ensurepip; pip can fill an empty environment if there is a pip at all.
.venv/bin/python:
	@echo "making .venv"
	@mkdir -p $(LOGS)
	@$(PYTHON) -m venv .venv >$(LOGS)/venv.log 2>&1 || \
	  { rm -rf .venv; { $(call apt_install,python3-venv); } && $(PYTHON) -m venv .venv >>$(LOGS)/venv.log 2>&1; } || \
	  { rm -rf .venv; $(PYTHON) -m venv --without-pip .venv && $(PYTHON) -m pip --python .venv/bin/python install --quiet pip; } >>$(LOGS)/venv.log 2>&1 || \
	  { rm -rf .venv; echo "make: python3-venv is missing and could not be installed (apt needs root): apt-get install python3-venv" >&2; exit 1; }

$(STAMPS)/packages: requirements.txt | .venv/bin/python
	@echo "installing Python packages"
	@mkdir -p $(STAMPS)
	@$(BIN)/python -m pip install --quiet -r requirements.txt
	@touch $@

$(STAMPS)/test-tools: requirements-test.txt $(STAMPS)/packages
	@$(BIN)/python -m pip install --quiet -r requirements-test.txt
	@touch $@

$(STAMPS)/program: $(STAMPS)/packages $(RUST) pyproject.toml
	@echo "compiling the simulator (about a minute the first time)"
	@mkdir -p $(LOGS)
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/maturin develop --release >$(LOGS)/maturin.log 2>&1 || \
	  { cat $(LOGS)/maturin.log >&2; exit 1; }
	@touch $@

# zig cross-compiles C for every board architecture, comes from the Python index, and so needs no root.
build/agent/flashbed-agent-%: $(AGENT) Makefile $(STAMPS)/packages
	@echo "compiling the agent for $*"
	@mkdir -p build/agent
	@$(BIN)/python -m ziglang cc $(AGENT_FLAGS) $(AGENT_TARGET_$*) -o $@ $(filter %.c,$(AGENT))

# The host's agent is also /init of user-mode Linux, which keeps no vector registers but the baseline's over a page fault: a C library that
# copies with wider ones finds zeros in what it copied.
AGENT_TARGET_host := -target $(shell uname -m)-linux-musl -mcpu=baseline
AGENT_TARGET_armv7 := -target arm-linux-musleabihf -mcpu=generic+v7a

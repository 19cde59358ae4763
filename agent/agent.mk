# How the agents and the SQLite in some of them are compiled. The Makefile of the checkout includes this; a wheel has it beside the
# agent's sources and runs it alone (python/flashbed/targets/guest/agent_build.py), in the folder above agent/:
#
#   make -f agent/agent.mk BUILD=FOLDER AGENT_PYTHON=python FOLDER/agent/flashbed-agent-host
#
# BUILD is where files are made. HOST_CC names a compiler of this machine, for this machine's agent. Without it ziglang, a package of
# Python, compiles for every architecture; AGENT_NEEDS is what has to be made first. The times of the emulated board are calibrated with that one.

BUILD ?= build
LOGS ?= $(BUILD)/logs
AGENT_PYTHON ?= python3
PYTHON ?= python3
AGENT := $(filter-out agent/sql/%.c,$(wildcard agent/*.[ch] agent/*/*.[ch]))
AGENT_SQL := agent/sql/sql.c agent/sql/syscalls.c
# -static runs on any board; the host's own agent is what the tests talk to.
AGENT_FLAGS := -std=c99 -O2 -Wall -Wextra -static -s -Iagent
# The first two are those of `make build`, the others are for boards that are reached over ssh.
AGENTS := $(addprefix $(BUILD)/agent/flashbed-agent-,host armv7)
BOARD_AGENTS := $(addprefix $(BUILD)/agent/flashbed-agent-,armv5 aarch64 mipsel riscv64 x86_64)
# The same with SQLite in it, for programs that have statements; `make uml` builds the host's, `make qemu` armv7's.
SQL_AGENTS := $(subst agent-,agent-sql-,$(AGENTS) $(BOARD_AGENTS))

ifdef HOST_CC
AGENT_CC := $(HOST_CC)
else
# zig cross-compiles C for every board architecture, comes from the Python index, and so needs no root. The first time it compiles its C
# library as well, half a minute for each architecture.
AGENT_CC := $(AGENT_PYTHON) -m ziglang cc
AGENT_FLAGS += -Werror
# The host's agent is also /init of user-mode Linux, which keeps no vector registers but the baseline's over a page fault: a C library that
# copies with wider ones finds zeros in what it copied. agent/main.c does the same for glibc.
AGENT_TARGET_host := -target $(shell uname -m)-linux-musl -mcpu=baseline
AGENT_TARGET_armv7 := -target arm-linux-musleabihf -mcpu=generic+v7a
# The least of each architecture. armv5 runs ARMv6 boards as well; neither it nor mipsel needs a floating-point unit.
AGENT_TARGET_armv5 := -target arm-linux-musleabi -mcpu=arm926ej_s
AGENT_TARGET_aarch64 := -target aarch64-linux-musl
AGENT_TARGET_mipsel := -target mipsel-linux-musleabi -mcpu=mips32
AGENT_TARGET_riscv64 := -target riscv64-linux-musl
AGENT_TARGET_x86_64 := -target x86_64-linux-musl -mcpu=baseline
endif

.DELETE_ON_ERROR:

$(AGENTS) $(BOARD_AGENTS): $(BUILD)/agent/flashbed-agent-%: $(AGENT) agent/sql/none.c agent/agent.mk | $(AGENT_NEEDS)
	@echo "compiling the agent for $*"
	@mkdir -p $(BUILD)/agent
	@$(AGENT_CC) $(AGENT_FLAGS) $(AGENT_TARGET_$*) -o $@ $(filter %.c,$(AGENT)) agent/sql/none.c

$(SQL_AGENTS): $(BUILD)/agent/flashbed-agent-sql-%: $(AGENT) $(AGENT_SQL) $(BUILD)/sqlite/sqlite3-%.o agent/agent.mk | $(AGENT_NEEDS)
	@echo "compiling the agent with SQLite for $*"
	@mkdir -p $(BUILD)/agent
	@$(AGENT_CC) $(AGENT_FLAGS) $(AGENT_TARGET_$*) -isystem $(BUILD)/sqlite -o $@ \
	  $(filter %.c,$(AGENT) $(AGENT_SQL)) $(BUILD)/sqlite/sqlite3-$*.o

# Built with its defaults, but: it can load nothing, reads long records through its page cache as 3.7 did, and its fdatasync, which is all
# its syncs, is the agent's (agent/sql/syscalls.c).
SQLITE_FLAGS := -O2 -DHAVE_FDATASYNC=1 -Dfdatasync=board_fdatasync -DSQLITE_OMIT_LOAD_EXTENSION -DSQLITE_DIRECT_OVERFLOW_READ=0

$(BUILD)/sqlite/sqlite3-%.o: $(BUILD)/sqlite/sqlite3.c agent/agent.mk | $(AGENT_NEEDS)
	@echo "compiling SQLite for $* (half a minute)"
	@mkdir -p $(LOGS)
	@$(AGENT_CC) $(SQLITE_FLAGS) $(AGENT_TARGET_$*) -c $< -o $@ >$(LOGS)/sqlite.log 2>&1

# SQLite's amalgamation is in the source of a Rust package, whose version and sum agent/sql/Cargo.lock names; no Rust is compiled.
$(BUILD)/sqlite/sqlite3.c: agent/sql/Cargo.toml agent/sql/Cargo.lock
	@echo "fetching SQLite"
	@mkdir -p $(BUILD)/sqlite $(LOGS)
	@cargo metadata --quiet --locked --format-version 1 --manifest-path agent/sql/Cargo.toml >$(BUILD)/sqlite/packages.json 2>$(LOGS)/sqlite.log
	@$(PYTHON) -c "$$SQLITE_SOURCE" $(BUILD)/sqlite/packages.json $(BUILD)/sqlite

define SQLITE_SOURCE
import json, pathlib, shutil, sys
packages = json.load(open(sys.argv[1]))["packages"]
(manifest,) = (p["manifest_path"] for p in packages if p["name"] == "libsqlite3-sys")
for name in ("sqlite3.h", "sqlite3.c"):
    shutil.copy(pathlib.Path(manifest).parent / "sqlite3" / name, sys.argv[2])
endef
export SQLITE_SOURCE

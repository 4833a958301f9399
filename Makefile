# Short commands for CMake. CMakePresets.json defines the presets. Output goes to build/<preset>.
#
#   make              release build: build/release/bjepa and libbranchjepa
#   make test         release, double, address+undefined and thread sanitizer suites
#   make test-quick   the release suite only
#   make test-PRESET  one complete suite: release, debug, asan, tsan, double
#   make test-long    the tests that train for minutes, for example the numbers of the README
#   make demo         a first result, needs no data
#   make bench        timings on this machine, with the Python peers if they are installed
#   make install      PREFIX=/usr/local DESTDIR=
#   make coverage     line coverage of the test suite
#   make fuzz         TARGET=parquet SECONDS=600: one parser with libFuzzer (tests/fuzz/fuzz_*.c)
#   make fuzz-all     SECONDS=600: every parser in turn, for that time each
#   make torture      N=1: kills, failing calls and damaged files; prints a table (docs/RELIABILITY.md)
#   make format       clang-format over the C files
#   make clean        remove build/
#
# JOBS= is the number of parallel compilers and tests, THREADS= the number of threads of a benchmark.

MAKEFLAGS += --no-print-directory

JOBS ?= $(shell nproc)
THREADS ?= 2
PREFIX ?= /usr/local
TARGET ?= parquet
SECONDS ?= 600
N ?= 1

PRESETS := release debug asan tsan double coverage
BJEPA := build/release/bjepa
PEERS := .venv/bin/python

SAY_SKIPPED := [ -x $(PEERS) ] || echo "Skipped: comparisons with Python peers (peer_*);" \
    "scripts/install_peers.sh installs them."

.PHONY: all deps test test-quick test-long demo bench install coverage fuzz fuzz-all torture format
.PHONY: clean
.PHONY: $(PRESETS:%=build-%) $(PRESETS:%=test-%)
.NOTPARALLEL:

all: build-release

# Installs missing packages. Returns immediately if there are none.
deps:
	@scripts/install_deps.sh build

$(PRESETS:%=build-%): build-%: deps
	cmake --preset $*
	cmake --build --preset $* --parallel $(JOBS)

$(PRESETS:%=test-%): test-%: build-%
	ctest --preset $* --parallel $(JOBS)

test: test-release test-double build-asan build-tsan
	ctest --preset asan-short --parallel $(JOBS)
	ctest --preset tsan-short --parallel $(JOBS)
	@$(SAY_SKIPPED)

test-quick: test-release
	@$(SAY_SKIPPED)

test-long: build-release
	BJ_LONG=1 ctest --preset release -L '^long$$'

demo: build-release
	$(BJEPA) demo

bench: build-release
	$(BJEPA) bench --threads $(THREADS) --busy
	@$(SAY_SKIPPED)
	[ ! -x $(PEERS) ] || $(PEERS) bench/compare_torch.py --bjepa $(BJEPA) --threads $(THREADS)
	[ ! -x $(PEERS) ] || [ -z "$$BJ_AV2_DATA" ] || \
	    $(PEERS) bench/compare_av2.py --av2 "$$BJ_AV2_DATA"

install: build-release
	DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

coverage:
	@scripts/install_deps.sh build coverage
	@$(MAKE) --no-print-directory test-coverage
	gcovr --root . --filter src/ --filter cli/ --object-directory build/coverage --print-summary

fuzz:
	tests/fuzz/run.sh $(TARGET) $(SECONDS)

fuzz-all:
	tests/fuzz/run_all.sh $(SECONDS)

torture: build-release
	cmake --preset asan
	cmake --build --preset asan --parallel $(JOBS) --target bjepa
	tests/torture/torture.py --bjepa $(BJEPA) --sanitized build/asan/bjepa --n $(N)

format:
	@scripts/install_deps.sh format
	clang-format -i include/*/*.h src/*/*.[ch] cli/*.[ch] tests/*/*.[ch]

clean:
	rm -rf build

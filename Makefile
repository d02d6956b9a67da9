# `make run` and `make test` are all that a fresh Debian or Ubuntu machine needs. Both install what is missing, and say
# what they install (scripts/setup).

# Tools that scripts/setup builds, and where rustup puts Rust.
export PATH := $(CURDIR)/target/tools/bin:$(HOME)/.cargo/bin:$(PATH)

# What `make run` runs; for example: make run STUDY=my.toml ARGS='--scale standard'
STUDY ?= studies/quickstart.toml
ARGS ?=

# How long `make fuzz` searches for inputs that break a fuzz target, seconds for each; ARGS names targets.
TIME ?= 60

.PHONY: run build agents check test chaos soak fmt lint bench fuzz schema types screenshots

run: build
	target/release/stacklab run $(STUDY) $(ARGS)

# target/release/stacklab, and its line tables beside it.
build:
	scripts/setup run
	scripts/build-release

# The agent for Windows and FreeBSD; docs/agents.md says what it can do there.
agents:
	scripts/setup agents
	scripts/build-agents

# For a person at work, in some minutes and without root: the page, formatting, structure, clippy, unit tests.
check:
	scripts/setup check
	scripts/check

# Everything: checks, then pure tests, then tests that make namespaces and measure, one at a time. Its end says what took longest.
test:
	scripts/setup test
	scripts/test

# Campaigns that are disturbed at random moments, with guests: some seconds a round. A seed repeats its round.
ROUNDS ?= 500
SEED ?= 1

chaos:
	scripts/setup test
	scripts/build-debug
	STACKLAB_CHAOS_LONG=1 STACKLAB_CHAOS_ROUNDS=$(ROUNDS) STACKLAB_CHAOS_SEED=$(SEED) STACKLAB_CHAOS_ONLY='$(ONLY)' STACKLAB_CACHE=$${STACKLAB_CACHE:-$(CURDIR)/target/cache} \
		cargo test --workspace --locked --quiet --test end_to_end -- chaos:: --nocapture --test-threads=1

# An agent with 10,000 coordinators, a third of them hostile, and a page with 64 followers: do they keep to what they had?
HOURS ?= 1

soak: build
	scripts/soak --hours $(HOURS)

fmt:
	cargo fmt --all
	rustfmt --edition 2024 crates/model/src/factors/mechanism/*.rs

lint:
	scripts/setup test
	scripts/build-web
	scripts/lint

bench: build
	bench/run

# Any bytes to all that reads bytes of others; docs/fuzzing.md.
fuzz:
	scripts/setup fuzz
	scripts/fuzz --seconds $(TIME) $(ARGS)

# The schema of study files for editors; a test says when it is out of date.
schema:
	cargo run --quiet --locked -p stacklab -- schema > docs/study.schema.json

# The types of the page's document for the front end; a test says when they are out of date.
types:
	STACKLAB_WRITE_TYPES=1 cargo test --quiet --locked -p stacklab-report --lib -- page::types tests::columns

# Pictures of report, explorer and live page, into docs/pictures.
screenshots: build
	scripts/setup test
	scripts/screenshots

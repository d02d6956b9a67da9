# `make run` and `make test` are all that a fresh Debian or Ubuntu machine needs. Both install what is missing, and say
# what they install (scripts/setup).

# Tools that scripts/setup installs, and where rustup puts Rust.
export PATH := $(CURDIR)/target/tools/bin:$(HOME)/.cargo/bin:$(PATH)

# What `make run` runs; for example: make run STUDY=my.toml ARGS='--scale standard'
STUDY ?= studies/quickstart.toml
ARGS ?=

.PHONY: run build test test-all test-kernels check check-deploy agent dist test-dist chaos soak fmt lint bench fuzz schema types screenshots site package

run:
	@scripts/build first
	target/release/stacklab run $(STUDY) $(ARGS)

# target/release/stacklab
build:
	@scripts/build

# What a newcomer and a developer run: unit tests, the page's, real namespaces, a real study; formatting and clippy. Minutes.
test:
	@scripts/setup test
	@scripts/test

# Everything: other systems in guests, every mechanism, Wi-Fi, peers, a browser, the Windows agent. CI runs it.
test-all:
	@scripts/setup test
	@scripts/test all

# Compiles kernels with changes, and compares them: a quarter of an hour the first time, and 4 GB.
test-kernels:
	@scripts/setup test-all
	@scripts/test kernels

# Without root: formatting, clippy, unit tests and the page's.
check:
	@scripts/setup test
	@scripts/test check

# The files of deploy/, and a fleet over NATS with them; as root, a minute after scripts/setup deploy.
check-deploy:
	scripts/setup deploy
	scripts/build
	scripts/check-deploy target/release/stacklab

# The agent for Windows (docs/agents.md).
agent:
	@scripts/setup agent
	@scripts/build-agent

# The packages of a release, in target/dist (docs/install.md). `scripts/dist --check` builds them twice and compares.
dist:
	@scripts/setup dist
	@scripts/dist

# Installs, runs and removes each package in fresh roots of Debian; as root.
test-dist:
	@scripts/setup test-dist
	@scripts/test-dist

# Campaigns that are disturbed at random moments, with guests: some seconds a round. A seed repeats its round.
ROUNDS ?= 500
SEED ?= 1

chaos:
	scripts/setup test-all
	STACKLAB_CHAOS_LONG=1 STACKLAB_CHAOS_ROUNDS=$(ROUNDS) STACKLAB_CHAOS_SEED=$(SEED) STACKLAB_CHAOS_ONLY='$(ONLY)' STACKLAB_CACHE=$${STACKLAB_CACHE:-$(CURDIR)/target/cache} \
		cargo nextest run --cargo-profile release --workspace --locked --profile all --no-capture chaos

# An agent with 10,000 coordinators, a third of them hostile, and a page with 64 followers: do they keep to what they had?
HOURS ?= 1

soak: build
	scripts/soak --hours $(HOURS)

fmt:
	cargo fmt --all
	rustfmt --edition 2024 crates/model/src/factors/mechanism/*.rs

lint:
	scripts/setup test-all
	scripts/build-web
	cargo fmt --all --check
	scripts/check-structure
	scripts/check-prose
	scripts/lint

bench: build
	bench/run

# Any bytes for every parser of untrusted input, TIME seconds each; ARGS names targets (docs/fuzzing.md).
TIME ?= 60

fuzz:
	scripts/setup fuzz
	scripts/fuzz --seconds $(TIME) $(ARGS)

# The schema of study files for editors, and their reference; tests say when they are out of date.
schema:
	cargo run --quiet --locked -p stacklab -- schema > docs/study.schema.json
	cargo run --quiet --locked -p stacklab -- study reference > docs/study.md

# The types of the page's document for the front end, and the tables of columns in docs/; tests say when they are out of date.
types:
	STACKLAB_WRITE_TYPES=1 cargo test --quiet --locked -p stacklab-report --features parquet --lib -- tests::types tests::columns

# This documentation as a site, target/site/index.html, with a gallery of reports measured now.
site: build
	scripts/setup site
	scripts/site

# Every crate packaged for crates.io and compiled from its package, into target/package. Nothing is published.
package:
	scripts/setup run
	scripts/package

# Pictures of a run, the report, the explorer and the live page, into docs/pictures.
screenshots: build
	scripts/setup screenshots
	scripts/screenshots

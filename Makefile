# Everything that is checked, by name. `make check` is what a change must pass.
GO ?= go
FUZZTIME ?= 30s
TAGS ?= nomsgpack
TOOLS := $(CURDIR)/.tools
# Processes of tests wait longer for the disk and Redis than in use; these do not.
AS_IN_USE := CALLGATE_TEST_WAIT=0s

.PHONY: site search snapshot snapshot-check release-tools acp-agents candidate policy-diff bench-policy bench-threads reference quick changed all build check test race fuzz mutate differential reload crash race2 approvals budgets once grace agentdojo redis-chaos callbacks threads-reference overload hostile drain first-minutes soak faults redis-faults test-clients test-console console-times bench bench-http bench-chat bench-gate lint vuln tools clean help long-log

all: check

# The linker strips what debuggers read, so the compiler need not write it, which is a fifth of its time.
build: ## the release binary; names each package as it is compiled
	CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -gcflags=all=-dwarf=false -ldflags '-s -w' -v -o callgate ./cmd/callgate
	@test $$(wc -c < callgate) -le 52428800 || { echo 'callgate is over 50 MiB (docs/design.md)' >&2; exit 1; }

snapshot: $(TOOLS)/goreleaser $(TOOLS)/cyclonedx-gomod ## everything of a release but its signature, in dist, without publishing it
	PATH="$(TOOLS):$$PATH" $(TOOLS)/goreleaser release --snapshot --clean --skip=publish,sign --timeout 2h

snapshot-check: ## installs, unpacks and runs what `make snapshot`, or a release, left in dist
	CALLGATE_SNAPSHOT=$(CURDIR)/dist $(GO) test -count=1 -v -run '^TestSnapshot$$' ./deploy/release

check: lint test race ## what a change must pass

# Programs that live for a second need not collect their memory.
quick: ## the tests of the language, the checks and every face, in short form
	GOGC=400 $(GO) test -short -vet=off -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) ./parser/... ./refusal/... ./wrapper/... ./registry/... ./policy ./policy/condition ./policy/boundary ./gateway/... ./test/replies

changed: ## what a change asks for first: the tests of the packages that differ from BASE (main), and of those that import one, in short form
	GOGC=400 .ci/changed $(BASE)

test: ## all tests
	$(GO) test ./...
	$(GO) test -C tools ./...

race: ## all tests with the race detector; the long corpora in short form
	GORACE=atexit_sleep_ms=0 $(GO) test -race -short ./...
	GORACE=atexit_sleep_ms=0 $(GO) test -C tools -race -short ./...

# Every fuzz target in turn, FUZZTIME each. Its cases under testdata/fuzz are
# part of `make test`.
fuzz: ## every fuzz target, FUZZTIME each
	@set -e; for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x $$package; \
	  done; \
	done

mutate: ## take each check out of the pipeline, exchange every two neighbours, and take out each rule of approvals: a test must fail each time
	.ci/mutate

reference: ## writes the annotated configuration, docs/generated and docs/schemas from the keys of the configuration, the commands, the table of refusals, the admin API, the readers of files and the shapes of requests
	CALLGATE_WRITE_REFERENCE=1 $(GO) test -count=1 -run '^TestExample$$' ./configs
	CALLGATE_WRITE_REFERENCE=1 $(GO) test -count=1 -run '^TestReference$$' ./cmd/callgate
	CALLGATE_WRITE_REFERENCE=1 $(GO) test -count=1 -run '^TestShapesPage$$' ./test/clients

site: ## the documentation as pages with a search, in dist/site: open dist/site/index.html
	$(GO) run -C tools ./site -root $(CURDIR) -out $(CURDIR)/dist/site

grace: ## writes docs/grace.md: how many completions a refusal costs a scripted model, with the corpora of CALLGATE_CORPORA, an absolute path
	$(GO) run -C tools ./eval -page $(CURDIR)/docs/grace.md

agentdojo: ## AgentDojo's tasks and attacks by a script that obeys always, with the corpora of CALLGATE_CORPORA, an absolute path: what docs/benchmarks.md says has to come out
	CALLGATE_AGENTDOJO=whole $(GO) test -count=1 -v -run '^TestAgentDojo$$' -timeout 30m ./test/agentdojo

first-minutes: ## the tutorials from nothing to the first enforced call, as their pages stand: clock time, and an estimate for a person
	@$(GO) test -count=1 -v -run '^TestTutorials$$' ./deploy | grep -E 'tutorial-|^(FAIL|ok|---)'

bench: ## all benchmarks; docs/benchmarks.md explains them
	$(GO) test -run '^$$' -bench . -benchmem ./...

differential: ## plain schemas: our program beside two libraries on N (50000000) values; none may be accepted that one refuses
	CALLGATE_DIFFERENTIAL=$(or $(N),50000000) $(GO) test -count=1 -v -run '^TestDifferential$$' -timeout 600m ./registry/schema

policy-diff: ## N (5000) pairs of policies compared, and each beside all that both decide: wider, narrower and equivalent are never wrong
	CALLGATE_DIFF_PAIRS=$(or $(N),5000) $(GO) test -count=1 -v -run '^TestOracle$$' -timeout 120m ./policy/compare

bench-threads: ## a call in a thread, where nothing asks about threads, rows ask about other tools, and about its own
	$(GO) test -run '^$$' -bench '^BenchmarkThreads$$' -benchtime 3000x -count 6 -cpu 1 ./gateway

bench-policy: ## comparisons of policies of 10,000 and 100,000 rows
	$(GO) test -run '^$$' -bench '^BenchmarkCompare$$' ./policy/compare

reload: ## 1,000 saves of a configuration that is being served: none may be served in part
	CALLGATE_SAVES=1000 $(GO) test -run '^TestSaves$$' -timeout 60m ./configs/reload

crash: ## kill -9 under load, N (300) times: nothing that acts once may do so twice, no outcome may be missing
	$(AS_IN_USE) CALLGATE_CRASHES=$(or $(N),300) $(GO) test -count=1 -v -run '^TestCrashes$$' -timeout 60m ./cmd/callgate
	CALLGATE_CRASHES=2000 $(GO) test -count=1 -v -run '^TestACrashOfALogWithZerosAhead$$' -timeout 60m ./audit

race2: ## N (10000) idempotency keys, 8 racers over two gateways on one Redis: as many dispatches as keys
	$(AS_IN_USE) CALLGATE_RACE_KEYS=$(or $(N),10000) $(GO) test -count=1 -v -run '^TestRacers$$' -timeout 60m ./cmd/callgate

search: ## every order of calls, approvals, crashes and losses at two gateways on one store: no promise may be broken
	$(GO) test -count=1 -v -run '^TestEveryLoss$$' -timeout 120m ./store -search

threads-reference: ## N (1000) seeds of random policies and traffic in each place where threads are kept: every decision of the logs is judged again by the sentences of the docs; SEED is the first
	$(AS_IN_USE) CALLGATE_REFERENCE=$(or $(N),1000) CALLGATE_REFERENCE_SEED=$(or $(SEED),1) $(GO) test -count=1 -v -run '^TestReference$$' -timeout 120m ./test/threads

once: ## N (50000) calls of the effect once, over HTTP and TLS, to a server that closes connections at every moment: none may arrive twice
	CALLGATE_ONCE_CALLS=$(or $(N),50000) $(GO) test -count=1 -v -run '^TestNothingIsSentTwice$$' -timeout 60m ./engine

candidate: ## N (100000) calls with each of five hostile candidates beside: none changes an answer
	CALLGATE_CANDIDATE_CALLS=$(or $(N),100000) $(GO) test -count=1 -v -run '^TestCandidateChangesNothing$$' -timeout 60m ./app

approvals: ## N (10000) approvals that 8 racers take up at two gateways on one Redis, one of which is killed: each is used by one call
	$(AS_IN_USE) CALLGATE_TEST_APPROVALS=$(or $(N),10000) $(GO) test -count=1 -v -run '^TestApprovalRacers$$' -timeout 60m ./cmd/callgate

budgets: ## 10,000 requests at once through two gateways, and through two limiters, on one Redis, and the random tests of budgets a thousand times: never more than the budget is spent
	$(AS_IN_USE) CALLGATE_BUDGETS=long $(GO) test -count=1 -v -run '^TestBudgetOfTwoGateways$$' -timeout 20m ./cmd/callgate
	$(AS_IN_USE) CALLGATE_BUDGETS=long $(GO) test -count=1 -v -run '^(TestTwoReplicas|TestReservationsNeverExceedTheBudget)$$' -timeout 20m ./ratelimit/redislimit
	$(AS_IN_USE) $(GO) test -count=1 -run Oracle -timeout 40m ./ratelimit ./ratelimit/redislimit -rapid.checks=1000

redis-chaos: ## N (100) random pauses, kills, dropped replies and failovers of a Redis under Sentinel, in five minutes under load; SEED repeats a draw
	$(AS_IN_USE) CALLGATE_CHAOS=$(or $(N),100) CALLGATE_CHAOS_SEED=$(SEED) $(GO) test -count=1 -v -run '^TestChaos$$' -timeout 60m ./cmd/callgate

callbacks: ## N (100000) calls of callback tools that answer validly and invalidly: every valid answer is recorded once, and nothing else
	$(AS_IN_USE) CALLGATE_CALLBACKS=$(or $(N),100000) $(GO) test -count=1 -v -run '^TestCallbacks$$' -timeout 60m ./cmd/callgate

overload: ## three times the gateway's capacity, for OVERLOAD (60s): rejected and accepted requests, in figures
	$(AS_IN_USE) CALLGATE_OVERLOAD=$(or $(OVERLOAD),60s) $(GO) test -count=1 -v -run '^TestThreeTimesCapacity$$' -timeout 60m ./cmd/callgate

drain: ## SIGTERM under load, N (100) times: nothing in flight may be lost
	$(AS_IN_USE) CALLGATE_DRAINS=$(or $(N),100) $(GO) test -count=1 -v -run '^TestDrainsUnderLoad$$' -timeout 60m ./cmd/callgate

long-log: ## a start on an audit log of N (10000000) records, 0.8 kB each below TMPDIR, with and without a snapshot; and searches of it
	$(AS_IN_USE) CALLGATE_LONG_LOG=$(or $(N),10000000) $(GO) test -count=1 -v -run '^TestLongLog$$' -timeout 60m ./audit ./audit/search

hostile: ## unauthenticated clients with long, slow and unread requests, and a tenant that takes all it can: their cost, in figures
	$(AS_IN_USE) CALLGATE_HOSTILE=1 $(GO) test -count=1 -v -run '^TestNobodyKnown$$|^TestOneTenantLeavesTheOtherItsHalf$$' -timeout 60m ./cmd/callgate

soak: ## mixed load for SOAK (10m): goroutines, descriptors and memory must stay flat
	$(AS_IN_USE) CALLGATE_SOAK=$(or $(SOAK),10m) $(GO) test -count=1 -v -run '^TestFlatUnderLoad$$|^TestSlowClients$$' -timeout 120m ./cmd/callgate

faults: ## every fault of docs/failure-behaviour.md against real processes, with a line for each at the end
	$(AS_IN_USE) CALLGATE_FAULTS=1 $(GO) test -count=1 -v -parallel 2 -run '^TestFaultMatrix$$' -timeout 60m ./cmd/callgate

redis-faults: ## the shared limiter against a redis-server that fails in every way
	CALLGATE_REDIS_FAULTS=1 $(GO) test -count=1 -run 'Lost|Script|Restart|Across|Share|StartsWithout|Failover|IsAway|GivenBack|Moves|GoesAway|Leases' ./ratelimit/redislimit
	$(AS_IN_USE) CALLGATE_REDIS_FAULTS=1 $(GO) test -count=1 -run '^TestOneLimitForThree$$|^TestEditReachesEveryReplica$$|^TestStoreLoss' ./cmd/callgate

test-clients: ## real clients and servers, and the conformance suite of MCP, which are fetched; needs node and npm; SHORT=-short leaves out the client that waits longest
	CALLGATE_CLIENTS=1 $(GO) test -count=1 -v -timeout 30m $(SHORT) ./test/clients

acp-agents: ## Claude Code and Codex behind `callgate acp`, which are fetched (a gigabyte); needs node and npm
	CALLGATE_ACP_AGENTS=1 $(GO) test -count=1 -v -timeout 40m -run "^TestLargeACPAgents$$" ./test/clients

test-console: ## the console in Chromium: axe, its security policy, keyboard, without JavaScript; needs chromium, node and npm; CONSOLE_PICTURES=FOLDER writes pictures
	CALLGATE_CONSOLE=1 $(GO) test -count=1 -v -timeout 40m ./test/console

console-times: ## every page of the console over a log of 50,000 decisions: none may take more than a tenth of a second of a processor
	CALLGATE_CONSOLE_TIMES=1 $(GO) test -count=1 -v -run '^TestPagesInTime$$' ./gateway/faces/console

bench-http: ## the gateway beside fair baselines, over HTTP: seven minutes; needs wrk, and nginx and redis-server for two of the lines; ARGS=-help explains it
	$(GO) run -C tools ./bench http $(ARGS)

bench-chat: ## the same for chat completions, in front of a mock model: nine minutes; needs wrk; ARGS=-help explains it
	$(GO) run -C tools ./bench chat $(ARGS)

bench-gate: ## this tree beside BASE (the last tag): fails where it is slower; needs wrk; SHORT=-short takes a minute; ARGS=-help explains it
	$(GO) run -C tools ./bench gate $(if $(BASE),-base '$(BASE)') $(SHORT) $(ARGS)

lint: $(TOOLS)/golangci-lint ## vet, format and the linters of .golangci.yml
	$(TOOLS)/golangci-lint run ./...
	cd tools && $(TOOLS)/golangci-lint run ./...

vuln: $(TOOLS)/govulncheck ## known vulnerabilities in what is called
	$(TOOLS)/govulncheck ./...

tools: $(TOOLS)/golangci-lint $(TOOLS)/govulncheck ## the linters, built from source

$(TOOLS)/golangci-lint:
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

$(TOOLS)/govulncheck:
	GOBIN=$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck@v1.8.0

# Releases of these that build with the go version of go.mod.
release-tools: $(TOOLS)/goreleaser $(TOOLS)/cyclonedx-gomod $(TOOLS)/helm ## what releases and the tests of the chart use, built from source; takes minutes

$(TOOLS)/goreleaser:
	GOBIN=$(TOOLS) $(GO) install github.com/goreleaser/goreleaser/v2@v2.8.2

$(TOOLS)/cyclonedx-gomod:
	GOBIN=$(TOOLS) $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

$(TOOLS)/helm:
	GOBIN=$(TOOLS) $(GO) install helm.sh/helm/v3/cmd/helm@v3.19.0

clean:
	rm -rf callgate dist $(TOOLS)

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// faultRow is a fault that a gateway meets, and the tests that inject it into
// processes.
type faultRow struct {
	row             int
	fault, injected string
	tests           []func(*testing.T)
}

// faultMatrix is every fault that docs/failure-behaviour.md lists for processes.
// The numbers are those of the table there.
var faultMatrix = []faultRow{
	{1, "Redis is refused", "kill -9 of redis-server", []func(*testing.T){TestRedisIsRefused, TestStoreLossLocal, TestStoreLossRefuse}},
	{2, "Redis is slow", "SIGSTOP of redis-server", []func(*testing.T){TestRedisIsSlow}},
	{3, "a reply is lost after the command ran", "a relay that cuts, swallows and delays", []func(*testing.T){TestRepliesAreLost}},
	{4, "a failover loses what was claimed", "kill -9 of replica and master under sentinels", []func(*testing.T){TestNoReplicaHasIt, TestChaos}},
	{5, "Redis forgets", "FLUSHALL, a restart without AOF, maxmemory, eviction", []func(*testing.T){TestRedisForgets, TestRedisThatIsNotFit}},
	{6, "scripts are gone, or forbidden", "SCRIPT FLUSH, ACL SETUSER -script -eval -evalsha", []func(*testing.T){TestScriptsAreTaken, TestDocumentedUser}},
	{7, "a tool hangs", "SIGSTOP of its process", []func(*testing.T){TestToolHangs}},
	{8, "a tool fails or breaks off", "5xx, resets, half an answer", []func(*testing.T){TestToolsThatMisbehave, TestToolGoesAwayAndReturns}},
	{9, "a tool answers with too much, or drips", "endless bodies and heads, a gzip bomb", []func(*testing.T){TestToolsThatMisbehave}},
	{10, "a tool answers with garbage", "no JSON, names twice, bytes that are no UTF-8", []func(*testing.T){TestToolsThatMisbehave}},
	{11, "a tool that answers later never does", "a tool that takes calls and keeps silent", []func(*testing.T){TestCallbackThatNeverComes}},
	{12, "a tool answers one call many times, otherwise, or for somebody else", "a hundred at once over two gateways; forgeries, another tenant's, conflicts", []func(*testing.T){TestCallbackTwice, TestCallbacks}},
	{13, "a tool answers before it has taken the call", "a tool that posts, and then acknowledges", []func(*testing.T){TestCallbackBeforeTheAcknowledgement}},
	{14, "a tool answers after the gateway was started anew", "kill -9 while calls wait, and keys that are exchanged", []func(*testing.T){TestCallbackAfterARestart}},
	{15, "a gateway is killed", "kill -9 at random, and at each point between two steps", []func(*testing.T){TestCrashes, TestFailpoints, TestKilledAgainAndAgain, TestReplicaDies, TestKilled}},
	{16, "the disk is full, or reports errors", "a tmpfs that is full, strace: EIO of fsync, fdatasync", []func(*testing.T){TestFullDisk, TestFullDiskWhileServing, TestSyncFails, TestDiskReportsErrors}},
	{17, "the disk blocks", "strace: a delay of fsync, fdatasync; a FIFO", []func(*testing.T){TestDiskBlocks, TestLogCannotBeOpened}},
	{18, "a bad policy is saved", "files of every bad shape", []func(*testing.T){TestBadPolicies}},
	{19, "a policy is half written", "a writer that writes in pieces, and dies", []func(*testing.T){TestPolicyIsWrittenInPieces}},
	{20, "a policy is renamed, linked elsewhere, deleted", "rename, symlinks, unlink", []func(*testing.T){TestPolicyGoesAway, TestEditReachesEveryReplica}},
	{21, "a reload under load", "tools exchanged under load", []func(*testing.T){TestReloadsUnderLoad}},
	{22, "the clock steps", "a clock that signals step by an hour", []func(*testing.T){TestClockSteps}},
	{23, "the model breaks off", "a model that cuts, stalls, fails", []func(*testing.T){TestModelBreaksOff}},
	{24, "the caller leaves", "a request that is given up", []func(*testing.T){TestCallWhileItRuns}},
	{25, "three times what it can do", "a load generator", []func(*testing.T){TestThreeTimesCapacity, TestOverload}},
	{26, "SIGTERM", "under load, with calls and streams in flight", []func(*testing.T){TestDrain, TestDrainEnds, TestDrainsWithStreams, TestDrainsUnderLoad}},
	{27, "one key at two replicas", "racers over two processes", []func(*testing.T){TestRacers, TestManyOfOneKey}},
	{28, "a part panics", "failpoints that panic", []func(*testing.T){TestPartsThatPanic}},
	{29, "descriptors, or memory, run out", "prlimit; bodies of a megabyte; slow clients", []func(*testing.T){TestFewDescriptors, TestManyLargeBodies, TestSlowClients}},
	{30, "Redis lies", "a relay that says something else", []func(*testing.T){TestRedisLies}},
}

func testName(test func(*testing.T)) string {
	_, name, _ := strings.Cut(runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name(), "callgate.")
	return name[strings.LastIndexByte(name, '.')+1:]
}

// TestFaultMatrix injects every fault of the matrix, in the long form, and prints
// what has become of it. Without CALLGATE_FAULTS each test runs by its own name
// alone.
func TestFaultMatrix(t *testing.T) {
	if os.Getenv(longFaults) == "" {
		t.Skip("skipped: its tests run by their own names; make faults runs them by row")
	}
	var mu sync.Mutex
	results := map[string]string{}
	t.Run("faults", func(t *testing.T) {
		for _, row := range faultMatrix {
			for _, test := range row.tests {
				name := testName(test)
				mu.Lock()
				known := results[name] != ""
				results[name] = "did not run"
				mu.Unlock()
				if known {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Cleanup(func() {
						mu.Lock()
						defer mu.Unlock()
						switch {
						case t.Failed():
							results[name] = "FAILED"
						case t.Skipped():
							results[name] = "skipped"
						default:
							results[name] = "held"
						}
					})
					test(t)
				})
			}
		}
	})
	for _, row := range faultMatrix {
		var lines []string
		for _, test := range row.tests {
			lines = append(lines, testName(test)+" "+results[testName(test)])
		}
		t.Logf("row %2d | %s | %s | %s", row.row, row.fault, row.injected, strings.Join(lines, ", "))
	}
}

// TestFailureBehaviourIsTested: every test that docs/failure-behaviour.md names is
// there, and every test of the matrix is named.
func TestFailureBehaviourIsTested(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "failure-behaviour.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(page), -1) {
		named[name[1]] = true
	}
	declared := map[string]bool{}
	declaration := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`)
	if err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "callgate-data") {
			return fs.SkipDir // which may be another user's
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range declaration.FindAllSubmatch(text, -1) {
			declared[string(name[1])] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(named) < 50 {
		t.Errorf("the page names %d tests", len(named))
	}
	for name := range named {
		if !declared[name] && app.Has(configs.RedisLimiter) { // some are its own
			t.Errorf("the page names %s, which is not there", name)
		}
	}
	for i, row := range faultMatrix {
		if row.row != i+1 {
			t.Errorf("row %d stands where %d belongs", row.row, i+1)
		}
		if !strings.Contains(string(page), fmt.Sprintf("\n- **%d** ", row.row)) {
			t.Errorf("the page has no row %d: %s", row.row, row.fault)
		}
		for _, test := range row.tests {
			if name := testName(test); !named[name] {
				t.Errorf("row %d: the page does not name %s", row.row, name)
			}
		}
	}
}

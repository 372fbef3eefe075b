package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/internal/testkit/parallel"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("CALLGATE_AUDIT_APPENDER"); dir != "" {
		os.Exit(appender(dir))
	}
	// Tests that start processes are not parallel: until a child runs its program, it
	// holds the locks of all logs that are open here.
	parallel.Waiting()
	leaks.Main(m)
}

// patient is a bound that only a hang reaches: the tests that use it are about
// other things than time.
const patient = 5 * time.Minute

// wholeOrShort is how often a test does something: less often in short runs, which are those with
// the race detector.
func wholeOrShort(whole, short int) int {
	if testing.Short() {
		return short
	}
	return whole
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func sample(call string) Record {
	return Record{
		Time: noon, Event: Decision, Mode: Call, CallID: call, Agent: "Analyst",
		Workspace: "acme", Project: "alpha", Tool: "web.search", ToolVersion: "1.0.0", Verdict: ToolCall,
	}
}

func open(t testing.TB, dir string, opts Options) *Log {
	t.Helper()
	if opts.Wait == 0 {
		opts.Wait = patient
	}
	l, err := Open(dir, opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustClose(t testing.TB, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func mustAppend(t testing.TB, l *Log, calls ...string) {
	t.Helper()
	for _, c := range calls {
		if err := l.Append(context.Background(), sample(c)); err != nil {
			t.Fatalf("Append %s: %v", c, err)
		}
	}
}

// wantUnavailable requires the one refusal that a failing disk may give.
func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.AuditUnavailable || refused.Stage != refusal.Log {
		t.Fatalf("got %v, want %s at stage %s", err, refusal.AuditUnavailable, refusal.Log)
	}
}

// calls verifies the files and returns the call ids in them, in order.
func calls(t testing.TB, files ...string) []string {
	t.Helper()
	var ids []string
	_, err := Read(func(r Record) error { ids = append(ids, r.CallID); return nil }, files...)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return ids
}

func logFile(dir string) string { return filepath.Join(dir, fileName) }

func contents(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ids returns n names.
func ids(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("call-%04d", i)
	}
	return all
}

// memory is a file in memory, with faults that a test sets and the number of
// syncs that it saw. onWrite and onSync run first, without the lock.
type memory struct {
	mu       sync.Mutex
	content  []byte
	durable  []byte // what the last sync that succeeded left
	syncs    int
	writes   int
	opens    int
	closed   bool
	onWrite  func(p []byte) (int, error) // bytes to take, then the error
	onSync   func() error
	onCut    func() error
	onOpen   func() error
	onSize   func() error
	onReadAt func() error
}

func (m *memory) open(string, int) (logfile.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opens++
	if m.onOpen != nil {
		if err := m.onOpen(); err != nil {
			return nil, err
		}
	}
	m.closed = false
	return m, nil
}

func (m *memory) Write(p []byte) (int, error) {
	n, err := len(p), error(nil)
	if m.onWrite != nil {
		n, err = m.onWrite(p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.content = append(m.content, p[:n]...)
	return n, err
}

func (m *memory) Sync() error {
	if m.onSync != nil {
		if err := m.onSync(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs++
	m.durable = append([]byte(nil), m.content...)
	return nil
}

func (m *memory) Truncate(size int64) error {
	if m.onCut != nil {
		if err := m.onCut(); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.content = m.content[:size]
	return nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if m.onReadAt != nil {
		if err := m.onReadAt(); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := copy(p, m.content[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (m *memory) Size() (int64, error) {
	if m.onSize != nil {
		if err := m.onSize(); err != nil {
			return 0, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return int64(len(m.content)), nil
}

func (m *memory) Close() error { m.closed = true; return nil }

// saved writes what the memory holds to a file and returns its name.
func (m *memory) saved(t testing.TB) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	name := filepath.Join(t.TempDir(), fileName)
	put(t, name, m.content)
	return name
}

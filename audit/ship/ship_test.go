package ship_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	wire "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/ship"
	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
)

// collector is a receiver of OTLP logs over HTTP. Its fault answers a request, or leaves that to
// the collector.
type collector struct {
	address string
	server  *http.Server

	mu       sync.Mutex
	fault    func(w http.ResponseWriter, r *http.Request, records []*wire.LogRecord) (answered bool)
	records  []*wire.LogRecord
	requests int
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{address: ports.Hold(t)}
	c.up(t)
	t.Cleanup(c.down)
	return c
}

// up listens at the address that the collector has had from the beginning, and that nobody else
// gets while it is down.
func (c *collector) up(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		t.Fatal(err)
	}
	c.server = &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(listener) }(c.server)
}

func (c *collector) down() { _ = c.server.Close() }

func (c *collector) behave(fault func(http.ResponseWriter, *http.Request, []*wire.LogRecord) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var data wire.LogsData
	if err != nil || proto.Unmarshal(body, &data) != nil || r.URL.Path != "/v1/logs" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not an export of logs", http.StatusNotFound)
		return
	}
	var records []*wire.LogRecord
	for _, resource := range data.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			records = append(records, scope.LogRecords...)
		}
	}
	c.mu.Lock()
	fault := c.fault
	c.requests++
	c.mu.Unlock()
	if fault != nil && fault(w, r, records) {
		return
	}
	c.mu.Lock()
	c.records = append(c.records, records...)
	c.mu.Unlock()
}

// bodies are the lines that came.
func (c *collector) bodies() (lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.records {
		lines = append(lines, r.Body.GetStringValue())
	}
	return lines
}

// until waits for a test, and tells whether the client still waits for an answer then. A collector
// takes nothing from one that has left: it sends the records again.
func until(test <-chan struct{}, r *http.Request) bool {
	select {
	case <-test:
	case <-r.Context().Done():
	}
	return r.Context().Err() == nil
}

func answer(status int) func(http.ResponseWriter, *http.Request, []*wire.LogRecord) bool {
	return func(w http.ResponseWriter, _ *http.Request, _ []*wire.LogRecord) bool {
		w.WriteHeader(status)
		return true
	}
}

// shipping is a log, and what its shipper says.
type shipping struct {
	t         *testing.T
	dir       string
	log       *audit.Log
	collector *collector
	shipper   *ship.Shipper
	count     int

	shipped, lost atomic.Uint64
	mu            sync.Mutex
	failures      []string // and an empty one for each recovery
}

func newShipping(t *testing.T, rotate int64) *shipping {
	t.Helper()
	s := &shipping{t: t, dir: filepath.Join(t.TempDir(), "data"), collector: newCollector(t)}
	log, err := audit.Open(s.dir, audit.Options{Wait: time.Minute, Record: audit.Arguments, RotateBytes: rotate, Preallocate: true})
	if err != nil {
		t.Fatal(err)
	}
	s.log = log
	t.Cleanup(func() { _ = log.Close() })
	return s
}

func (s *shipping) start() {
	s.t.Helper()
	logs, err := telemetry.NewLogs(telemetry.LogOptions{CollectorOptions: telemetry.CollectorOptions{
		Endpoint: "http://" + s.collector.address, Timeout: time.Minute, // a busy machine sends nothing twice
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(logs.Close)
	s.shipper = ship.Start(ship.Options{
		Dir: s.dir, Last: s.log.Last, Export: logs.Export, Delay: time.Millisecond, LongestPause: 2 * time.Millisecond,
		OnShipped: func(n uint64) { s.shipped.Add(n) },
		OnLost:    func(n uint64, _ error) { s.lost.Add(n) },
		OnFailing: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failures = append(s.failures, strings.TrimSpace(fmt.Sprint(err)))
		},
	})
	shipper := s.shipper
	s.t.Cleanup(func() { closeNow(shipper) })
}

// closeNow closes a shipper without waiting for the collector.
func closeNow(s *ship.Shipper) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Close(ctx)
}

// write appends records, and waits for each.
func (s *shipping) write(n int) {
	s.t.Helper()
	for range n {
		s.count++
		r := audit.Record{
			Time: time.Now(), Event: audit.Decision, Mode: audit.Call, CallID: fmt.Sprint("call_", s.count), Agent: "Analyst", Tool: "web.search", Thread: "th",
			TraceID: "0af7651916cd43dd8448eb211c80319c", Verdict: audit.Refused, Stage: refusal.Permission, Code: refusal.PermissionDenied, Micros: 7,
			Arguments: []byte(`{"query":"h\u00e9"}`), Rows: []string{"policy.csv:3", "policy.csv:4"},
		}
		if err := s.log.Append(context.Background(), r); err != nil {
			s.t.Fatal(err)
		}
	}
}

// await waits until something holds. It takes as long as the machine does.
func (s *shipping) await(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Fatalf("%s: not within a minute; %d shipped, %d lost, %d behind, failures %q", what, s.shipped.Load(), s.lost.Load(), s.shipper.Behind(), s.failures)
		}
	}
}

func (s *shipping) awaitAll() {
	s.t.Helper()
	s.await("everything is shipped", func() bool { return s.shipper.Behind() == 0 })
}

// inFiles are the lines of the log.
func (s *shipping) inFiles() (lines []string) {
	s.t.Helper()
	files, err := audit.Files(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range bytes.Lines(bytes.TrimRight(content, "\x00")) {
			lines = append(lines, strings.TrimSuffix(string(line), "\n"))
		}
	}
	return lines
}

// same fails unless the collector has these lines, in this order.
func (s *shipping) same(want []string) {
	s.t.Helper()
	got := s.collector.bodies()
	if len(got) != len(want) {
		s.t.Fatalf("the collector has %d records, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			s.t.Fatalf("record %d is %s, want %s", i, got[i], want[i])
		}
	}
}

// sameSet fails unless the collector has these lines, once each: those that a collector refused until
// it was repaired come after others.
func (s *shipping) sameSet(want []string) {
	s.t.Helper()
	got := s.collector.bodies()
	slices.Sort(got)
	if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		s.t.Fatalf("the collector has %d records, want %d, once each", len(got), len(want))
	}
}

// A collector that is repaired while a batch is sent in halves gets all of it, whichever request of the
// batch is the first that it takes.
func TestRepairedInTheMiddle(t *testing.T) {
	for refusals := range 12 {
		s := newShipping(t, 0)
		hold, left := make(chan struct{}), refusals+1
		s.collector.behave(func(w http.ResponseWriter, r *http.Request, _ []*wire.LogRecord) bool {
			if !until(hold, r) {
				return true
			}
			if left--; left >= 0 { // one request at a time
				w.WriteHeader(http.StatusBadRequest)
			}
			return left >= 0
		})
		s.start()
		s.write(1)
		s.await("a request waits", func() bool { s.collector.mu.Lock(); defer s.collector.mu.Unlock(); return s.collector.requests > 0 })
		s.write(4)
		close(hold)
		s.awaitAll()
		s.sameSet(s.inFiles())
		if s.lost.Load() != 0 || s.shipped.Load() != 5 {
			t.Errorf("%d refusals: %d shipped, %d lost", refusals, s.shipped.Load(), s.lost.Load())
		}
	}
}

// The collector has the lines of the file, byte for byte, over rotated files, while they are
// written; its copy passes audit verify by itself.
func TestShipsTheFile(t *testing.T) {
	s := newShipping(t, 20_000)
	s.start()
	var writers sync.WaitGroup
	writers.Go(func() { s.write(600) })
	writers.Wait()
	s.awaitAll()
	lines := s.inFiles()
	if files, _ := audit.Files(s.dir); len(files) < 5 || len(lines) != 600 {
		t.Fatalf("%d files, %d lines", len(files), len(lines))
	}
	s.same(lines)
	copied := filepath.Join(t.TempDir(), "copy.jsonl")
	if err := os.WriteFile(copied, []byte(strings.Join(s.collector.bodies(), "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.Verify(copied); err != nil || report.Records != 600 {
		t.Errorf("the copy: %+v %v", report, err)
	}
	if s.lost.Load() != 0 || s.shipped.Load() != 600 || len(s.failures) != 0 {
		t.Errorf("%d shipped, %d lost, failures %q", s.shipped.Load(), s.lost.Load(), s.failures)
	}
}

// Each member of a record that is not empty is an attribute; content stands in the body alone.
func TestAttributes(t *testing.T) {
	s := newShipping(t, 0)
	s.start()
	s.write(1)
	s.awaitAll()
	r := s.collector.records[0]
	line, err := audit.Decode([]byte(r.Body.GetStringValue()))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, a := range r.Attributes {
		got[a.Key] = strings.ReplaceAll(fmt.Sprint(a.Value), "  ", " ")
	}
	for key, want := range map[string]string{
		"callgate.seq": "int_value:1", "callgate.hash": fmt.Sprintf("string_value:%q", line.Hash), "callgate.prev": fmt.Sprintf("string_value:%q", line.Prev),
		"callgate.event": `string_value:"decision"`, "callgate.call_id": `string_value:"call_1"`, "callgate.verdict": `string_value:"refused"`,
		"callgate.code": `string_value:"permission_denied"`, "gen_ai.agent.name": `string_value:"Analyst"`, "gen_ai.tool.name": `string_value:"web.search"`,
		"gen_ai.conversation.id": `string_value:"th"`, "callgate.micros": "int_value:7", "callgate.arguments": "", "callgate.completion": "", "callgate.outcome": "",
	} {
		if got[key] != want {
			t.Errorf("%s is %s, want %s", key, got[key], want)
		}
	}
	if !strings.Contains(got["callgate.rows"], "policy.csv:4") {
		t.Errorf("rows are %s", got["callgate.rows"])
	}
	if fmt.Sprintf("%x", r.TraceId) != line.TraceID || int64(r.TimeUnixNano) != line.Time.UnixNano() || r.EventName != "callgate.audit.decision" || r.SeverityText != "WARN" {
		t.Errorf("trace %x, time %d, event %s, severity %s", r.TraceId, r.TimeUnixNano, r.EventName, r.SeverityText)
	}
}

// A collector that does not answer delays no record of the file.
func TestSlowCollector(t *testing.T) {
	s := newShipping(t, 20_000)
	release := make(chan struct{})
	s.collector.behave(func(_ http.ResponseWriter, r *http.Request, _ []*wire.LogRecord) bool {
		return !until(release, r)
	})
	s.start()
	s.write(300) // Append fails the test if it is refused, and would never return if it waited
	if got := s.collector.bodies(); len(got) != 0 || s.shipper.Behind() != 300 {
		t.Errorf("%d records came, %d behind", len(got), s.shipper.Behind())
	}
	close(release)
	s.awaitAll()
	s.same(s.inFiles())
}

// A collector that refuses for a while, or is away, gets everything once it is back.
func TestCollectorComesBack(t *testing.T) {
	for name, c := range map[string]struct{ breaks, repairs func(*shipping) }{
		"overloaded":      {func(s *shipping) { s.collector.behave(answer(http.StatusServiceUnavailable)) }, func(s *shipping) { s.collector.behave(nil) }},
		"refuses the key": {func(s *shipping) { s.collector.behave(answer(http.StatusUnauthorized)) }, func(s *shipping) { s.collector.behave(nil) }},
		"wrong set up":    {func(s *shipping) { s.collector.behave(answer(http.StatusBadRequest)) }, func(s *shipping) { s.collector.behave(nil) }},
		"redirects":       {func(s *shipping) { s.collector.behave(answer(http.StatusTemporaryRedirect)) }, func(s *shipping) { s.collector.behave(nil) }},
		"gone":            {func(s *shipping) { s.collector.down() }, func(s *shipping) { s.collector.up(s.t) }},
		"cuts connections": {func(s *shipping) {
			s.collector.behave(func(http.ResponseWriter, *http.Request, []*wire.LogRecord) bool { panic(http.ErrAbortHandler) })
		}, func(s *shipping) { s.collector.behave(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t, 5_000)
			s.start()
			s.write(5)
			s.awaitAll()
			c.breaks(s)
			s.write(20)
			s.await("the failure is reported", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.failures) > 0 })
			c.repairs(s)
			s.write(5)
			s.awaitAll()
			s.sameSet(s.inFiles())
			if s.lost.Load() != 0 {
				t.Errorf("%d lost", s.lost.Load())
			}
			s.await("the recovery is reported", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.failures[len(s.failures)-1] == "<nil>"
			})
		})
	}
}

// A collector gets the records that it missed before a restart after it, and none twice.
func TestRestart(t *testing.T) {
	s := newShipping(t, 5_000)
	s.write(3) // before anything is shipped from this folder
	s.start()
	s.write(10)
	s.awaitAll()
	s.collector.down()
	s.write(20)
	closeNow(s.shipper)
	s.write(20)
	s.collector.up(t)
	s.start()
	s.awaitAll()
	s.write(1)
	s.shipper.Close(context.Background()) // ships what is durable
	s.same(s.inFiles()[3:])
}

// One record that the collector does not take keeps no other from it, and is counted.
func TestOneRecordIsRefused(t *testing.T) {
	s := newShipping(t, 0)
	hold := make(chan struct{})
	s.collector.behave(func(w http.ResponseWriter, r *http.Request, records []*wire.LogRecord) bool {
		if !until(hold, r) {
			return true
		}
		for _, r := range records {
			if strings.Contains(r.Body.GetStringValue(), `"call_77"`) {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return true
			}
		}
		return false
	})
	s.start()
	s.write(200)
	close(hold)
	s.awaitAll()
	lines := s.inFiles()
	s.same(append(lines[:76:76], lines[77:]...))
	if s.lost.Load() != 1 || s.shipped.Load() != 199 {
		t.Errorf("%d shipped, %d lost", s.shipped.Load(), s.lost.Load())
	}
}

// A request that the collector took but for some records is not sent again; they are counted.
func TestPartlyRejected(t *testing.T) {
	s := newShipping(t, 0)
	hold := make(chan struct{})
	s.collector.behave(func(w http.ResponseWriter, r *http.Request, records []*wire.LogRecord) bool {
		if !until(hold, r) {
			return true
		}
		if len(records) > 3 {
			partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 3)
			_, _ = w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial))
		}
		return false
	})
	s.start()
	s.write(1)
	s.await("a request waits", func() bool { s.collector.mu.Lock(); defer s.collector.mu.Unlock(); return s.collector.requests > 0 })
	s.write(100)
	close(hold)
	s.awaitAll()
	if s.lost.Load() != 3 || s.shipped.Load() != 98 {
		t.Errorf("%d shipped, %d lost", s.shipped.Load(), s.lost.Load())
	}
}

// Records that are in no file any more when the collector is back, or not as they were written, are
// counted; the others come.
func TestRecordsThatAreGone(t *testing.T) {
	s := newShipping(t, 5_000)
	s.start()
	s.write(2)
	s.awaitAll()
	closeNow(s.shipper)
	s.write(40)
	files, err := audit.Files(s.dir)
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	before := s.inFiles()
	for _, name := range files[1:3] { // the operator moves old files away
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(files[3])
	if err != nil {
		t.Fatal(err)
	}
	altered := bytes.Replace(content, []byte(`"agent":"Analyst"`), []byte(`"agent":"Mallory"`), 1)
	if err := os.WriteFile(files[3], altered, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.awaitAll()
	got := s.collector.bodies()
	if s.lost.Load() == 0 || uint64(len(got))+s.lost.Load() != uint64(len(before)) || got[len(got)-1] != before[len(before)-1] {
		t.Errorf("%d of %d records came, %d lost", len(got), len(before), s.lost.Load())
	}
	if strings.Contains(strings.Join(got, ""), "Mallory") {
		t.Error("an altered record was shipped")
	}
}

// A position that is damaged, or of another log, ships all that there is.
func TestPositionOfAnotherLog(t *testing.T) {
	for name, cursor := range map[string]string{
		"damaged":             `{"seq":`,
		"beyond the end":      `{"seq":99,"hash":"` + strings.Repeat("a", 64) + `"}`,
		"another hash":        `{"seq":4,"hash":"` + strings.Repeat("a", 64) + `"}`,
		"another hash at end": `{"seq":10,"hash":"` + strings.Repeat("a", 64) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t, 0)
			s.write(10)
			if err := os.WriteFile(filepath.Join(s.dir, "shipped.json"), []byte(cursor), 0o600); err != nil {
				t.Fatal(err)
			}
			s.start()
			s.awaitAll()
			s.await("all came", func() bool { return len(s.collector.bodies()) == 10 })
			s.same(s.inFiles())
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.failures) == 0 || !strings.Contains(s.failures[0], "shipped.json") {
				t.Errorf("reported %q", s.failures)
			}
		})
	}
}

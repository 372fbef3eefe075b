package telemetry_test

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/tool"
)

// eventually waits for what must come.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// refusedAddress is an address where nothing listens.
func refusedAddress(t *testing.T) string {
	t.Helper()
	return "http://" + ports.Hold(t)
}

// TestCollectorFails: calls are as ever, what is lost is reported, and closing
// ends when it is told to.
func TestCollectorFails(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret of the collector", code) }
	}
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	var requested atomic.Bool
	hangs := func(w http.ResponseWriter, r *http.Request) {
		if requested.CompareAndSwap(false, true) {
			status(503)(w, r)
			return
		}
		hang(w, r)
	}
	// Where the time is what ends it, it is long enough for an answer before.
	runsOut, patient := 5*time.Second, time.Minute
	if testing.Short() {
		runsOut = 2 * time.Second // twice the first pause before another attempt
	}
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		message string
	}{
		"away":           {nil, "connection refused"},
		"slow":           {hang, "deadline"},
		"500":            {status(500), "answered 500"},
		"always 503":     {status(503), "answered 503"},
		"503, then slow": {hangs, "answered 503"},
		"not found":      {status(404), "answered 404"},
		"moved": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "answered 307"},
		"breaks off":     {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
		"partly refuses": {partly(3), "refused 3 spans"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var reported reports
			collector := collectorStub(t, c.answer)
			endpoint := collector.URL
			if c.answer == nil {
				endpoint = refusedAddress(t)
			}
			timeout := patient
			switch name {
			case "away", "slow", "always 503", "503, then slow", "breaks off":
				timeout = runsOut
			}
			traces := tracesTo(t, endpoint, func(o *telemetry.TraceOptions) {
				o.OnLoss, o.Timeout, o.Delay = reported.add, timeout, 10*time.Millisecond
			})
			if o := handle(kernel(t, traces, nil), ask(say)); o.Refusal != nil {
				t.Fatal(o.Refusal)
			}
			eventually(t, "a report", func() bool { return reported.all() != "" })
			err := traces.Close(context.Background())
			if lost := name != "partly refuses"; lost != (err != nil) || lost != strings.Contains(reported.all(), "the traces of 1 calls were lost") {
				t.Errorf("closed with %v, reported %s", err, reported.all())
			}
			if !strings.Contains(reported.all(), c.message) || strings.Contains(reported.all(), "secret") {
				t.Errorf("reported %q, want %q", reported.all(), c.message)
			}
		})
	}
}

// TestReports: what is lost after a first report is reported together.
func TestReports(t *testing.T) {
	var reported reports
	collector := collectorStub(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.OnLoss, o.Delay = reported.add, time.Millisecond })
	k := kernel(t, traces, nil)
	for n := range 4 {
		handle(k, ask(say))
		eventually(t, "an export", func() bool { return collector.requestCount() > n })
	}
	if err := traces.Close(context.Background()); err == nil || err.Error() != "the traces of 4 calls were lost" {
		t.Errorf("closed with %v", err)
	}
	const answered = " calls were lost: traces export: the collector answered 400"
	if got := reported.all(); got != "the traces of 1"+answered+"\nthe traces of 3"+answered {
		t.Errorf("reported %s", got)
	}
}

// partly answers that some spans were refused, as OTLP says it.
func partly(spans uint64) http.HandlerFunc {
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), spans)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "secret of the collector")
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }
}

// TestSentAgain: what a collector may take later is not lost.
func TestSentAgain(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	var collector *stub
	collector = collectorStub(t, func(w http.ResponseWriter, r *http.Request) {
		if failed.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		collector.mu.Lock()
		body := collector.bodies[len(collector.bodies)-1]
		collector.mu.Unlock()
		if err := collector.keep(r, body); err != nil {
			t.Error(err)
		}
	})
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.Timeout = time.Minute })
	handle(kernel(t, traces, nil), ask(say))
	flushed(t, traces)
	if n := len(collector.calls()); n != 1 || collector.requestCount() != 2 {
		t.Errorf("%d calls after %d requests", n, collector.requestCount())
	}
}

// TestNoRoom: a collector that takes nothing costs the calls no time, and no
// memory beyond what is bounded.
func TestNoRoom(t *testing.T) {
	release := make(chan struct{})
	var reported reports
	collector := collectorStub(t, func(http.ResponseWriter, *http.Request) { <-release })
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) {
		o.OnLoss, o.Timeout, o.Delay, o.Content = reported.add, time.Minute, time.Millisecond, true
	})
	call := tool.Span{TraceID: traceID, Start: time.Now(), End: time.Now(), CallID: "c", Tool: "echo.say"}
	traces.Trace(call)
	eventually(t, "the collector is asked", func() bool { return collector.requestCount() > 0 })
	before := heap()
	const many = 20_000
	for range many {
		call.Arguments, call.Result = make([]byte, 64<<10), make([]byte, 64<<10)
		traces.Trace(call) // would not return if it blocked
	}
	if held := int64(heap()) - int64(before); held > 64<<20 {
		t.Errorf("%d MiB are held", held>>20)
	}
	close(release)
	if err := traces.Close(context.Background()); err == nil || !strings.Contains(reported.all(), "takes spans more slowly than calls end") {
		t.Errorf("closed with %v, reported %s", err, reported.all())
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestClose flushes what waits, ends with its context, takes nothing after, and
// may be called again.
func TestClose(t *testing.T) {
	t.Parallel()
	collector := collectorStub(t, nil)
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.Delay = time.Minute })
	k := kernel(t, traces, nil)
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for range 30 {
				handle(k, ask(say))
			}
		})
	}
	callers.Wait()
	flushed(t, traces)
	if n := len(collector.calls()); n != 300 {
		t.Errorf("%d calls came, want 300", n)
	}
	if n := collector.requestCount(); n < 5 { // each has nine spans
		t.Errorf("all came in %d batches", n)
	}
	if o := handle(k, ask(say)); o.Refusal != nil {
		t.Fatal(o.Refusal)
	}
	flushed(t, traces)
	if n := len(collector.calls()); n != 300 {
		t.Errorf("%d calls came after closing", n)
	}
	hanging := collectorStub(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	traces = tracesTo(t, hanging.URL, func(o *telemetry.TraceOptions) { o.Timeout = time.Minute })
	handle(kernel(t, traces, nil), ask(say))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := traces.Close(ctx); err == nil || time.Since(start) > 30*time.Second {
		t.Errorf("closed with %v after %v", err, time.Since(start))
	}
}

// TestHeaders go to the collector alone, anew each time, and are told nobody.
func TestHeaders(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var turn atomic.Int64
	var reported reports
	collector := collectorStub(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
	})
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) {
		o.Delay, o.OnLoss = time.Millisecond, reported.add
		o.Headers = func() map[string]string {
			switch turn.Add(1) {
			case 1:
				return map[string]string{"authorization": "Bearer canary-1", "Content-Type": "text/plain"}
			case 2:
				return map[string]string{"Authorization": "Bearer canary-2"}
			case 3:
				return map[string]string{"Authorization": "Bearer canary\n3"}
			}
			panic("canary-4")
		}
	})
	k := kernel(t, traces, nil)
	for n := range int64(4) {
		handle(k, ask(say))
		eventually(t, "an export", func() bool { return turn.Load() > n })
	}
	if err := traces.Close(context.Background()); err == nil {
		t.Error("nothing was lost")
	}
	collector.mu.Lock()
	defer collector.mu.Unlock()
	if len(collector.requests) != 2 || elsewhere.Load() != 0 {
		t.Fatalf("%d requests, %d elsewhere", len(collector.requests), elsewhere.Load())
	}
	for i, want := range []string{"Bearer canary-1", "Bearer canary-2"} {
		h := collector.requests[i].Header
		if h.Get("Authorization") != want || h.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%v", h)
		}
	}
	if strings.Contains(reported.all(), "canary") {
		t.Error(reported.all())
	}
}

// TestEnvironment: what the environment says changes nothing.
func TestEnvironment(t *testing.T) {
	away := refusedAddress(t)
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": away, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": away, "OTEL_EXPORTER_OTLP_HEADERS": "x-canary=1",
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere", "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
		"OTEL_RESOURCE_ATTRIBUTES": "canary=1,,=", "OTEL_SERVICE_NAME": "canary", "OTEL_SDK_DISABLED": "true",
		"OTEL_TRACES_SAMPLER": "canary", "OTEL_TRACES_SAMPLER_ARG": "canary", "OTEL_TRACES_EXPORTER": "none",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_ATTRIBUTE_COUNT_LIMIT": "1", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1", "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
		"OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_EXPORT_TIMEOUT": "1", "OTEL_GO_X_OBSERVABILITY": "true",
		"HTTP_PROXY": away, "HTTPS_PROXY": away, "ALL_PROXY": away,
	} {
		t.Setenv(name, value)
	}
	var reported reports
	collector := collectorStub(t, nil)
	traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.OnLoss = reported.add })
	handle(kernel(t, traces, nil), ask(say))
	flushed(t, traces)
	calls := collector.calls()
	if len(calls) != 1 || calls[0].attributes["gen_ai.tool.name"] != "echo.say" || calls[0].attributes["callgate.project"] != "alpha" || len(calls[0].below) != 9 {
		t.Errorf("%d: %+v", len(calls), calls)
	}
	if strings.Contains(collector.everything(), "canary") || strings.Contains(collector.everything(), "Gzip") {
		t.Error("the environment is told")
	}
	// The message of OpenTelemetry's code would else stand on standard error.
	if !strings.Contains(reported.all(), "unsupported sampler") {
		t.Errorf("reported %q", reported.all())
	}
}

func TestTLS(t *testing.T) {
	var reported reports
	plain := collectorStub(t, nil)
	collector := httptest.NewUnstartedServer(plain.Config.Handler)
	collector.Config.ErrorLog = log.New(io.Discard, "", 0) // of those who do not trust it
	collector.StartTLS()
	defer collector.Close()
	ca := x509.NewCertPool()
	ca.AddCert(collector.Certificate())
	for roots, want := range map[*x509.CertPool]int{nil: 0, ca: 1} {
		traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.RootCAs, o.OnLoss, o.Timeout = roots, reported.add, time.Minute })
		handle(kernel(t, traces, nil), ask(say))
		start := time.Now()
		if err := traces.Close(context.Background()); (err == nil) != (want == 1) || time.Since(start) > 30*time.Second {
			t.Errorf("%d: %v after %v", want, err, time.Since(start)) // trust does not come with time
		}
		if n := len(plain.calls()); n != want && roots != nil || roots == nil && !strings.Contains(reported.all(), "certificate") {
			t.Errorf("%d: %d calls, reported %s", want, n, reported.all())
		}
	}
}

func TestOptions(t *testing.T) {
	const good = "http://localhost:4318"
	at := func(endpoint string, timeout time.Duration) telemetry.CollectorOptions {
		return telemetry.CollectorOptions{Endpoint: endpoint, Timeout: timeout}
	}
	for want, o := range map[string]telemetry.TraceOptions{
		"endpoint: found no address of http or https; expected one":   {},
		"endpoint: found no address of http or https; expected one ":  {CollectorOptions: at("localhost:4318", 0)},
		"endpoint: found no address of http or https; expected one s": {CollectorOptions: at("grpc://canary:4317", 0)},
		"endpoint: found no address of http or https; expected":       {CollectorOptions: at("http://:80", 0)},
		"endpoint: found no address":                                  {CollectorOptions: at("http://[canary", 0)},
		"endpoint: found a user":                                      {CollectorOptions: at("http://user:canary@localhost", 0)},
		"endpoint: found a query":                                     {CollectorOptions: at(good+"?key=canary", 0)},
		"endpoint: found a query or":                                  {CollectorOptions: at(good+"#canary", 0)},
		"sampling_ratio: found":                                       {CollectorOptions: at(good, 0), SampleRatio: 1.5},
		"sampling_ratio: found -1":                                    {CollectorOptions: at(good, 0), SampleRatio: -1},
		"sampling_ratio: found NaN":                                   {CollectorOptions: at(good, 0), SampleRatio: math.NaN()},
		"timeout: found":                                              {CollectorOptions: at(good, -1)},
		"timeout: found 2m":                                           {CollectorOptions: at(good, 2*time.Minute)},
		"delay: found":                                                {CollectorOptions: at(good, 0), Delay: -1},
	} {
		traces, err := telemetry.NewTraces(o)
		if err == nil {
			_ = traces.Close(context.Background())
			t.Errorf("%+v is good", o)
			continue
		}
		if !strings.HasPrefix(err.Error(), strings.TrimSpace(want)) || strings.Contains(err.Error(), "canary") {
			t.Errorf("got %q, want %q", err, want)
		}
		if o.Validate() == nil {
			t.Errorf("%+v is valid", o)
		}
	}
}

const secrets = `{"tool":{"name":"vault.put","arguments":{"name":"canary-name","token":"canary-token"}}}`

// TestNoContent: nothing that a model wrote, or a tool, is told.
func TestNoContent(t *testing.T) {
	collector := collectorStub(t, nil)
	traces := tracesTo(t, collector.URL, nil)
	k := kernel(t, traces, func(_ *calls.Deps, e tools) {
		e.answers["vault.get"] = func() (tool.Result, error) {
			return tool.Result{Body: []byte(`{"value":"canary-value"}`), JSON: true}, nil
		}
	})
	for _, completion := range []string{
		secrets, `{"tool":{"name":"vault.get","arguments":{}}}`, `{"tool":{"name":"canary.tool","arguments":{"canary":1}}}`, `{"tool":{"name":"echo.say","arguments":{"canary":"x"}}}`,
		`{"tool":{"name":"echo.say","arguments":{"text":"x","path":"/canary"}}}`, `{"tool":{"name":"echo.say","arguments":{"text":"x"}},"agent":"canary"}`, "canary", `{"canary":`,
	} {
		handle(k, ask(completion))
	}
	traces.Trace(tool.Span{TraceID: traceID, Tool: "echo.say", Arguments: []byte("canary"), Result: []byte("canary")})
	flushed(t, traces)
	if n := len(collector.calls()); n != 9 || strings.Contains(collector.everything(), "canary") {
		t.Errorf("%d calls, a canary among them: %t", n, strings.Contains(collector.everything(), "canary"))
	}
}

// TestContent: arguments and results stand there, but for what is secret.
func TestContent(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	for _, c := range []struct{ name, completion, arguments, result string }{
		{"plain", say, `{"text":"hello"}`, `{"tool_result":{"tool":"echo.say","output":{"echo":{"text":"hello"}}}}`},
		{"secret", secrets, `{"name":"canary-name","token":"[redacted]"}`, ""}, // the tool repeats it
		{"no secret given", `{"tool":{"name":"vault.put","arguments":{"name":"n"}}}`, `{"name":"n"}`, `{"tool_result":{"tool":"vault.put","output":{"echo":{"name":"n"}}}}`},
		{"secret result", `{"tool":{"name":"vault.get","arguments":{}}}`, `{}`, ""},
		{"refused", `{"tool":{"name":"vault.put","arguments":{"token":"canary-token"}}}`, `{"token":"[redacted]"}`, ""},
		{"failed", `{"tool":{"name":"rare.once","arguments":{}}}`, `{}`, ""},
		{"unknown tool", `{"tool":{"name":"canary.tool","arguments":{"a":"canary-token"}}}`, "", ""},
		{"long", `{"tool":{"name":"echo.say","arguments":{"text":"` + long + `"}}}`, `{"text":"` + long[:(8192-9)/2*2] + "…", "*"},
		{"text", "canary-token", "", ""},
		{"broken", `{"tool":{"name":"echo.say","arguments":{"text":"canary-token"}}`, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := collectorStub(t, nil)
			traces := tracesTo(t, collector.URL, func(o *telemetry.TraceOptions) { o.Content = true })
			k := kernel(t, traces, func(_ *calls.Deps, e tools) {
				e.answers["vault.get"] = func() (tool.Result, error) {
					return tool.Result{Body: []byte(`{"value":"canary-token"}`), JSON: true}, nil
				}
				e.answers["rare.once"] = func() (tool.Result, error) {
					return tool.Result{}, refusal.New(refusal.ToolFailed, "canary-token")
				}
			})
			handle(k, ask(c.completion))
			flushed(t, traces)
			s := collector.calls()[0]
			arguments, result := s.attributes["gen_ai.tool.call.arguments"], s.attributes["gen_ai.tool.call.result"]
			if arguments != c.arguments || result != c.result && c.result != "*" || len(result) > 8192+len("…") {
				t.Errorf("got  %.200s and %.200s\nwant %.200s and %.200s", arguments, result, c.arguments, c.result)
			}
			if strings.Contains(collector.everything(), "canary-token") {
				t.Error("a secret is told")
			}
		})
	}
}

// TestWords that are not UTF-8, or long, cost no batch.
func TestWords(t *testing.T) {
	collector := collectorStub(t, nil)
	traces := tracesTo(t, collector.URL, nil)
	k := kernel(t, traces, nil)
	request := ask(say)
	request.Thread = "\xff" + strings.Repeat("é", 10_000)
	handle(k, request)
	handle(k, ask(say))
	flushed(t, traces)
	calls := collector.calls()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	if got, want := calls[0].attributes["gen_ai.conversation.id"], "\uFFFD"+strings.Repeat("é", 127)+"…"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

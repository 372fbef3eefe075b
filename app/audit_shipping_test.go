package app

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/telemetry"
)

// A process that the configuration gives a collector ships each record before it ends, with the
// credential, and counts it; without a collector it makes no position.
func TestShipping(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	credential := ""
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got, credential = append(got, body...), r.Header.Get("Authorization")
	}))
	defer collector.Close()
	t.Setenv("AUDIT_AUTHORIZATION", "Bearer canary")
	for _, endpoint := range []string{"", collector.URL} {
		c, err := configs.Default(filepath.Join(t.TempDir(), "data"))
		if err != nil {
			t.Fatal(err)
		}
		c.OTLP.Endpoint, c.OTLP.Headers = endpoint, map[string]secret.Ref{"Authorization": secret.Parse("env:AUDIT_AUTHORIZATION")}
		metrics := telemetry.New()
		h, err := Open(t.Context(), c, nil, Options{Logger: slog.New(slog.DiscardHandler), Metrics: metrics, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		o := h.Executor.Handle(t.Context(), gateway.Request{Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"time.now","arguments":{}}}`)}}}, "")
		if o.Refusal != nil {
			t.Fatal(o.Refusal)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(c.DataDir, "shipped.json"))
		if endpoint == "" {
			if err == nil || len(got) > 0 {
				t.Errorf("%q came, and the position: %v", got, err)
			}
			continue
		}
		file, err := os.ReadFile(filepath.Join(c.DataDir, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSpace(file), []byte("\n"))
		for _, line := range lines {
			if !bytes.Contains(got, line) {
				t.Errorf("the collector lacks %s", line)
			}
		}
		position, err := os.ReadFile(filepath.Join(c.DataDir, "shipped.json"))
		var at struct{ Seq int }
		if err != nil || json.Unmarshal(position, &at) != nil || at.Seq != len(lines) || len(lines) != 2 || credential != "Bearer canary" {
			t.Errorf("position %s of %d records: %v; credential %q", position, len(lines), err, credential)
		}
		w := httptest.NewRecorder()
		metrics.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, want := range []string{`callgate_audit_shipped_total{result="shipped"} 2`, "callgate_audit_behind 0"} {
			if !bytes.Contains(w.Body.Bytes(), []byte(want)) {
				t.Errorf("the metrics lack %s", want)
			}
		}
	}
}

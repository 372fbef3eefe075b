package replies_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// offered are the tools of a request where a case names none.
var offered = []string{"web_search", "time_now"}

// eachWire opens each case, and calls a function for each API that can say it.
func eachWire(t *testing.T, do func(g *gate, c *testCase, name string, w wire)) {
	t.Helper()
	for _, f := range readFiles(t) {
		for _, c := range f.cases {
			var g *gate
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
			g = open(t, c, model.URL)
			for _, w := range wires {
				if c.isOn(w.name, w.says) {
					do(g, c, w.name, w.wire)
				}
			}
			model.Close()
		}
	}
}

// TestBrokenOff: a stream of the model that ends too early, behind any event or within it, is a failure:
// no call of it runs or is shown, and of its text no more than of the whole. One that lacks nothing but
// what some providers leave out is whole. In short form, each fifth end is tried, in turn.
func TestBrokenOff(t *testing.T) {
	ends := 0
	eachWire(t, func(g *gate, c *testCase, name string, w wire) {
		cut := form{size: 7}
		full, _ := g.ask(t.Context(), t, c, w, true, says(c, w, cut))
		events := w.events(&c.replies[0], cut)
		for k := range events {
			for _, within := range []bool{false, true} {
				if ends++; testing.Short() && ends%5 != 0 {
					continue
				}
				whole := says(c, w, cut)
				got, body := g.ask(t.Context(), t, c, w, true, func(turn int, to http.ResponseWriter, r *http.Request) {
					if turn > 0 {
						whole(turn, to, r)
						return
					}
					to.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(to, strings.Join(events[:k], ""))
					if !within {
						return
					}
					_, _ = io.WriteString(to, events[k][:len(events[k])/2])
					to.(http.Flusher).Flush()
					panic(http.ErrAbortHandler)
				})
				c.checkShown(t, name+", broken off", &got, body)
				got.spent, full.spent = nil, nil                             // without the usage a request stays charged as it was reserved
				noUsage := got.code == "bound_reached" && c.has("tokens=25") // the turn is whole, and does not say what it took
				if got.String() == full.String() || noUsage {
					continue
				}
				if got.code == "" || len(got.ran)+len(got.calls) > 0 || !strings.HasPrefix(full.text, got.text) {
					t.Errorf("%s: %s, broken off at %q: found %s, and whole %s", c.name, name, events[k], &got, &full)
				}
			}
		}
	})
}

// TestCanceled: an application that leaves before the model has ended its reply gets no call, and none
// runs or is recorded as handed over.
func TestCanceled(t *testing.T) {
	eachWire(t, func(g *gate, c *testCase, name string, w wire) {
		if !c.replies[0].calls() {
			return
		}
		events := w.events(&c.replies[0], form{size: 1000})
		for _, k := range []int{0, 1, len(events) / 2, len(events) - 3} {
			ctx, cancel := context.WithCancel(t.Context())
			before := len(g.Journal.Lines())
			request := httptest.NewRequest(http.MethodPost, w.path(), strings.NewReader(w.request(c)+`,"stream":true}`)).WithContext(ctx)
			request.Header.Set("Content-Type", "application/json")
			g.mu.Lock()
			g.ran, g.script = nil, func(_ int, to http.ResponseWriter, r *http.Request) {
				to.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(to, strings.Join(events[:k], ""))
				to.(http.Flusher).Flush()
				cancel()
				<-r.Context().Done()
			}
			g.mu.Unlock()
			got := httptest.NewRecorder()
			g.ServeHTTP(got, request)
			cancel()
			records := strings.Join(g.settled(t)[before:], "\n")
			g.mu.Lock()
			ran := g.ran
			g.mu.Unlock()
			if body := got.Body.String(); strings.Contains(body, "SECRET") || strings.Contains(strings.ReplaceAll(body, `\`, ""), `"query":"go"`) {
				t.Errorf("%s: %s, canceled: %s", c.name, name, body)
			}
			if len(ran) > 0 || strings.Contains(records, "handed_over") || strings.Contains(records, "outcome call tool_call result") {
				t.Errorf("%s: %s, canceled: ran %v, recorded %s", c.name, name, ran, records)
			}
		}
	})
}

package native_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// seen is how a call stands, as the wire says it.
type seen struct {
	CallID    string          `json:"call_id"`
	State     string          `json:"state"`
	Delivered *bool           `json:"delivered"`
	Result    json.RawMessage `json:"tool_result"`
}

// late is a server with tools that answer later, by the end of what until gives, and
// the store to end their calls in.
func late(t *testing.T, authn gateway.Authenticator) (*server.Server, *store.Memory) {
	t.Helper()
	s := store.NewMemory(time.Now)
	d := faceOf(t, io.Discard, func(state *gateway.Config, p *calls.Deps) {
		state.Identity = authn
		p.Store = s
		p.Engine = facetest.ToolFunc(func(tool.Call) (tool.Result, error) {
			return tool.Result{Pending: true, Until: time.Now().Add(time.Hour)}, nil
		})
	})
	return d, s
}

// begin asks for a call, and leaves once the call waits for its tool.
func begin(t *testing.T, d http.Handler, s *store.Memory, headers ...string) string {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(timeNow)).WithContext(ctx)
	r.Header.Set("Content-Type", "text/plain")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w, answered := httptest.NewRecorder(), make(chan struct{})
	go func() {
		defer close(answered)
		d.ServeHTTP(w, r)
	}()
	for waits, end := false, time.Now().Add(time.Minute); !waits; time.Sleep(time.Millisecond) {
		open, err := s.Unfinished(ctx, "", 1)
		if waits = len(open) == 1 && open[0].Step == store.Waiting; err != nil || !waits && time.Now().After(end) {
			t.Fatalf("no call waits: %+v, %v", open, err)
		}
	}
	leave()
	<-answered
	var a seen
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusAccepted || a.State != "pending" || a.CallID == "" || a.CallID != w.Header().Get("Callgate-Call-Id") {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return a.CallID
}

// end ends a call.
func end(t *testing.T, s *store.Memory, id string) {
	t.Helper()
	if _, err := s.Finish(context.Background(), id, store.Ending{State: store.Done, Attempt: "1", Answer: store.Answer{
		Result: []byte(`{"tool_result":{"tool":"time.now","output":{"now":"noon\n"}}}`), Status: 200,
	}}); err != nil {
		t.Fatal(err)
	}
}

// events follows a call, and returns its events one by one; none when the stream
// has ended.
func events(t *testing.T, server *httptest.Server, id string, headers ...string) (next func() *seen, disconnect func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/calls/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || answer.Header.Get("Callgate-Call-Id") != id {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	return func() *seen {
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					s := &seen{}
					if err := json.Unmarshal([]byte(data), s); err != nil {
						t.Error(err)
					}
					return s
				}
			}
			return nil
		}, func() {
			cancel()
			answer.Body.Close()
		}
}

// TestEvents: who follows a call is told how it stands, and what became of it when
// it has; and which of those who are told is the first.
func TestEvents(t *testing.T) {
	d, s := late(t, nil)
	server := httptest.NewServer(d)
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	id := begin(t, d, s)
	first, leaveFirst := events(t, server, id)
	defer leaveFirst()
	gone, leaveGone := events(t, server, id)
	for _, next := range []func() *seen{first, gone} {
		if e := next(); e == nil || e.State != "pending" || e.Result != nil || e.Delivered != nil {
			t.Fatalf("at first: %+v", e)
		}
	}
	leaveGone()
	for deadline := time.Now().Add(time.Minute); d.InFlight() > 1; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("who has left is not noticed")
		}
	}
	end(t, s, id)
	e := first()
	if e == nil || e.State != "done" || e.Delivered == nil || *e.Delivered || string(e.Result) != `{"tool":"time.now","output":{"now":"noon\n"}}` || e.CallID != id {
		t.Fatalf("at the end: %+v", e)
	}
	if e := first(); e != nil {
		t.Errorf("after the end: %+v", e)
	}
	// A later follower gets it too, with delivered: true.
	repeat, disconnect := events(t, server, id)
	defer disconnect()
	if e := repeat(); e == nil || e.State != "done" || e.Delivered == nil || !*e.Delivered {
		t.Errorf("once more: %+v", e)
	}
	if e := repeat(); e != nil {
		t.Errorf("after that: %+v", e)
	}
	w := ask(d, http.MethodGet, "/v1/calls/"+id, "")
	if w.Code != 200 || w.Body.String() != `{"call_id":"`+id+`","state":"done","delivered":true,"tool_result":{"tool":"time.now","output":{"now":"noon\n"}}}`+"\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(d, http.MethodGet, "/v1/calls/call_none/events", ""); w.Code != 404 || codeOf(t, w) != "not_found" {
		t.Errorf("no such call: %d %s", w.Code, w.Body)
	}
}

// TestDeliveredOnce: the first look at a result says so, an answer is one too.
func TestDeliveredOnce(t *testing.T) {
	d, s := late(t, nil)
	id := begin(t, d, s)
	if w := ask(d, http.MethodGet, "/v1/calls/"+id, ""); w.Body.String() != `{"call_id":"`+id+`","state":"pending"}`+"\n" {
		t.Errorf("%s", w.Body)
	}
	end(t, s, id)
	for _, delivered := range []string{"false", "true", "true"} {
		if w := ask(d, http.MethodGet, "/v1/calls/"+id, ""); !strings.Contains(w.Body.String(), `"delivered":`+delivered) {
			t.Errorf("want %s: %s", delivered, w.Body)
		}
	}
	at := faceOf(t, io.Discard, nil)
	answered := ask(at, http.MethodPost, "/v1/calls", timeNow, "Content-Type", "text/plain")
	if w := ask(at, http.MethodGet, "/v1/calls/"+answered.Header().Get("Callgate-Call-Id"), ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"delivered":true`) {
		t.Errorf("after an answer: %d %s", w.Code, w.Body)
	}
}

// two knows two callers by their credentials.
type two struct{}

func (two) Authenticate(credential string) *identity.Principal {
	if credential != "a" && credential != "b" {
		return nil
	}
	return &identity.Principal{Name: credential, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

// TestEventsOfAnother: nobody follows another's call.
func TestEventsOfAnother(t *testing.T) {
	d, s := late(t, two{})
	id := begin(t, d, s, "Authorization", "Bearer a")
	for credential, code := range map[string]string{"b": "not_found", "c": "unauthenticated"} {
		for _, path := range []string{"", "/events"} {
			if w := ask(d, http.MethodGet, "/v1/calls/"+id+path, "", "Authorization", "Bearer "+credential); codeOf(t, w) != code {
				t.Errorf("%s%s: %d %s", credential, path, w.Code, w.Body)
			}
		}
	}
	end(t, s, id)
	if w := ask(d, http.MethodGet, "/v1/calls/"+id, "", "Authorization", "Bearer a"); !strings.Contains(w.Body.String(), `"delivered":false`) {
		t.Errorf("others had it first: %s", w.Body)
	}
}

// TestEventsEndWithTheServer: a gateway that drains does not wait for who follows.
func TestEventsEndWithTheServer(t *testing.T) {
	d, s := late(t, nil)
	server := httptest.NewServer(d)
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	next, disconnect := events(t, server, begin(t, d, s))
	defer disconnect()
	if e := next(); e == nil || e.State != "pending" {
		t.Fatalf("%+v", e)
	}
	d.Drain()
	if e := next(); e != nil {
		t.Errorf("while it drains: %+v", e)
	}
}

package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	enginecallback "github.com/callgate/callgate/engine/callback"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/gateway/faces/callback"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

func TestMain(m *testing.M) { facetest.Main(m) }

func outcome(r audit.Record) bool { return r.Event == audit.Ending }
func dispute(r audit.Record) bool { return r.Event == audit.Decision && r.Verdict == audit.Refused }

// toolEngine is an engine whose tools take every call, and say nothing more.
type toolEngine struct {
	unsubscribe *enginecallback.Unsubscriber

	mu        sync.Mutex
	tasks     []tool.Call
	chosen    []string // what people have chosen, and where it was sent
	responds  error
	accepting func() // is run for each; may be nil
	cancelled []tool.Call
	closed    []string              // threads
	closing   func(context.Context) // is run for each; may be nil
}

func (e *toolEngine) Run(ctx context.Context, t tool.Call) (tool.Result, error) {
	if t.Run.Type == "cancel_subscription" {
		return e.unsubscribe.Run(ctx, t)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tasks = append(e.tasks, t)
	return tool.Result{Pending: true, Attempts: 1}, nil
}

func (e *toolEngine) Cancel(_ context.Context, t tool.Call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cancelled = append(e.cancelled, t)
}

func (e *toolEngine) CheckResponse(_ tool.Call, url string) error {
	if !strings.HasPrefix(url, "http://127.0.0.1:9/") {
		return errors.New("response_url is elsewhere")
	}
	return nil
}

func (e *toolEngine) Respond(_ context.Context, t tool.Call, url string, selected int) error {
	if e.accepting != nil {
		e.accepting()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.chosen = append(e.chosen, fmt.Sprint(t.ID, " ", url, " ", selected))
	return e.responds
}

// world is a gateway of three tools that call back, whose clock a test may move.
type world struct {
	*facetest.Fixture
	t       testing.TB
	config  *configs.Config
	callers gateway.Authenticator // nil: no credentials are required
	keys    *identity.CallbackKeys
	calls   *hookedStore
	engine  *toolEngine
	log     *bytes.Buffer
	mu      sync.Mutex
	ahead   time.Duration
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Now().Add(w.ahead)
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead += d
}

const maxAge = time.Hour

func newWorld(t testing.TB) *world {
	t.Helper()
	tool := func(name, more string) string {
		return fmt.Sprintf("  - {name: %s, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: callback, url: \"http://127.0.0.1:9/invoke\", tool: do, timeout: 1ms, max_age: 1h, max_result_bytes: 20000}%s}\n", name, more)
	}
	c := facetest.Config(t, map[string]string{
		"tools.yaml": "tools:\n" + tool("later.do", "") + tool("later.look", ", effect: read") + tool("later.asked", "") +
			tool("later.strict", ", output_schema: {type: object, required: [id], properties: {id: {type: integer}}}") +
			strings.Replace(tool("later.needs", ""), "{type: object,", "{type: object, required: [n],", 1) +
			"  - {name: cancel_subscription, input_schema: {type: object, required: [tool_call_id], properties: {tool_call_id: {type: string}}}, run: {type: cancel_subscription}}\n",
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
		"approvals.yaml": "rules: {people: {}}\n",
		"policy.csv":     "p, Analyst, *, *, , allow\np, Analyst, *, later.asked, , ask:people\n",
	})
	w := &world{t: t, config: c, keys: (*identity.CallbackKeys)(nil).Rotate(time.Now(), 0), engine: &toolEngine{}, log: &bytes.Buffer{}}
	w.calls = &hookedStore{Memory: store.NewMemory(w.now)}
	w.open()
	return w
}

// again is another gateway with the same calls and keys, as after a restart.
func (w *world) again() *world {
	other := &world{t: w.t, config: w.config, keys: w.keys, calls: w.calls, engine: w.engine, log: w.log}
	other.open()
	return other
}

// at is the same call at another gateway: at one, messages of a thread do not come at the same
// time.
func (c waiting) at(other *world) waiting {
	c.w = other
	return c
}

// open builds the gateway.
func (w *world) open() {
	t := w.t
	t.Helper()
	w.Fixture = facetest.New(t, facetest.Options{Config: w.config, Engine: w.engine, Log: w.log, Change: func(s *gateway.Config, p *calls.Deps) {
		s.Identity = w.callers
		p.Limiter, p.Store, p.Now = ratelimit.NewLocal(w.now), w.calls, w.now
	}})
	w.engine.unsubscribe = enginecallback.NewUnsubscriber(w.Executor.CancelSubscription)
	native.New(native.Options{Executor: w.Executor, Log: w.Logger}).Mount(w.Server)
	callback.New(callback.Options{Executor: w.Executor, Verify: func(token string) string { return w.keys.Verify(token, w.now()) }}).Mount(w.Server)
	t.Cleanup(func() {
		if err := w.Executor.Kernel.Flush(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// waiting is a call that a tool has taken.
type waiting struct {
	w                *world
	id, group, token string
}

// begin asks for a call, of a thread where one is named.
func (w *world) begin(tool, thread string) waiting {
	w.t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(`{"tool":{"name":"`+tool+`","arguments":{"n":1}}}`))
	r.Header.Set("Content-Type", "text/plain")
	if thread != "" {
		r.Header.Set("Callgate-Thread", thread)
	}
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	if answer.Code != http.StatusAccepted {
		w.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	c := waiting{w: w, id: answer.Header().Get("Callgate-Call-Id"), group: thread}
	if thread == "" {
		c.group = c.id
	}
	token, err := w.keys.Issue(c.id, w.now(), w.now().Add(maxAge+store.Retention))
	if err != nil {
		w.t.Fatal(err)
	}
	c.token = token
	return c
}

// message is one of a type about a call, with more members, which may replace those
// that it has.
func (c waiting) message(kind string, more ...any) string {
	m := map[string]any{"type": kind, "group_id": c.group, "id": c.id}
	if kind == "subscription_event" {
		m["tool_call_id"] = m["id"]
		delete(m, "id")
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i].(string)] = more[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return string(b)
}

func (c waiting) result(more ...any) string { return c.message("tool_result", more...) }

// post posts to the address of a token.
func (w *world) post(token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/"+token, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	return answer
}

// says posts a message, which is to be answered with a status.
func (c waiting) says(status int, body string) {
	c.w.t.Helper()
	if r := c.w.post(c.token, body); r.Code != status {
		c.w.t.Errorf("%.300s: answered %d %s, expected %d", body, r.Code, r.Body, status)
	}
}

// state is how a call stands.
type state struct {
	State        string
	AuthURL      string          `json:"auth_url"`
	Display      json.RawMessage `json:"display_as"`
	Subscription bool
	Result       *struct {
		Tool   string
		Output map[string]json.RawMessage
	} `json:"tool_result"`
	raw string
}

func (c waiting) state() (s state) {
	c.w.t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/v1/calls/"+c.id, nil)
	answer := httptest.NewRecorder()
	c.w.ServeHTTP(answer, r)
	if err := json.Unmarshal(answer.Body.Bytes(), &s); err != nil || answer.Code != http.StatusOK {
		c.w.t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	s.raw = answer.Body.String()
	return s
}

// pending tells that nothing has become of a call.
func (c waiting) pending() {
	c.w.t.Helper()
	if s := c.state(); s.State != "pending" || s.Result != nil {
		c.w.t.Errorf("the call stands as %s", s.raw)
	}
	if n := len(c.w.Journal.Find(c.id, outcome)); n > 0 {
		c.w.t.Errorf("the call has %d outcomes", n)
	}
}

// output is what a call has ended with, which is a result.
func (c waiting) output() string {
	c.w.t.Helper()
	s := c.state()
	if s.State == "pending" || s.Result == nil {
		c.w.t.Fatalf("the call stands as %s", s.raw)
	}
	b, err := json.Marshal(s.Result.Output)
	if err != nil {
		c.w.t.Fatal(err)
	}
	// The store tells of the end before its record is written, where the store failed
	// first and the end is tried again in the background.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.w.Executor.Kernel.Flush(ctx); err != nil {
		c.w.t.Fatal(err)
	}
	if o := c.w.Journal.Find(c.id, outcome); len(o) != 1 {
		c.w.t.Errorf("the call has %d outcomes", len(o))
	}
	return string(b)
}

// Each type that is accepted is answered with 200.
func TestTIR01AcceptedIs200(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	c.says(200, c.message("oauth", "auth_url", "https://id.example/x"))
	c.says(200, c.result("text", "done", "subscription", true, "call_id", nil))
	c.says(200, c.message("subscription_event", "text", "news"))
	c.says(200, c.message("subscription_event", "text", "last", "final", true))
}

// A malformed message is refused with 400, and the call does not change.
func TestTIR02Malformed(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	bodies := []string{
		"", "null", "[]", "7", `"x"`, "{", c.result("text", "x") + "x", c.result("text", "x") + c.result("text", "x"),
		strings.Replace(c.result("text", "x"), `"text"`, `"text":"y","text"`, 1),
		strings.Replace(c.result("text", "x"), `"x"`, "\"\xff\"", 1),
		strings.Replace(c.result("text", "x"), `"x"`, `"\ud800"`, 1),
		c.result("text", nil), c.result(), c.result("text", 7), c.result("text", map[string]any{}), c.result("text", "x", "type", nil),
		c.result("text", "x", "type", "TOOL_RESULT"), c.result("text", "x", "type", "tool_results"), c.result("text", "x", "type", ""),
		c.result("text", "x", "group_id", nil), c.result("text", "x", "group_id", 7), c.result("text", "x", "group_id", ""), c.result("text", "x", "id", nil), c.result("text", "x", "id", []string{c.id}),
		c.result("text", "x", "call_id", 7), c.result("text", "x", "subscription", "true"), c.result("text", "x", "subscription", 1),
		c.result("content", "x"), c.result("content", []any{"x"}), c.result("content", []any{map[string]any{"type": "text"}}),
		c.result("content", []any{map[string]any{"type": "sound", "data": "x"}}),
		c.result("content", []any{map[string]any{"type": "image", "data": "!", "mediaType": "image/png"}}),
		c.result("content", []any{map[string]any{"type": "image", "data": "AAAA", "mediaType": "text/html"}}),
		c.result("content", []any{map[string]any{"type": "image", "data": "AAAA"}}),
		c.message("oauth"), c.message("oauth", "auth_url", 7), c.message("oauth", "auth_url", ""),
		c.message("subscription_event"), c.message("subscription_event", "text", 7), c.message("subscription_event", "text", "x", "final", "yes"),
		c.message("subscription_event", "text", strings.Repeat("x", events.MaxEventBytes+1)),
		c.result("text", json.RawMessage(strings.Repeat("[", 100)+strings.Repeat("]", 100))),
	}
	for _, body := range bodies {
		c.says(400, body)
	}
	c.pending()
	c.says(200, c.result("text", "x", "later_versions", map[string]any{"say": "more"}))
}

// unmatched is every way of not matching a call that waits.
func unmatched(t testing.TB, w *world) (answers map[string]*httptest.ResponseRecorder, untouched []waiting) {
	t.Helper()
	mine, other, expired, ended, brief := w.begin("later.do", "t"), w.begin("later.do", "other"), w.begin("later.do", "t"), w.begin("later.look", "t"), w.begin("later.look", "t")
	ended.says(200, ended.result("text", "x"))
	body := mine.result("text", "forged")
	issue := func(keys *identity.CallbackKeys, id string, until time.Time) string {
		token, err := keys.Issue(id, w.now(), until)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	soon := w.now().Add(time.Minute)
	foreign := (*identity.CallbackKeys)(nil).Rotate(time.Now(), 0)
	old := issue(w.keys, mine.id, w.now().Add(-time.Second))
	middle := len(mine.token) / 2
	swapped := mine.token[:middle] + string(mine.token[middle]^1) + mine.token[middle+1:]
	answers = map[string]*httptest.ResponseRecorder{
		"no token at all":               w.post("x", body),
		"a token that is cut":           w.post(mine.token[:len(mine.token)-1], body),
		"a token that is longer":        w.post(mine.token+"A", body),
		"a token with a bit":            w.post(swapped, body),
		"a long token":                  w.post(strings.Repeat("A", 4000), body),
		"an id for a token":             w.post(mine.id, body),
		"an unknown key":                w.post(issue(foreign, mine.id, soon), body),
		"an expired token":              w.post(old, body),
		"an unknown call":               w.post(issue(w.keys, "call_UNKNOWN", soon), mine.result("text", "x", "id", "call_UNKNOWN")),
		"another call's token":          w.post(other.token, body),
		"another id":                    w.post(mine.token, mine.result("text", "x", "id", other.id)),
		"another group":                 w.post(mine.token, mine.result("text", "x", "group_id", "other")),
		"its id for its group":          w.post(mine.token, mine.result("text", "x", "group_id", mine.id)),
		"a group in other case":         w.post(mine.token, mine.result("text", "x", "group_id", "T")),
		"an ended call's oauth":         w.post(ended.token, ended.message("oauth", "auth_url", "https://id.example/")),
		"an event of no subscription":   w.post(ended.token, ended.message("subscription_event", "text", "x")),
		"an event of a call that waits": w.post(mine.token, mine.message("subscription_event", "text", "x")),
		"not JSON, and no token":        w.post("x", "not JSON"),
		"another answer":                w.post(ended.token, ended.result("text", "another")),
		"no token, and a query":         w.post("x?y=1", body),
		"a slash behind no token":       w.post("x/", body),
		"a slash behind a token":        w.post(mine.token+"/", body),
		"more behind a token":           w.post(mine.token+"/x", body),
		"a slash before a token":        w.post("/"+mine.token, body),
		"nothing where a token stands":  w.post("", body),
		"a token that is encoded":       w.post("%41"+mine.token[1:], body),
	}
	for name, header := range map[string]string{"a header that means nothing": "Callgate-Nothing", "a thread twice": "Callgate-Thread", "a type twice": "Content-Type"} {
		r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/x", strings.NewReader(body))
		r.Header[header] = []string{"a", "b"}
		answers[name] = httptest.NewRecorder()
		w.ServeHTTP(answers[name], r)
	}
	w.advance(maxAge)
	answers["a call whose time is over"] = w.post(expired.token, expired.result("text", "x"))
	answers["the same, once more"] = w.post(expired.token, expired.result("text", "x"))
	answers["oauth when its time is over"] = w.post(brief.token, brief.message("oauth", "auth_url", "https://id.example/"))
	w.advance(-maxAge)
	return answers, []waiting{mine, other}
}

// An answer enters only where group, id and address are those of one call that waits.
func TestTIR03OnlyACallThatWaits(t *testing.T) {
	w := newWorld(t)
	answers, untouched := unmatched(t, w)
	for name, r := range answers {
		if r.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, r.Code, r.Body)
		}
	}
	for _, c := range untouched {
		c.pending()
		c.says(200, c.result("text", "good"))
		if got := c.output(); got != `{"text":"good"}` {
			t.Errorf("found %s", got)
		}
	}
}

// All that does not match is answered by the same bytes, and enters nothing. A message by
// the right address that is too late, or of another call or thread, is recorded.
func TestTIR04UnmatchedIsOneAnswer(t *testing.T) {
	w := newWorld(t)
	answers, untouched := unmatched(t, w)
	first := ""
	for name, r := range answers {
		h := r.Header().Clone()
		h.Del("Traceparent")
		output := fmt.Sprint(r.Code, h, r.Body)
		if first == "" {
			first = output
		}
		if output != first {
			t.Errorf("%s: %s\nelsewhere: %s", name, output, first)
		}
	}
	for i, want := range []int{4, 1} {
		foreign := w.Journal.Find(untouched[i].id, dispute)
		for _, r := range foreign {
			if r.Code != refusal.NotFound || r.Stage != refusal.Identity || len(r.InputSHA256) != 64 {
				t.Errorf("%+v", r)
			}
		}
		if len(foreign) != want {
			t.Errorf("%d messages of another call or thread are written down, expected %d", len(foreign), want)
		}
	}
	late := 0
	for _, r := range w.Journal.Records() {
		if dispute(r) && r.Code == refusal.NotFound && r.Stage != refusal.Identity {
			late++
		}
		if r.Outcome == audit.Result && !strings.HasPrefix(r.Tool, "later.look") {
			t.Errorf("an answer has entered: %+v", r)
		}
	}
	if late != 2 {
		t.Errorf("%d answers that were too late are written down, expected 2", late)
	}
}

// The same answer again changes nothing and is no fault, however it is written;
// another one is refused, and written down without what it said.
func TestTIR05Duplicates(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { c.says(200, c.result("text", `{"n": 1}`)) })
	}
	all.Wait()
	c.says(200, fmt.Sprintf("  {\"id\":%q,\n\"text\":\"{\\u0022n\\u0022: 1}\", \"type\":\"tool_result\",\"group_id\":\"t\"} ", c.id))
	if got := c.output(); got != `{"n":1}` {
		t.Errorf("found %s", got)
	}
	for i := range 20 {
		c.says(404, c.result("text", fmt.Sprint("hunter2 ", i)))
	}
	c.says(404, c.result("text", `{"n":1}`)) // another text
	if got := c.output(); got != `{"n":1}` {
		t.Errorf("found %s", got)
	}
	disputes := w.Journal.Find(c.id, dispute)
	digests := map[string]bool{}
	for _, r := range disputes {
		digests[r.InputSHA256] = true
		if r.Code != refusal.IdempotencyConflict || r.Stage != refusal.Execute || len(r.InputSHA256) != 64 || strings.Contains(fmt.Sprintf("%+v", r), "hunter2") {
			t.Errorf("%+v", r)
		}
	}
	if len(disputes) != 8 || len(digests) != 8 {
		t.Errorf("%d conflicts are written down, of %d messages; expected 8", len(disputes), len(digests))
	}
}

// A conflict that cannot be written down is to come again.
func TestConflictWithoutAJournal(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	c.says(200, c.result("text", "x"))
	w.Journal.SetFailing(true)
	for range 20 {
		c.says(503, c.result("text", "y"))
	}
	w.Journal.SetFailing(false)
	c.says(404, c.result("text", "y"))
	if d := w.Journal.Find(c.id, dispute); len(d) != 1 || d[0].Code != refusal.IdempotencyConflict {
		t.Errorf("%+v", d)
	}
}

// A tool cannot fill the log with messages that name another call: the first are
// written down, whatever they do, and the log of requests tells them from those that
// no token is good for.
func TestMessagesOfAnotherCallAreBounded(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	w.Journal.SetFailing(true)
	c.says(503, c.result("text", "hunter2", "id", "call_of_nobody"))
	w.Journal.SetFailing(false)
	for i := range 10 {
		c.says(404, c.result("text", fmt.Sprint("hunter2 ", i), "id", "call_of_nobody"))
		c.says(404, c.message("oauth", "auth_url", fmt.Sprint("https://id.example/", i), "group_id", "other"))
		c.says(404, c.message("subscription_event", "text", fmt.Sprint("hunter2 ", i), "group_id", "other"))
	}
	c.pending()
	foreign := w.Journal.Find(c.id, dispute)
	digests := map[string]bool{}
	for _, r := range foreign {
		digests[r.InputSHA256] = true
		if r.Code != refusal.NotFound || r.Stage != refusal.Identity || r.Tool != "later.do" || strings.Contains(fmt.Sprintf("%+v", r), "hunter2") {
			t.Errorf("%+v", r)
		}
	}
	if len(foreign) != 8 || len(digests) != 8 {
		t.Errorf("%d are written down, of %d messages; expected 8", len(foreign), len(digests))
	}
	if n := strings.Count(w.log.String(), "names another call or thread"); n != 30 {
		t.Errorf("the log of requests tells of %d, expected 30", n)
	}
	w.post("x", c.result("text", "x"))
	if n := strings.Count(w.log.String(), `"cause"`); n != 30 {
		t.Errorf("%d requests have a cause, expected 30", n)
	}
}

// Content for people never alters the model's result.
func TestTIR06DisplayIsForPeople(t *testing.T) {
	w := newWorld(t)
	for _, display := range []any{
		nil,
		[]any{},
		[]any{map[string]any{"type": "text", "content": "shown"}},
		[]any{map[string]any{"type": "diff", "content": map[string]any{"path": "a", "patch": "--- a\n+++ a\n"}}, map[string]any{"type": "text", "content": "shown"}},
		[]any{map[string]any{"type": "hologram", "content": map[string]any{"tool_result": "forged"}}},
		"x", 7, true, map[string]any{"type": "text", "content": "x"}, []any{"x", nil, 7, []any{}},
		[]any{map[string]any{"type": "weird", "content": 1}, map[string]any{"type": "weird"}, map[string]any{"content": "x"}, map[string]any{"type": map[string]any{}}},
	} {
		for _, answer := range [][]any{{"text", "all of it"}, {"text", `{"a":1}`}, {"text", "Error: it is full."}, {"content", []any{map[string]any{"type": "text", "text": "all of it"}}}} {
			plain, visible := w.begin("later.do", "t"), w.begin("later.do", "t")
			plain.says(200, plain.result(answer...))
			visible.says(200, visible.result(append(slices.Clone(answer), "display_as", display)...))
			if a, b := plain.output(), visible.output(); a != b {
				t.Errorf("with %v: %s, without: %s", display, b, a)
			}
		}
	}
}

// A client that shows a result gets the segments of known types, in their order, without
// those that cannot be shown; and where none is left, the result itself.
func TestTIR07SegmentsThatCanBeShown(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	segment := func(kind string, content any) map[string]any { return map[string]any{"type": kind, "content": content} }
	diff := func(more ...string) map[string]any {
		m := map[string]any{"path": "a"}
		for _, name := range more {
			m[name] = "--- a\n+++ a\n"
		}
		return m
	}
	image := func(data, media string) map[string]any { return map[string]any{"data": data, "mediaType": media} }
	good := []any{
		segment("image", image("AAAA", "image/png")), segment("text", ""), segment("diff", diff("patch")), segment("text", "\u202e\u200bhidden\x1b[2J"),
	}
	bad := []any{
		"x", nil, 7, map[string]any{}, segment("hologram", "x"), segment("weird", 1), map[string]any{"type": "weird"}, map[string]any{"content": "x"},
		segment("", "x"), map[string]any{"type": 7, "content": "x"}, segment("text", map[string]any{}), segment("text", nil), map[string]any{"type": "text"},
		segment("diff", "x"), segment("diff", diff()), segment("diff", nil), segment("image", "x"), segment("image", image("!", "image/png")), segment("image", image("AAAA", "text/html")),
	}
	mixed := slices.Clone(bad)
	for i, s := range good {
		mixed = slices.Insert(mixed, 5*i, s)
	}
	c.says(200, c.result("text", "x", "display_as", mixed))
	s := c.state()
	var got []any
	if err := json.Unmarshal(s.Display, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(good) {
		t.Errorf("found %s", s.Display)
	}
	for _, none := range append([]any{"x", 7, true, map[string]any{}, []any{}, bad}, bad...) {
		c := w.begin("later.do", "t")
		c.says(200, c.result("text", "x", "display_as", none))
		if s := c.state(); s.Display != nil {
			t.Errorf("%v: found %s", none, s.Display)
		}
	}
	if strings.ContainsAny(s.raw, "\u202e\u200b\x1b") {
		t.Errorf("something hides in %q", s.raw)
	}
	c = w.begin("later.do", "t")
	c.says(200, c.result("text", "x"))
	if s := c.state(); s.Display != nil {
		t.Errorf("found %s", s.Display)
	}
}

// A text that is an object is one; any other is text, and so is one that two readers
// might read otherwise.
func TestTIR08TextIsReadAsJSONWhereItIsAnObject(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		`{"a":{"b":[1,2.50,1e2]}}`:      `{"a":{"b":[1,2.50,1e2]}}`,
		" {\"a\":1}\n":                  `{"a":1}`,
		`{}`:                            `{}`,
		``:                              `{"text":""}`,
		`[1]`:                           `{"text":"[1]"}`,
		`7`:                             `{"text":"7"}`,
		`{"a":1,"a":2}`:                 `{"text":"{\"a\":1,\"a\":2}"}`,
		`{"a":1} and more`:              `{"text":"{\"a\":1} and more"}`,
		`{"error":{"code":"internal"}}`: `{"value":{"error":{"code":"internal"}}}`,
		`{"tool":{"name":"x"}}`:         `{"tool":{"name":"x"}}`,
		"error: not at the start":       `{"text":"error: not at the start"}`,
	} {
		c := w.begin("later.do", "")
		c.says(200, c.result("text", text))
		if got := c.output(); got != want {
			t.Errorf("%q: found %s, expected %s", text, got, want)
		}
	}
	c := w.begin("later.strict", "")
	c.says(200, c.result("text", `{"id":"seven"}`))
	if got := c.output(); !strings.Contains(got, `"code":"invalid_result"`) || strings.Contains(got, "seven") {
		t.Errorf("found %s", got)
	}
	c = w.begin("later.strict", "")
	c.says(200, c.result("text", `{"id":7}`))
	if got := c.output(); got != `{"id":7}` {
		t.Errorf("found %s", got)
	}
}

// A text that says that something went wrong is the refusal, with its words.
func TestErrorTexts(t *testing.T) {
	w := newWorld(t)
	for _, answer := range [][]any{{"text", "Error: it is full. Ask for less."}, {"content", []any{map[string]any{"type": "text", "text": "Error: it is full. Ask for less."}}}} {
		c := w.begin("later.do", "")
		c.says(200, c.result(answer...))
		if got := c.output(); got != `{"error":{"code":"tool_failed","stage":"execute","message":"Error: it is full. Ask for less.","retryable":false}}` {
			t.Errorf("found %s", got)
		}
		if o := w.Journal.Find(c.id, outcome); o[0].Outcome != audit.Failed || o[0].Code != refusal.ToolFailed {
			t.Errorf("%+v", o)
		}
	}
	for _, text := range []string{strings.Repeat("x", 30000), "Error: " + strings.Repeat("x", 30000)} {
		c := w.begin("later.do", "")
		c.says(200, c.result("text", text))
		if got := c.output(); !strings.Contains(got, `"code":"result_too_large"`) || len(got) > 1000 {
			t.Errorf("found %.200s", got)
		}
	}
	if strings.Contains(w.log.String(), "it is full") {
		t.Error("the log holds what a tool said")
	}
}

// A model reads text here, and no image: there is a placeholder where each was, and
// people are shown them.
func TestTIR11ImagesArePlaceholders(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "")
	c.says(200, c.result("text", "loses", "content", []any{
		map[string]any{"type": "text", "text": "before"},
		map[string]any{"type": "image", "data": "aHVudGVyMg==", "mediaType": "image/png"},
		map[string]any{"type": "text", "text": "behind"},
	}))
	want := `{"content":[{"text":"before","type":"text"},{"text":"[an image of the type image/png, 7 bytes, which is not shown to you]","type":"text"},{"text":"behind","type":"text"}]}`
	if got := c.output(); got != want {
		t.Errorf("found %s", got)
	}
	if s := c.state(); string(s.Display) != `[{"content":{"data":"aHVudGVyMg==","mediaType":"image/png"},"type":"image"}]` {
		t.Errorf("shown is %s", s.Display)
	}
}

// A body is bounded, and read only where its token is good.
func TestTIR16BodiesAreBounded(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "")
	long := c.result("text", strings.Repeat("x", 2<<20))
	c.says(413, long)
	unread := &counter{}
	r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/"+c.token[:20], unread)
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, r)
	if answer.Code != http.StatusNotFound || unread.n > 0 {
		t.Errorf("%d, and %d bytes were read", answer.Code, unread.n)
	}
	c.pending()
	for header, value := range map[string]string{"Content-Type": "text/plain", "Content-Encoding": "gzip"} {
		r := httptest.NewRequest(http.MethodPost, "/v1/callbacks/"+c.token, strings.NewReader(c.result("text", "x")))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(header, value)
		answer := httptest.NewRecorder()
		if w.ServeHTTP(answer, r); answer.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", header, answer.Code)
		}
	}
	// A tool that signs its requests elsewhere needs no signature here.
	r = httptest.NewRequest(http.MethodPost, "/v1/callbacks/"+c.token, strings.NewReader(c.result("text", "x")))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x, Signature=y")
	answer = httptest.NewRecorder()
	if w.ServeHTTP(answer, r); answer.Code != http.StatusOK {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}

type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

// Neither tokens nor what tools say stand in the log.
func TestTIR12NoTokenIsWrittenDown(t *testing.T) {
	w := newWorld(t)
	c := w.begin("later.do", "t")
	c.says(400, "hunter2")
	c.says(200, c.result("text", "hunter2"))
	c.says(404, c.result("text", "hunter3"))
	w.post(c.token+"x", "")
	r := httptest.NewRequest(http.MethodGet, "/v1/callbacks/"+c.token, nil)
	answer := httptest.NewRecorder()
	if w.ServeHTTP(answer, r); answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("%d", answer.Code)
	}
	r = httptest.NewRequest(http.MethodPost, "/v1/callbacks/"+c.token+"/x", nil)
	answer = httptest.NewRecorder()
	if w.ServeHTTP(answer, r); answer.Code != http.StatusNotFound {
		t.Errorf("%d", answer.Code)
	}
	records, err := json.Marshal(w.Journal.Records())
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{w.log.String(), string(records)} {
		for _, secret := range []string{c.token, c.token[:30], c.token[len(c.token)-30:], "hunter"} {
			if strings.Contains(where, secret) {
				t.Errorf("found %q in %s", secret, where)
			}
		}
	}
	if !strings.Contains(w.log.String(), `"route":"/v1/callbacks/*token"`) {
		t.Error("the requests are not in the log at all")
	}
}

// A tool that writes its own address into what it says gives it to nobody.
func TestTIR12NoTokenGoesOn(t *testing.T) {
	w := newWorld(t)
	const at, hidden = "https://gateway.example/v1/callbacks/", "[callback address]"
	escaped := func(text string) string {
		var b strings.Builder
		for _, c := range text {
			fmt.Fprintf(&b, "\\u%04x", c)
		}
		return b.String()
	}
	for name, of := range map[string]struct {
		answer func(token string) []any
		want   string
	}{
		"a text":                    {func(token string) []any { return []any{"text", "Go to " + at + token + " or " + token} }, `{"text":"Go to ` + at + hidden + ` or ` + hidden + `"}`},
		"an error":                  {func(token string) []any { return []any{"text", "Error: " + token + "."} }, `{"error":{"code":"tool_failed","stage":"execute","message":"Error: ` + hidden + `.","retryable":false}}`},
		"an object":                 {func(token string) []any { return []any{"text", `{"a":["` + at + token + `"],"` + token + `":1.50}`} }, `{"` + hidden + `":1.50,"a":["` + at + hidden + `"]}`},
		"an object of escapes":      {func(token string) []any { return []any{"text", `{"a":"` + escaped(token) + `","n":1.50}`} }, `{"a":"` + hidden + `","n":1.50}`},
		"a name of escapes":         {func(token string) []any { return []any{"text", `{"` + escaped(token) + `":1}`} }, `{"` + hidden + `":1}`},
		"two names that are one":    {func(token string) []any { return []any{"text", `{"` + token + `":1,"` + hidden + `":2}`} }, `{"text":"{\"` + hidden + `\":1,\"` + hidden + `\":2}"}`},
		"escapes of something else": {func(string) []any { return []any{"text", `{"a":"\u0041","n":1.50}`} }, `{"a":"\u0041","n":1.50}`},
		"content": {func(token string) []any {
			return []any{"content", []any{map[string]any{"type": "text", "text": token}, map[string]any{"type": "text", "text": "x" + token + "x"}}}
		}, `{"content":[{"text":"` + hidden + `","type":"text"},{"text":"x` + hidden + `x","type":"text"}]}`},
		"what people are shown": {func(token string) []any {
			return []any{"text", "x", "display_as", []any{
				map[string]any{"type": "text", "content": token, token: "x"}, map[string]any{"type": "diff", "content": map[string]any{"path": token, "patch": token, token: "x"}},
			}}
		}, `{"text":"x"}`},
	} {
		c := w.begin("later.do", "")
		events := c.follow()
		c.says(200, c.result(append(of.answer(c.token), "subscription", true)...))
		if got := c.output(); got != of.want {
			t.Errorf("%s: found %s, expected %s", name, got, of.want)
		}
		c.says(200, c.result(append(of.answer(c.token), "subscription", true)...)) // it is the same
		c.says(200, c.message("subscription_event", "text", name+" "+c.token))
		all := c.state().raw
		for e := ""; !strings.HasPrefix(e, "subscription "); all += e {
			e = next(t, events)
		}
		if strings.Contains(all, c.token) || strings.Contains(all, escaped(c.token)) || !strings.Contains(all, name+" "+hidden) {
			t.Errorf("%s: shown is %s", name, all)
		}
	}
	c := w.begin("later.do", "t")
	c.says(400, c.message("oauth", "auth_url", "https://id.example/?back="+c.token))
	c.pending()
	// The masked text is not the tool's text.
	c.says(200, c.result("text", c.token))
	c.says(404, c.result("text", hidden))
}

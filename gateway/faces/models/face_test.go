package models_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/models"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

func TestMain(m *testing.M) { facetest.Main(m) }

// provider is an upstream that lists its models.
type provider struct {
	*httptest.Server
	asked atomic.Int64
	// wait is closed to let it answer; nil: it answers at once.
	wait chan struct{}

	mu     sync.Mutex
	answer string
}

func newProvider(t *testing.T, answer string) *provider {
	p := &provider{answer: answer}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if p.wait != nil {
			<-p.wait
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.answer == "" || r.URL.Path != "/v1/models" || r.Method != http.MethodGet || r.Header.Get("Authorization") != "Bearer own-key" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, p.answer)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) says(answer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *provider) definition(name string, models ...upstream.Model) upstream.Definition {
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Models, d.Retries = name, p.URL+"/v1", models, 0
	d.Credential = tool.Bearer("env:own-key")
	d.Rules.Speaks = []upstream.Wire{upstream.ChatWire, upstream.MessagesWire}
	return d
}

// fixture is a face with all that stands behind it.
type fixture struct {
	*facetest.Fixture
	log *bytes.Buffer
	set *upstream.Set
	now time.Time
}

func open(t *testing.T, wait time.Duration, change func(*gateway.Config, *calls.Deps), definitions ...upstream.Definition) *fixture {
	t.Helper()
	f := &fixture{log: &bytes.Buffer{}, now: time.Now()}
	f.Fixture = facetest.New(t, facetest.Options{Config: facetest.Vectors(t), Change: change, Log: f.log})
	f.load(t, definitions...)
	client := upstream.NewClient(upstream.Options{ReadSecret: facetest.Secret})
	t.Cleanup(client.Close)
	models.New(models.Options{
		Executor: f.Executor, Upstreams: func() *upstream.Set { return f.set }, Client: client, Log: f.Logger, Wait: wait,
		Refuse: refuseAs("openai"), RefuseAnthropic: refuseAs("anthropic"), Now: func() time.Time { return f.now },
	}).Mount(f.Server)
	return f
}

func refuseAs(api string) func(*gin.Context, *refusal.Error) {
	return func(c *gin.Context, refused *refusal.Error) {
		server.LogRefusal(c, refused)
		c.String(refused.Status(), "%s %s: %s", api, refused.Code, refused.Message)
		c.Abort()
	}
}

func (f *fixture) load(t *testing.T, definitions ...upstream.Definition) {
	t.Helper()
	var err error
	if f.set, err = upstream.New(definitions); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) get(target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, http.NoBody)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

var anthropic = []string{"Anthropic-Version", "2023-06-01"}

// The list has the models named and those that wildcards allow and the upstream has, in the
// shape of the API that asks (AM-81, AM-05).
func TestList(t *testing.T) {
	p := newProvider(t, `{"data":[{"id":"gpt-5","created":1700000000},{"id":"text-1"},{"id":"gpt-5"},{"id":"m"},{"id":"gpt-mini"},{"id":"gpt-x"}]}`)
	q := newProvider(t, `{"data":[{"id":"claude-1","display_name":"Claude One","created_at":"2026-01-02T03:04:05Z"},{"id":"gpt-9"},{"id":"org/a b"},{"id":"x"}]}`)
	q.says(`{"data":[{"id":"claude-1","display_name":"Claude One","created_at":"2026-01-02T03:04:05Z"},{"id":"gpt-9"},{"id":"org/a"}]}`)
	f := open(t, 0, nil,
		p.definition("one", upstream.Model{ID: "m", UpstreamModel: "model-1"}, upstream.Model{ID: "gpt-*"}, upstream.Model{ID: "gpt-x", UpstreamModel: "y"}),
		q.definition("two", upstream.Model{ID: "*"}),
	)
	const one = `{"id":"m","object":"model","created":0,"owned_by":"one"},{"id":"gpt-x","object":"model","created":0,"owned_by":"one"},{"id":"gpt-5","object":"model","created":1700000000,"owned_by":"one"},{"id":"gpt-mini","object":"model","created":0,"owned_by":"one"}`
	const two = `{"id":"claude-1","object":"model","created":1767323045,"owned_by":"two"},{"id":"org/a","object":"model","created":0,"owned_by":"two"}`
	for range 3 {
		if w := f.get("/v1/models"); w.Code != 200 || w.Body.String() != `{"object":"list","data":[`+one+`,`+two+`]}`+"\n" {
			t.Errorf("OpenAI's: %d %s", w.Code, w.Body)
		}
	}
	w := f.get("/v1/models?limit=1000", anthropic...)
	const want = `{"data":[{"type":"model","id":"m","display_name":"m","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"gpt-x","display_name":"gpt-x","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"gpt-5","display_name":"gpt-5","created_at":"2023-11-14T22:13:20Z"},{"type":"model","id":"gpt-mini","display_name":"gpt-mini","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"claude-1","display_name":"Claude One","created_at":"2026-01-02T03:04:05Z"},{"type":"model","id":"org/a","display_name":"org/a","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"m","last_id":"org/a"}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("Anthropic's: %d %s", w.Code, w.Body)
	}
	for target, c := range map[string]struct {
		headers []string
		status  int
		answer  string
	}{
		"/v1/models/m":                            {nil, 200, `{"id":"m","object":"model","created":0,"owned_by":"one"}` + "\n"},
		"/v1/models/claude-1":                     {anthropic, 200, `{"type":"model","id":"claude-1","display_name":"Claude One","created_at":"2026-01-02T03:04:05Z"}` + "\n"},
		"/v1/models/org/a":                        {nil, 200, `{"id":"org/a","object":"model","created":0,"owned_by":"two"}` + "\n"},
		"/v1/models/org%2Fa":                      {nil, 200, `{"id":"org/a","object":"model","created":0,"owned_by":"two"}` + "\n"},
		"/v1/models/org%252Fa":                    {nil, 404, `openai not_found: There is no model "org%2Fa"`},
		"/v1/models/gpt-9":                        {nil, 404, "openai not_found"},
		"/v1/models/":                             {anthropic, 404, "anthropic not_found"},
		"/v1/models/text-1":                       {anthropic, 404, "anthropic not_found"},
		"/v1/models/" + strings.Repeat("x", 5000): {nil, 404, "openai not_found"},
		"/v1/models?limit=2":                      {nil, 400, "openai bad_request: The path has a query"},
		"/v1/models/m?limit=2":                    {nil, 400, "openai bad_request"},
		"/v1/models?limits=2":                     {anthropic, 400, "anthropic bad_request"},
		"/v1/models?limit=0":                      {anthropic, 400, "anthropic bad_request"},
		"/v1/models?limit=1001":                   {anthropic, 400, "anthropic bad_request"},
		"/v1/models?limit=x":                      {anthropic, 400, "anthropic bad_request"},
		"/v1/models?after_id=none":                {anthropic, 400, "anthropic bad_request"},
		"/v1/models?after_id=m&before_id=m":       {anthropic, 400, "anthropic bad_request"},
		"/v1/models?beta=true&limit=1":            {anthropic, 200, `"has_more":true,"first_id":"m","last_id":"m"}`},
	} {
		if w := f.get(target, c.headers...); w.Code != c.status || !strings.Contains(w.Body.String(), c.answer) {
			t.Errorf("%.60s: %d %s; expected %d %s", target, w.Code, w.Body, c.status, c.answer)
		}
	}
	if p.asked.Load() != 1 || q.asked.Load() != 1 {
		t.Errorf("the upstreams were asked %d and %d times", p.asked.Load(), q.asked.Load())
	}
	// The pages, in both directions, have every model once.
	forward, backward := "", ""
	for after := ""; ; {
		w := f.get("/v1/models?limit=4&after_id="+url.QueryEscape(after), anthropic...)
		forward += ids(w.Body.String())
		if !strings.Contains(w.Body.String(), `"has_more":true`) {
			break
		}
		after = member(w.Body.String(), "last_id")
	}
	for before := "org/a"; ; {
		w := f.get("/v1/models?limit=2&before_id="+url.QueryEscape(before), anthropic...)
		backward = ids(w.Body.String()) + backward
		if !strings.Contains(w.Body.String(), `"has_more":true`) {
			break
		}
		before = member(w.Body.String(), "first_id")
	}
	if forward != "m gpt-x gpt-5 gpt-mini claude-1 org/a " || backward+"org/a " != forward {
		t.Errorf("the pages have %q, and backward %q", forward, backward)
	}
}

// ids are the ids of a page, each with a space behind it.
func ids(body string) string {
	all := ""
	for _, part := range strings.Split(body, `"id":"`)[1:] {
		all += part[:strings.IndexByte(part, '"')] + " "
	}
	return all
}

func member(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// Models of an upstream that does not speak the protocol of an API are not listed in it: no face of
// it would serve them.
func TestListByProtocol(t *testing.T) {
	p, q, r := newProvider(t, `{"data":[{"id":"p-1"}]}`), newProvider(t, `{"data":[{"id":"q-1"}]}`), newProvider(t, `{"data":[{"id":"r-1"}]}`)
	chat, messages, responses := p.definition("p", upstream.Model{ID: "p-*"}, upstream.Model{ID: "p"}), q.definition("q", upstream.Model{ID: "q-*"}, upstream.Model{ID: "q"}), r.definition("r", upstream.Model{ID: "r-*"})
	chat.Rules.Speaks, messages.Rules.Speaks, responses.Rules.Speaks = []upstream.Wire{upstream.ChatWire}, []upstream.Wire{upstream.MessagesWire}, []upstream.Wire{upstream.ResponsesWire}
	f := open(t, 0, nil, chat, messages, responses)
	if got := ids(f.get("/v1/models").Body.String()); got != "p p-1 r-1 " {
		t.Errorf("OpenAI's list has %q", got)
	}
	if got := ids(f.get("/v1/models", anthropic...).Body.String()); got != "q q-1 " {
		t.Errorf("Anthropic's list has %q", got)
	}
	if w := f.get("/v1/models/q"); w.Code != 404 {
		t.Errorf("OpenAI's list has a model that only Messages serves: %s", w.Body)
	}
}

// An upstream that does not answer well, or in time, leaves the models that are named, and the
// log says so. It is asked again after a while, and what it said then is used.
func TestListWithoutUpstream(t *testing.T) {
	p := newProvider(t, "")
	f := open(t, 0, nil, p.definition("one", upstream.Model{ID: "m"}, upstream.Model{ID: "*"}))
	named := `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"one"}]}` + "\n"
	for i, answer := range []string{"", `{"data":[{"id":"a"},{"id":"a b"}]}`, `{"data":[{"id":"x","id":"y"}]}`, `<html>`} {
		p.says(answer)
		for range 3 {
			if w := f.get("/v1/models"); w.Code != 200 || w.Body.String() != named {
				t.Errorf("%q: %d %s", answer, w.Code, w.Body)
			}
		}
		if asked := p.asked.Load(); asked != int64(i+1) {
			t.Errorf("%q: the upstream was asked %d times", answer, asked)
		}
		if lines := strings.Count(f.log.String(), "did not list its models"); lines != i+1 {
			t.Errorf("%q: %d lines\n%s", answer, lines, f.log)
		}
		f.now = f.now.Add(31 * time.Second)
	}
	p.says(`{"data":[{"id":"a"}]}`)
	if w := f.get("/v1/models"); !strings.Contains(w.Body.String(), `"a"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	// A list is used for its time, and no longer than the configuration that it is of.
	p.says(`{"data":[{"id":"b"}]}`)
	f.now = f.now.Add(299 * time.Second)
	if w := f.get("/v1/models"); !strings.Contains(w.Body.String(), `"a"`) {
		t.Errorf("before its time: %s", w.Body)
	}
	f.now = f.now.Add(2 * time.Second)
	if w := f.get("/v1/models"); !strings.Contains(w.Body.String(), `"b"`) || strings.Contains(w.Body.String(), `"a"`) {
		t.Errorf("after its time: %s", w.Body)
	}
	p.says(`{"data":[{"id":"c"}]}`)
	f.load(t, p.definition("one", upstream.Model{ID: "*"}))
	if w := f.get("/v1/models"); !strings.Contains(w.Body.String(), `"c"`) {
		t.Errorf("after a reload: %s", w.Body)
	}
	f.load(t)
	if w := f.get("/v1/models"); w.Body.String() != `{"object":"list","data":[]}`+"\n" {
		t.Errorf("without upstreams: %s", w.Body)
	}
	if w := f.get("/v1/models", anthropic...); w.Body.String() != `{"data":[],"has_more":false,"first_id":null,"last_id":null}`+"\n" {
		t.Errorf("without upstreams: %s", w.Body)
	}
}

// Nobody waits long for an upstream that is slow, it is asked once however many want the list, and
// what it says later is used.
func TestListOfASlowUpstream(t *testing.T) {
	p := newProvider(t, `{"data":[{"id":"a"}]}`)
	p.wait = make(chan struct{})
	f := open(t, 10*time.Millisecond, nil, p.definition("one", upstream.Model{ID: "m"}, upstream.Model{ID: "*"}))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if w := f.get("/v1/models"); w.Code != 200 || strings.Contains(w.Body.String(), `"a"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	wg.Wait()
	close(p.wait)
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		w := f.get("/v1/models")
		if strings.Contains(w.Body.String(), `"a"`) {
			break
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if p.asked.Load() != 1 {
		t.Errorf("the upstream was asked %d times", p.asked.Load())
	}
}

// The caller is identified before anything else, by either header, and no upstream is asked for
// one who is not known.
func TestListAdmission(t *testing.T) {
	p := newProvider(t, `{"data":[{"id":"a"}]}`)
	key, sha := identity.NewAPIKey()
	known, err := identity.NewAPIKeys(map[string]*identity.Principal{sha: {Name: "p", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}})
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, 0, func(c *gateway.Config, _ *calls.Deps) { c.Identity = known }, p.definition("one", upstream.Model{ID: "*"}))
	for _, target := range []string{"/v1/models", "/v1/models/a", "/v1/models/none"} {
		for _, headers := range [][]string{nil, {"X-Api-Key", "unknown"}, {"Authorization", "Bearer unknown"}, {"X-Api-Key", key, "Authorization", "Bearer other"}} {
			if w := f.get(target, headers...); w.Code != 401 || !strings.HasPrefix(w.Body.String(), "openai unauthenticated") {
				t.Errorf("%s with %q: %d %s", target, fmt.Sprint(headers), w.Code, w.Body)
			}
			if w := f.get(target, append(headers, anthropic...)...); w.Code != 401 || !strings.HasPrefix(w.Body.String(), "anthropic unauthenticated") {
				t.Errorf("%s with %q: %d %s", target, fmt.Sprint(headers), w.Code, w.Body)
			}
		}
	}
	if p.asked.Load() != 0 {
		t.Errorf("the upstream was asked for callers that are not known")
	}
	for _, headers := range [][]string{{"X-Api-Key", key}, {"Authorization", "Bearer " + key}, {"X-Api-Key", key, "Authorization", "Bearer " + key}} {
		if w := f.get("/v1/models", headers...); w.Code != 200 || !strings.Contains(w.Body.String(), `"a"`) {
			t.Errorf("with %q: %d %s", fmt.Sprint(headers), w.Code, w.Body)
		}
	}
	if w := f.get("/v1/models", "X-Api-Key", key, "Callgate-Agent", "Nobody"); w.Code != 403 {
		t.Errorf("for an unknown agent: %d %s", w.Code, w.Body)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// replicas are two gateways that share their calls on one Redis, with everything that is around
// them: tools that answer at once, a tool that calls back, an endpoint of notices, a model, and
// the people of askers, with op, an operator.
type replicas struct {
	*askers
	hook  *hook
	later *correspondent
	stuck *stuck
}

// The two gateways.
const (
	first  = 0
	second = 1
)

// The rules by which people are asked about the tools of replicas, but for those of no rule.
const replicaPolicy = `p, Analyst, acme/alpha, *, , allow
p, Analyst, acme/alpha, once, , ask:pays
p, Analyst, acme/alpha, idempotent, , ask:duo
p, Analyst, acme/alpha, confirm, , ask:mine
p, Analyst, acme/alpha, metered, , ask:pays
`

// newReplicas starts them. store is what the main file says of Redis.
func newReplicas(t *testing.T, store string, environment ...string) *replicas {
	t.Helper()
	w := &replicas{hook: newHook(t), later: newCorrespondent(t), stuck: &stuck{hits: map[string]int{}, free: make(chan struct{})}}
	model := httptest.NewServer(http.HandlerFunc(parrot))
	t.Cleanup(model.Close)
	stuckAt := httptest.NewServer(w.stuck)
	t.Cleanup(stuckAt.Close)
	t.Cleanup(w.stuck.let)
	keys := filepath.Join(t.TempDir(), "callback-keys")
	w.askers = askersConfig(t, 2, "redis: {"+store+"}\nstore: {kind: redis, replicas: 2}\nupstreams: upstreams.yaml\n"+
		"callbacks: {url: \"http://127.0.0.1:1\", keys: \"file:"+keys+"\"}\n", "")
	w.people(t, "pays, duo, mine", map[string]string{"op": "operator: true"})
	upstreams := fmt.Sprintf("upstreams:\n  - {name: text, base_url: %q, models: [text], protocol: text, modes: [enforce, orchestrate], max_repairs: 0}\n", model.URL+"/v1")
	if app.Has(configs.ResponsesFace) {
		upstreams += fmt.Sprintf("  - {name: items, base_url: %q, models: [items], speaks: [responses], modes: [orchestrate], max_repairs: 0}\n", model.URL+"/v1")
	}
	const numbers = "input_schema: {type: object, properties: {n: {type: integer}, as: {type: string}}}"
	callsBack := func(name, timeout string) string {
		return fmt.Sprintf("  - {name: %s, effect: once, %s, run: {type: callback, url: %q, tool: answer, addresses: [127.0.0.1/32], max_age: 1h, timeout: %s}}\n", name, numbers, w.later.URL+"/later", timeout)
	}
	for name, text := range map[string]string{
		"policy.csv": replicaPolicy,
		"approvals.yaml": "rules:\n  pays: {within: 2h, remember: {same: 2h, tool: 2h}}\n  duo: {approve: 2, within: 2h}\n  mine: {by: caller, within: 2h, remember: {same: 1h}}\nwait: 60s\nurl: https://ops.example\n" +
			fmt.Sprintf("notify: {url: %q, key: \"env:HOOK_KEY\", addresses: [127.0.0.1]}\n", w.hook.url),
		"upstreams.yaml": upstreams,
		"limits.yaml":    "replicas: 2\ntools: {metered: {rate: 1/h, burst: 1}}\n",
		"tools/more.yaml": "tools:\n" + callsBack("later", "60s") + callsBack("pending", "100ms") +
			"  - {name: confirm, effect: once, " + numbers + ", run: {type: demo}}\n" +
			"  - {name: metered, effect: once, " + numbers + ", run: {type: demo}}\n" +
			fmt.Sprintf("  - {name: steady, effect: once, %s, run: {type: http, url: %q, timeout: 60s, addresses: [127.0.0.1/32]}}\n", numbers, stuckAt.URL) +
			fmt.Sprintf("  - {name: look, effect: read, %s, run: {type: http, url: %q, timeout: 60s, addresses: [127.0.0.1/32]}}\n", numbers, stuckAt.URL),
		"tools/own.yaml": strings.TrimSuffix(cancelTool, "# end\n"),
	} {
		w.edit(t, name, text)
	}
	addKey(t, w.config)
	for at := range w.gates {
		w.serve(t, at, append(environment, w.hook.environment())...)
	}
	w.ready(t)
	return w
}

// send asks one gateway, and no other.
func (w *replicas) send(t testing.TB, at int, who, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := w.try(at, who, method, path, body, headers...)
	if err != nil {
		t.Errorf("%s %s of gateway %d: %v", method, path, at, err)
	}
	return r
}

// waiting is a request that waits.
type waiting struct {
	answer chan reply
	at     time.Time // when the answer came
}

// begin sends a request that waits.
func (w *replicas) begin(t testing.TB, at int, who, method, path, body string, headers ...string) *waiting {
	one := &waiting{answer: make(chan reply, 1)}
	go func() {
		r, err := w.try(at, who, method, path, body, headers...)
		if err != nil {
			r = reply{body: err.Error()}
		}
		one.at = time.Now()
		one.answer <- r
	}()
	return one
}

func (one *waiting) end(t testing.TB) reply {
	t.Helper()
	select {
	case r := <-one.answer:
		return r
	case <-time.After(patience):
		t.Error("a request that waits is never answered")
		return reply{}
	}
}

// soon is how long after a change at one gateway a request that waits for it at the other is answered.
const soon = time.Second

// soonAfter holds the answer of a request that waits to come soon after what happens at the other
// gateway. On a machine that is busy with something else the first tries may take longer.
func soonAfter(t *testing.T, what string, try func(round int) time.Duration) {
	t.Helper()
	var all []time.Duration
	for round := range 3 {
		took := try(round)
		if all = append(all, took); took <= soon || t.Failed() {
			return
		}
	}
	t.Errorf("%s: %v; at most %v", what, all, soon)
}

// listed is the id of the approval that waits for a call of a number, once a gateway lists it to ada.
func (w *replicas) listed(t testing.TB, at, n int) (id string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the call %d is listed", n), func() bool {
		var list struct {
			Approvals []struct {
				ID, State string
				Arguments json.RawMessage
			}
		}
		r := w.send(t, at, "ada", http.MethodGet, "/v1/approvals?state=waiting&limit=500", "")
		if err := json.Unmarshal([]byte(r.body), &list); err != nil || r.status != http.StatusOK {
			t.Fatalf("%d %s", r.status, r.body)
		}
		for _, a := range list.Approvals {
			if a.State == "waiting" && strings.Contains(string(a.Arguments), fmt.Sprintf(`"n":%d}`, n)) {
				id = a.ID
			}
		}
		return id != ""
	})
	return id
}

// says has somebody vote at a gateway. more are members of the vote.
func (w *replicas) says(t testing.TB, at int, who, id, vote, more string) reply {
	t.Helper()
	return w.send(t, at, who, http.MethodPost, "/v1/approvals/"+id, fmt.Sprintf(`{"vote":%q,"digest":%q%s}`, vote, w.show(t, at, id).Digest, more))
}

// voted is says for a vote that counts.
func (w *replicas) voted(t testing.TB, at int, who, id, vote, more string) {
	t.Helper()
	if r := w.says(t, at, who, id, vote, more); r.status != http.StatusOK {
		t.Errorf("%s says %s at gateway %d: %d %s", who, vote, at, r.status, r.body)
	}
}

// callOf is the id of the call that an answer is of.
func callOf(r reply) string { return r.header.Get("Callgate-Call-Id") }

// browser is one that a person has at the console of a gateway. It keeps cookies, follows redirects,
// and sends the forms of the page that it shows.
type browser struct {
	t      testing.TB
	client *http.Client
	origin string
	status int
	path   string // of the page
	page   string
}

// signedIn is the browser of somebody who has signed in at a gateway.
func (w *replicas) signedIn(t testing.TB, at int, who string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, client: &http.Client{Jar: jar, Timeout: patience, Transport: w.gates[at].Load().client.Transport}, origin: "http://" + w.gates[at].Load().admin}
	if b.open("/console"); b.path != "/console/login" {
		t.Errorf("who is not known is led to %s", b.path)
	}
	if b.submit("/console/session", "key", w.keys[who]); b.status != http.StatusOK || b.path == "/console/login" {
		t.Errorf("%s signs in: %d %s", who, b.status, b.path)
	}
	return b
}

// open shows a page.
func (b *browser) open(path string) {
	b.t.Helper()
	b.send(http.MethodGet, path, nil)
}

var (
	formTags  = regexp.MustCompile(`(?s)<form [^>]*method="post"[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	fieldTags = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
	emptyTags = regexp.MustCompile(`<(?:select|textarea|input)[^>]* name="(reason|scope|for)"`)
)

// submit sends a form of the page with fields as it fills them in, name and value in turn.
func (b *browser) submit(action string, fields ...string) {
	b.t.Helper()
	for _, form := range formTags.FindAllStringSubmatch(b.page, -1) {
		if html.UnescapeString(form[1]) != action {
			continue
		}
		values := url.Values{}
		for _, field := range fieldTags.FindAllStringSubmatch(form[2], -1) {
			values.Set(field[1], html.UnescapeString(field[2]))
		}
		for _, field := range emptyTags.FindAllStringSubmatch(form[2], -1) {
			values.Set(field[1], "")
		}
		for i := 0; i < len(fields); i += 2 {
			if name := `name="` + fields[i] + `"`; !strings.Contains(form[2], name) && !strings.Contains(b.page, `form="vote" `+name) {
				b.t.Errorf("the form %s has no field %s: %s", action, fields[i], form[2])
			}
			values.Set(fields[i], fields[i+1])
		}
		b.send(http.MethodPost, action, values)
		return
	}
	b.t.Errorf("the page %s has no form %s: %.4000s", b.path, action, b.page)
}

func (b *browser) send(method, path string, form url.Values) {
	b.t.Helper()
	request, err := http.NewRequest(method, b.origin+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", b.origin)
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	response, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	b.status, b.path, b.page = response.StatusCode, response.Request.URL.Path, string(page)
}

// shows holds the page to have texts.
func (b *browser) shows(texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if b.status != http.StatusOK || !strings.Contains(html.UnescapeString(b.page), text) {
			_, main, _ := strings.Cut(b.page, "<main")
			b.t.Errorf("%s: %d, without %q: %s", b.path, b.status, text, main)
		}
	}
}

// correspondent is a tool that calls back when and where a test says, and keeps what else it is told.
type correspondent struct {
	*httptest.Server
	mu    sync.Mutex
	taken map[int]invoked // by the number of the call
	told  []string        // path and body of the other requests
}

func newCorrespondent(t testing.TB) *correspondent {
	c := &correspondent{taken: map[int]invoked{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the gateway was killed
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path != "/later" {
			c.told = append(c.told, r.URL.Path+" "+string(body))
			return
		}
		var call struct {
			invoked
			Arguments struct{ N int }
		}
		if err := json.Unmarshal(body, &call); err != nil {
			t.Error(err)
		}
		if again, had := c.taken[call.Arguments.N]; had {
			t.Errorf("call %d came twice: %+v, %+v", call.Arguments.N, again, call)
		}
		c.taken[call.Arguments.N] = call.invoked
	}))
	t.Cleanup(c.Close)
	return c
}

// call is the call of a number, once the tool has it.
func (c *correspondent) call(t testing.TB, n int) (call invoked) {
	t.Helper()
	eventually(t, fmt.Sprintf("the tool has the call %d", n), func() (ok bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		call, ok = c.taken[n]
		return ok
	})
	return call
}

// times is how often the tool was told something of a call at a path.
func (c *correspondent) times(path, id string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, told := range c.told {
		if strings.HasPrefix(told, path+" ") && strings.Contains(told, id) {
			n++
		}
	}
	return n
}

// calls back at one gateway with a message of a type about a call.
func (w *replicas) callsBack(t testing.TB, at int, call invoked, kind string, members map[string]any) int {
	t.Helper()
	message := map[string]any{"type": kind, "group_id": call.Group, "id": call.ID}
	if kind == "subscription_event" {
		message["tool_call_id"] = call.ID
		delete(message, "id")
	}
	for name, value := range members {
		message[name] = value
	}
	body, err := json.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(call.Callback)
	if err != nil {
		t.Fatal(err)
	}
	status, _ := postTo(t, "http://"+w.gates[at].Load().listen+to.Path, string(body))
	return status
}

// stuck is a tool that answers a call only when it comes again.
type stuck struct {
	mu   sync.Mutex
	hits map[string]int
	free chan struct{}
	once sync.Once
}

// let has it answer, now and from now on.
func (s *stuck) let() { s.once.Do(func() { close(s.free) }) }

func (s *stuck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Callgate-Call-Id")
	s.mu.Lock()
	s.hits[id]++
	first := s.hits[id] == 1
	s.mu.Unlock()
	if first {
		<-s.free
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"ok":true}`)
}

func (s *stuck) hitCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]int{}
	for id, n := range s.hits {
		seen[id] = n
	}
	return seen
}

// parrot is a model that makes the call that its user asks it for, and then says what it reads of that. It
// speaks the text protocol, where the user's message is the completion, and Responses.
func parrot(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Role, Content string }
		Input    json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if len(asked.Messages) > 0 {
		content := asked.Messages[len(asked.Messages)-1].Content
		for _, m := range asked.Messages {
			if m.Role == "assistant" {
				content = "Read: " + strings.NewReplacer("{", "(", "}", ")").Replace(asked.Messages[len(asked.Messages)-1].Content) // which is no call
			}
		}
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"text","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, quotedName(content))
		return
	}
	var items []struct {
		Type, Role, Output string
		Content            json.RawMessage
	}
	_ = json.Unmarshal(asked.Input, &items) // a text is no list
	item := ""
	for _, i := range items {
		if i.Type == "function_call_output" {
			item = fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":%s}]}`, quotedName("Read: "+i.Output))
		}
	}
	if item == "" {
		var call struct {
			Tool struct {
				Name      string
				Arguments json.RawMessage
			}
		}
		at := strings.Index(string(asked.Input), `{\"tool\"`)
		end := strings.Index(string(asked.Input), `}}}`)
		if at < 0 || end < 0 || json.Unmarshal([]byte(strings.ReplaceAll(string(asked.Input)[at:end+3], `\"`, `"`)), &call) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		item = fmt.Sprintf(`{"id":"fc","type":"function_call","status":"completed","call_id":"call_1","name":%s,"arguments":%s}`, quotedName(call.Tool.Name), quotedName(string(call.Tool.Arguments)))
	}
	fmt.Fprintf(w, `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"items","output":[%s],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`, item)
}

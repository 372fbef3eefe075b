package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/store"
)

// sentCall is what a tool that calls back is sent.
type sentCall struct {
	ID        string `json:"id"`
	Group     string `json:"group_id"`
	Callback  string `json:"callback_url"`
	raw       map[string]any
	ancestors any
}

// repeater is a tool that calls back at once, and keeps what it is sent.
type repeater struct {
	*httptest.Server
	subscribes bool        // its answers announce events
	reported   chan string // the path and body of each notification

	mu  sync.Mutex
	got []sentCall
	all sync.WaitGroup
}

func newRepeater(t testing.TB) *repeater {
	t.Helper()
	p := &repeater{reported: make(chan string, 1024)}
	p.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/later" {
			body, _ := io.ReadAll(r.Body)
			p.reported <- r.URL.Path + " " + string(body)
			return
		}
		var in sentCall
		body := json.NewDecoder(r.Body)
		if err := body.Decode(&in.raw); err != nil {
			t.Error(err)
			return
		}
		for name, into := range map[string]*string{"id": &in.ID, "group_id": &in.Group, "callback_url": &in.Callback} {
			*into, _ = in.raw[name].(string)
		}
		in.ancestors = in.raw["thread_ancestors"]
		p.mu.Lock()
		p.got = append(p.got, in)
		p.mu.Unlock()
		answer, _ := json.Marshal(map[string]any{"type": "tool_result", "id": in.ID, "group_id": in.Group, "text": "done", "subscription": p.subscribes})
		p.all.Go(func() {
			response, err := http.Post(in.Callback, "application/json", strings.NewReader(string(answer)))
			if err != nil {
				t.Error(err)
				return
			}
			if response.Body.Close(); response.StatusCode != http.StatusOK {
				t.Errorf("the answer to %s was taken with %d", in.Group, response.StatusCode)
			}
		})
	}))
	t.Cleanup(func() { p.Close(); p.all.Wait() })
	return p
}

// patientConfig is laterConfig with callers that wait for the answers of tools, however busy
// the machine is.
func patientConfig(t testing.TB, tool string, f *frontage, callers ...caller) (config, data string) {
	t.Helper()
	config, data = laterConfig(t, tool, f, "", callers...)
	file := filepath.Join(filepath.Dir(config), "tools", "later.yaml")
	tools, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(tools, []byte("timeout: 5s"), []byte("timeout: 5m")), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, data
}

// take returns what was sent since.
func (p *repeater) take() []sentCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// TestTIP05TIP06Threads: calls of one thread have one group, over every face, each with an id
// and an address of its own; a call that names no thread is one by itself. Ancestors go in the
// order in which they are given, the oldest first, each by the name that its own calls have,
// and a thread without any has no such member. Another principal's thread of the same name
// has another group.
func TestTIP05TIP06Threads(t *testing.T) {
	t.Parallel()
	f, tool := newFrontage(t), newRepeater(t)
	one := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"})
	spy := newCaller("spy", "globex", []string{"Spy"}, []string{"gamma"})
	config, _ := patientConfig(t, tool.URL, f, one, spy)
	g := serveGate(t, config)
	f.lead(g)
	who := []string{"Authorization", "Bearer " + one.key}
	asJSON := append([]string{"Content-Type", "application/json"}, who...)
	native := func(more string) reply {
		completion, _ := json.Marshal(laterCall("later", 1, "plain"))
		return g.ask(t, http.MethodPost, "/v1/calls", fmt.Sprintf(`{"completion":%s%s}`, completion, more), asJSON...)
	}
	text := func(headers ...string) reply {
		return g.ask(t, http.MethodPost, "/v1/calls", laterCall("later", 1, "plain"), append(append([]string{"Content-Type", "text/plain"}, who...), headers...)...)
	}
	overMCP := func(headers ...string) reply {
		return g.ask(t, http.MethodPost, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"later","arguments":{"n":1,"as":"plain"}}}`, append(asJSON[:len(asJSON):len(asJSON)], headers...)...)
	}
	overOXP := func(headers ...string) reply {
		return g.ask(t, http.MethodPost, "/tools/call", `{"tool_id":"callgate.later","input":{"n":1,"as":"plain"}}`, append(asJSON[:len(asJSON):len(asJSON)], headers...)...)
	}
	spying := []string{"Content-Type", "text/plain", "Authorization", "Bearer " + spy.key, "Callgate-Thread", "conv", "Callgate-Thread-Ancestors", "root"}
	of := func(thread string) string {
		return threads.Group(store.Scope{Principal: "one", Workspace: "acme", Project: "alpha"}, thread)
	}
	ofSpy := func(thread string) string {
		return threads.Group(store.Scope{Principal: "spy", Workspace: "globex", Project: "gamma"}, thread)
	}
	ids, addresses := map[string]bool{}, map[string]bool{}
	for name, c := range map[string]struct {
		call      func() reply
		group     string // "" is the call's own id
		ancestors any
	}{
		"native, of no thread":    {func() reply { return native("") }, "", nil},
		"native":                  {func() reply { return native(`,"thread":"conv"`) }, of("conv"), nil},
		"native, once more":       {func() reply { return native(`,"thread":"conv"`) }, of("conv"), nil},
		"native, with ancestors":  {func() reply { return native(`,"thread":"conv","thread_ancestors":["root","z","a","parent"]`) }, of("conv"), []any{of("root"), of("z"), of("a"), of("parent")}},
		"native, without any":     {func() reply { return native(`,"thread":"conv","thread_ancestors":[]`) }, of("conv"), nil},
		"native, of no thread's":  {func() reply { return native(`,"thread_ancestors":["root"]`) }, "", []any{of("root")}},
		"text, of no thread":      {func() reply { return text() }, "", nil},
		"text":                    {func() reply { return text("Callgate-Thread", "conv") }, of("conv"), nil},
		"MCP, of no thread":       {func() reply { return overMCP() }, "", nil},
		"MCP":                     {func() reply { return overMCP("Callgate-Thread", "conv") }, of("conv"), nil},
		"OXP, of no thread":       {func() reply { return overOXP() }, "", nil},
		"OXP":                     {func() reply { return overOXP("Callgate-Thread", "conv") }, of("conv"), nil},
		"a thread of two words ü": {func() reply { return text("Callgate-Thread", "two words ü") }, of("two words ü"), nil},
		"text, with ancestors":    {func() reply { return text("Callgate-Thread", "conv", "Callgate-Thread-Ancestors", "root,\tparent") }, of("conv"), []any{of("root"), of("parent")}},
		"MCP, with ancestors":     {func() reply { return overMCP("Callgate-Thread", "conv", "Callgate-Thread-Ancestors", "root") }, of("conv"), []any{of("root")}},
		"OXP, with ancestors":     {func() reply { return overOXP("Callgate-Thread-Ancestors", "root") }, "", []any{of("root")}},
		"another principal's":     {func() reply { return g.ask(t, http.MethodPost, "/v1/calls", laterCall("later", 1, "plain"), spying...) }, ofSpy("conv"), []any{ofSpy("root")}},
	} {
		r := c.call()
		got := tool.take()
		if r.status != http.StatusOK || !strings.Contains(r.body, "done") || len(got) != 1 {
			t.Errorf("%s: %d %s, sent %d times", name, r.status, r.body, len(got))
			continue
		}
		in := got[0]
		group := c.group
		if group == "" {
			group = r.header.Get("Callgate-Call-Id")
		}
		_, stated := in.raw["thread_ancestors"]
		if in.ID == "" || in.ID != r.header.Get("Callgate-Call-Id") || in.Group != group || stated != (c.ancestors != nil) || !reflect.DeepEqual(in.ancestors, c.ancestors) {
			t.Errorf("%s: sent %v, want the group %q and the ancestors %v", name, in.raw, group, c.ancestors)
		}
		if ids[in.ID] || addresses[in.Callback] || !strings.HasPrefix(in.Callback, f.URL+"/v1/callbacks/") {
			t.Errorf("%s: the id or the address is another call's: %v", name, in.raw)
		}
		ids[in.ID], addresses[in.Callback] = true, true
	}
	for _, ancestors := range []string{"", "root,", "root,root", "conv", ",", strings.Repeat("a,", 500) + "a", strings.Repeat("a", 1025)} {
		if r := text("Callgate-Thread", "conv", "Callgate-Thread-Ancestors", ancestors); r.status != http.StatusBadRequest || len(tool.take()) > 0 {
			t.Errorf("the ancestors %.20q: %d %s", ancestors, r.status, r.body)
		}
	}
	if r := native(`,"thread":"conv","thread_ancestors":["root","conv"]`); r.status != http.StatusBadRequest || len(tool.take()) > 0 {
		t.Errorf("its own ancestor: %d %s", r.status, r.body)
	}
	// A thread that is closed has the same group.
	for group, headers := range map[string][]string{
		of("conv"):    append([]string{"Callgate-Thread", "conv"}, who...),
		ofSpy("conv"): {"Callgate-Thread", "conv", "Authorization", "Bearer " + spy.key},
	} {
		if r := g.ask(t, http.MethodPost, "/v1/threads/close", "", headers...); r.status != http.StatusAccepted {
			t.Errorf("%d %s", r.status, r.body)
		}
		select {
		case got := <-tool.reported: // of three tools of one server: once
			if want := `/close_thread {"thread_id":"` + group + `"}`; got != want {
				t.Errorf("told %s; expected %s", got, want)
			}
		case <-time.After(patience):
			t.Errorf("the server is not told of %s", group)
		}
	}
	if code := g.stop(t); code != exitAccepted || len(tool.reported) > 0 {
		t.Errorf("exit code %d; the server is told %d times more", code, len(tool.reported))
	}
}

// TestCallInAThread: each process of callgate call goes on with its thread where the one before has left it, with one call or a
// line each; a call that names no thread is told so.
func TestCallInAThread(t *testing.T) {
	t.Parallel()
	config, _ := layout(t, map[string]string{
		"callgate.yaml": "registry: {files: [tools.yaml]}\nthreads: {labels: [untrusted], default_labels: [untrusted]}\n",
		"tools.yaml": "tools:\n  - {name: web.fetch, run: {type: demo}, input_schema: {type: object}}\n" +
			"  - {name: pay, labels: [], run: {type: demo}, input_schema: {type: object}}\n",
		"policy.csv": "p, Analyst, acme/alpha, web.fetch, , allow\np, Analyst, acme/alpha, pay, \"thread.calls('pay') <= 2 && !('untrusted' in thread.labels)\", allow\n",
	})
	for i, c := range []struct{ thread, tool, code string }{
		{"t", "pay", ""}, {"t", "pay", ""}, {"t", "pay", "permission_denied"}, {"", "pay", "thread_required"},
		{"u", "pay", ""}, {"u", "web.fetch", ""}, {"u", "pay", "permission_denied"},
	} {
		args := []string{"call", "--config", config}
		if c.thread != "" {
			args = append(args, "--thread", c.thread)
		}
		_, stdout, stderr := command(t, strings.NewReader(`{"tool":{"name":"`+c.tool+`","arguments":{}}}`), args...)
		if c.code == "" && strings.Contains(stdout, `"error"`) || !strings.Contains(stdout, c.code) || !strings.Contains(stdout, c.tool) {
			t.Errorf("call %d: %s%s; expected %q", i, stdout, stderr, c.code)
		}
	}
	line := `{"id":"1","completion":"{\"tool\":{\"name\":\"pay\",\"arguments\":{}}}"}` + "\n"
	_, stdout, stderr := command(t, strings.NewReader(strings.Repeat(line, 3)), "call", "--jsonl", "--config", config, "--thread", "v")
	if lines := strings.Split(strings.TrimSpace(stdout), "\n"); len(lines) != 3 || strings.Contains(lines[0]+lines[1], `"error"`) || !strings.Contains(lines[2], "permission_denied") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

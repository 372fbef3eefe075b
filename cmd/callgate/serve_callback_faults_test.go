package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
)

// invoked is a call as a tool that calls back was sent it.
type invoked struct {
	ID       string `json:"id"`
	Callback string `json:"callback_url"`
	Group    string `json:"group_id"`
}

// result is a message that answers it.
func (i invoked) result(text string) string {
	b, _ := json.Marshal(map[string]string{"type": "tool_result", "group_id": i.Group, "id": i.ID, "text": text})
	return string(b)
}

// toolServer is a tool that takes every call, and leaves it to the test to answer.
func toolServer(t testing.TB) (url string, taken <-chan invoked) {
	t.Helper()
	calls := make(chan invoked, 1024)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var i invoked
		if body, err := io.ReadAll(r.Body); err == nil && json.Unmarshal(body, &i) == nil {
			calls <- i
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, calls
}

// postTo posts a message to where a tool was told to.
func postTo(t testing.TB, url, body string) (status int, answer string) {
	t.Helper()
	response, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(data)
}

// addKey adds a key by which tools are answered to.
func addKey(t testing.TB, config string, args ...string) {
	t.Helper()
	if output, err := process(t.Context(), nil, append([]string{"keys", "callback", "--config", config}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("keys callback: %v: %s", err, output)
	}
}

// TestCallbackThatNeverComes: a call whose tool does not call back ends when its time
// is over, as the model is told and as it stands in the log; who calls back then is
// told that nothing is waited for.
func TestCallbackThatNeverComes(t *testing.T) {
	t.Parallel()
	url, taken := toolServer(t)
	front := newFrontage(t)
	one := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"})
	config, data := laterConfig(t, url, front, "", one)
	g := serveGate(t, config)
	front.lead(g)
	r := patiently(t, g, laterCall("brief", 1, "plain"), "Authorization", "Bearer "+one.key)
	i := <-taken
	if r.status != http.StatusAccepted && r.code() != "outcome_unknown" {
		t.Errorf("%d %s", r.status, r.body)
	}
	eventually(t, "its time is over", func() bool {
		r = g.ask(t, http.MethodGet, "/v1/calls/"+i.ID, "", "Authorization", "Bearer "+one.key)
		return strings.Contains(r.body, `"state":"unknown"`)
	})
	_, unknown := postTo(t, front.URL+"/v1/callbacks/AAAA", i.result("x"))
	for range 2 {
		if status, answer := postTo(t, i.Callback, i.result("too late")); status != http.StatusNotFound || answer != unknown {
			t.Errorf("too late: %d %s", status, answer)
		}
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes, refused := endings(t, data)
	if o := outcomes[i.ID]; len(o) != 1 || o[0] != audit.Expired || refused["not_found"][i.ID] != 2 {
		t.Errorf("outcomes %v, refused %v", o, refused)
	}
}

// TestCallbackTwice lets a hundred answer one call at once, the same, over two
// gateways that keep their calls on one Redis: one enters, and each is told that it
// did. CALLGATE_CALLBACK_RACES says how often.
func TestCallbackTwice(t *testing.T) {
	races := rounds(t, "CALLGATE_CALLBACK_RACES", 5)
	const parallel = 100
	redis := newRedis(t)
	redis.start(t)
	url, taken := toolServer(t)
	front := newFrontage(t)
	one := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"})
	keys := filepath.Join(t.TempDir(), "keys")
	config, _ := laterConfig(t, url, front, "callbacks_keys\n", one)
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "callbacks_keys")
	before = strings.Replace(before, "callbacks: {", "callbacks: {keys: \"file:"+keys+"\", ", 1)
	shared := before + "redis: {url: \"redis://" + redis.address() + "\"}\nstore: {kind: redis, replicas: 2}\n# end\n"
	if err := os.WriteFile(config, []byte(shared), 0o600); err != nil {
		t.Fatal(err)
	}
	addKey(t, config)
	var gates []*gate
	var folders []string
	for range 2 {
		dir := quickDir(t)
		folders = append(folders, filepath.Join(dir, "callgate-data"))
		gates = append(gates, serveGateIn(t, dir, config))
	}
	for _, g := range gates {
		eventually(t, "calls are kept on Redis", func() bool { return g.operators(t).Calls == "" })
	}
	front.lead(gates...)
	var ids []string
	for race := range races {
		answers := make(chan reply, 1)
		go func() {
			answers <- patiently(t, gates[race%2], laterCall("later", race, "plain"), "Authorization", "Bearer "+one.key)
		}()
		var i invoked
		select {
		case i = <-taken:
		case <-time.After(2 * patience):
			t.Fatal("the tool was not asked")
		}
		ids = append(ids, i.ID)
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range parallel {
			all.Go(func() {
				status, _ := postTo(t, i.Callback, i.result(fmt.Sprintf(`{"n":%d,"ok":true}`, race)))
				// A gateway that is busy, or whose Redis is, says so: then it is posted again.
				for deadline := time.Now().Add(patience); status == http.StatusServiceUnavailable && time.Now().Before(deadline); {
					status, _ = postTo(t, i.Callback, i.result(fmt.Sprintf(`{"n":%d,"ok":true}`, race)))
				}
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
		all.Wait()
		if statuses[http.StatusOK] != parallel {
			t.Errorf("answered with %v", statuses)
		}
		_, unknown := postTo(t, front.URL+"/v1/callbacks/AAAA", i.result("x"))
		if status, answer := postTo(t, i.Callback, i.result("otherwise")); status != http.StatusNotFound || answer != unknown {
			t.Errorf("another answer: %d %s", status, answer)
		}
		if r := <-answers; !isNumber(r.body, race) && r.status != http.StatusAccepted {
			t.Errorf("the caller: %d %s", r.status, r.body)
		}
		for _, g := range gates {
			if r := g.ask(t, http.MethodGet, "/v1/calls/"+i.ID, "", "Authorization", "Bearer "+one.key); !isNumber(r.body, race) {
				t.Errorf("the call: %d %s", r.status, r.body)
			}
			// The same call under its id is that call, at each gateway: the tool is not asked
			// again, which the next race would find.
			if r := patiently(t, g, laterCall("later", race, "plain"), "Authorization", "Bearer "+one.key, "Idempotency-Key", i.ID); !isNumber(r.body, race) || r.header.Get("Callgate-Call-Id") != i.ID {
				t.Errorf("the call by its id: %d %s", r.status, r.body)
			}
		}
		if len(taken) != 0 {
			t.Error("the tool was asked again")
		}
	}
	for _, g := range gates {
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("exit code %d", code)
		}
	}
	outcomes, refused := endings(t, folders...)
	for _, id := range ids {
		if o := outcomes[id]; len(o) != 1 || o[0] != audit.Result {
			t.Errorf("%s has the outcomes %v", id, o)
		}
		if refused["idempotency_conflict"][id] == 0 {
			t.Errorf("that %s was answered otherwise is not written down", id)
		}
	}
}

// TestCallbackBeforeTheAcknowledgement: a tool may answer before it has acknowledged
// the call.
func TestCallbackBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	tool := laterProcess(t, "--later", "early")
	front := newFrontage(t)
	one := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"})
	config, data := laterConfig(t, tool, front, "", one)
	g := serveGate(t, config)
	front.lead(g)
	for n := range 10 {
		r := patiently(t, g, fmt.Sprintf(`{"tool":{"name":"later","arguments":{"n":%d}}}`, n), "Authorization", "Bearer "+one.key)
		id := r.header.Get("Callgate-Call-Id")
		eventually(t, "the answer is in", func() bool {
			r = g.ask(t, http.MethodGet, "/v1/calls/"+id, "", "Authorization", "Bearer "+one.key)
			return isNumber(r.body, n)
		})
	}
	if r := reportOf(t, tool); r.Posts["answer"]["200"] != 10 {
		t.Errorf("%+v", r)
	}
	g.stop(t)
	outcomes, _ := endings(t, data)
	entered := 0
	for id, o := range outcomes {
		if len(o) != 1 {
			t.Errorf("%s has the outcomes %v", id, o)
		}
		if o[0] == audit.Result {
			entered++
		}
	}
	if entered != 10 {
		t.Errorf("entered %d of 10", entered)
	}
}

// TestCallbackAfterARestart kills the gateway while calls wait, adds a key, and starts
// it again: the answers are taken, also those of a call whose tool was asked right
// before the end; once the old key is gone, they are not.
func TestCallbackAfterARestart(t *testing.T) {
	t.Parallel()
	tool := laterProcess(t, "--later", "held")
	front := newFrontage(t)
	one := newCaller("one", "acme", []string{"Analyst"}, []string{"alpha"})
	config, data := laterConfig(t, tool, front, "", one)
	key := []string{"Authorization", "Bearer " + one.key}
	g := serveGate(t, config)
	front.lead(g)
	const calls = 20
	ask := func(g *gate, n int) {
		patiently(t, g, fmt.Sprintf(`{"tool":{"name":"pending","arguments":{"n":%d}}}`, n), "Authorization", "Bearer "+one.key, "Callgate-Thread", "t")
	}
	var asking sync.WaitGroup
	for n := range calls {
		asking.Go(func() { ask(g, n) })
	}
	eventually(t, "the tool has the calls", func() bool { return reportOf(t, tool).Held == calls })
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.ended
	asking.Wait()
	front.lead()
	addKey(t, config, "--in", "0s")
	released, err := http.Post(tool+"/later/release", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	released.Body.Close()
	eventually(t, "the tool tries again", func() bool { return reportOf(t, tool).Retries > 0 })
	g = serveGate(t, config)
	front.lead(g)
	eventually(t, "the tool has answered everything", func() bool { return reportOf(t, tool).Underway == 0 })
	if r := reportOf(t, tool); r.Posts["answer"]["200"] != calls {
		t.Errorf("%+v", r)
	}

	// A call by the new key, which then goes.
	go ask(g, calls)
	eventually(t, "the tool has the call", func() bool { return reportOf(t, tool).Held == 1 })
	addKey(t, config, "--in", "0s", "--keep", "0")
	time.Sleep(2 * app.KeysReadInterval) // by then the gateway has looked again, or does so when it is asked
	if released, err = http.Post(tool+"/later/release", "application/json", strings.NewReader("{}")); err != nil {
		t.Fatal(err)
	}
	released.Body.Close()
	eventually(t, "the tool has answered", func() bool { return reportOf(t, tool).Underway == 0 })
	if r := reportOf(t, tool); r.Posts["answer"]["404"] != 1 {
		t.Errorf("%+v", r)
	}
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	outcomes, _ := endings(t, data)
	g = serveGate(t, config)
	entered := 0
	for id, o := range outcomes {
		if len(o) != 1 || o[0] != audit.Result && o[0] != audit.Failed { // the gateway was busy, and nothing was sent
			t.Errorf("%s has the outcomes %v", id, o)
		}
		if o[0] == audit.Failed {
			continue
		}
		r := g.ask(t, http.MethodGet, "/v1/calls/"+id, "", key...)
		if !strings.Contains(r.body, `"state":"done"`) || !strings.Contains(r.body, `"ok":true`) {
			t.Errorf("%s: %d %s", id, r.status, r.body)
		}
		entered++
	}
	if entered != calls {
		t.Errorf("entered %d of %d", entered, calls)
	}
}

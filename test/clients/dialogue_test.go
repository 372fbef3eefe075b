package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDialogue has clients of the Go and the TypeScript SDK, a gateway and a server of
// the TypeScript SDK tell and ask each other things while a tool runs, the gateway and
// what is of TypeScript in processes of their own.
func TestDialogue(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real servers, which it fetches")
	}
	dir, programs := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("servers")); err != nil {
		t.Fatal(err)
	}
	installed(t, dir)
	command(t, "../..", nil, "go", "build", "-o", programs, "./cmd/callgate")
	program := filepath.Join(programs, "callgate")
	begun := func(t *testing.T) string {
		c := exec.Command("node", filepath.Join(dir, "dialogue.mjs"))
		c.Dir = dir
		return begin(t, c, true, func(line []byte) string {
			address, _ := strings.CutPrefix(string(line), "listening on ")
			return address
		})
	}
	overHTTP := func(t *testing.T, config string) dial {
		url := begin(t, exec.Command(program, "serve", "--config", config), false, listening)
		return func() mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"} }
	}
	asProgram := func(_ *testing.T, config string) dial {
		return func() mcp.Transport {
			return &mcp.CommandTransport{Command: exec.Command(program, "mcp", "--config", config, "--agent", "Analyst")}
		}
	}
	for name, reached := range map[string]func(*testing.T, string) dial{"over HTTP": overHTTP, "as a program": asProgram} {
		t.Run(name, func(t *testing.T) {
			server := begun(t)
			gateway := reached(t, configured(t, program, server, "input_requests: [form], "))
			t.Run("progress", func(t *testing.T) { tells(t, server, gateway) })
			t.Run("a person answers", func(t *testing.T) { answers(t, gateway) })
			t.Run("answers by hand", func(t *testing.T) { answersByHand(t, gateway) })
			t.Run("nobody to answer", func(t *testing.T) { nobodyAnswers(t, gateway) })
			if h, ok := gateway().(*mcp.StreamableClientTransport); ok {
				for mode, revision := range map[string]string{"auto": "2026-07-28", "legacy": "2025-11-25"} {
					t.Run("TypeScript, "+revision, func(t *testing.T) {
						connect(t, gateway, nil) // the tools are there
						typescript(t, dir, h.Endpoint, server, mode, revision)
					})
				}
			}
		})
		t.Run(name+", not to be asked", func(t *testing.T) {
			keepsSilent(t, reached(t, configured(t, program, begun(t), "")))
		})
	}
}

// dial is the way to a gateway.
type dial func() mcp.Transport

// configured is the configuration of a gateway that has accepted the server's tools.
func configured(t *testing.T, program, server, keys string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "servers.yaml", fmt.Sprintf("servers:\n  - {name: shop, type: mcp, url: %q, %saddresses: [127.0.0.1/32], timeout: 2m}\n# end\n", server, keys))
	write(t, dir, "tools.yaml", "tools: []\n# end\n")
	write(t, dir, "policy.csv", "p, Analyst, acme/alpha, shop.*, , allow\n# end\n")
	write(t, dir, "workspaces.yaml", "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n")
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nregistry: {files: [tools.yaml]}\nservers: servers.yaml\ndata_dir: "+dataDir(t)+"\n# end\n")
	config := filepath.Join(dir, "callgate.yaml")
	command(t, dir, os.Environ(), program, "servers", "accept", "shop", "--config", config)
	return config
}

// caller is a session of a client of the official SDK.
type caller struct {
	*mcp.ClientSession
	t *testing.T
}

// connect waits until the gateway has heard from the server and shows its tools.
func connect(t *testing.T, gateway dial, options *mcp.ClientOptions) caller {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, options).Connect(t.Context(), gateway(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) == 3 {
			return caller{session, t}
		}
		if time.Now().After(until) {
			t.Fatalf("found %d tools", len(list.Tools))
		}
	}
}

// call returns the result of a call, or as failed what it was refused with. A call that a
// busy machine refused before the tool was called is sent again.
func (c caller) call(p *mcp.CallToolParams) (result *mcp.CallToolResult, failed string) {
	c.t.Helper()
	for until := time.Now().Add(time.Minute); ; {
		result, failed = c.once(p)
		if !strings.Contains(failed, "audit_unavailable") || time.Now().After(until) {
			return result, failed
		}
	}
}

func (c caller) once(p *mcp.CallToolParams) (result *mcp.CallToolResult, failed string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), longest)
	defer cancel()
	r, err := c.CallTool(ctx, p)
	var refused *jsonrpc.Error
	switch {
	case errors.As(err, &refused):
		return nil, string(refused.Data)
	case err != nil:
		return nil, err.Error()
	case r.IsError:
		return nil, said(r)
	}
	return r, ""
}

// said is the text of a result.
func said(r *mcp.CallToolResult) string {
	if r == nil || len(r.Content) == 0 {
		return ""
	}
	t, ok := r.Content[0].(*mcp.TextContent)
	if !ok {
		return ""
	}
	var whole struct{ Value *string }
	if err := json.Unmarshal([]byte(t.Text), &whole); err == nil && whole.Value != nil {
		return *whole.Value
	}
	return t.Text
}

// request is what reached the server of an order.
type request struct {
	Item                  string
	Capabilities, Answers json.RawMessage
}

// reported is what reached the server of the orders of an item, and what it made of them.
func (c caller) reported(item string) (orders []string, requests []request) {
	c.t.Helper()
	r, failed := c.call(&mcp.CallToolParams{Name: "shop_told"})
	var all struct {
		Orders   []string
		Requests []request
	}
	if err := json.Unmarshal([]byte(said(r)), &all); err != nil {
		c.t.Fatalf("%v, %s: %q", err, failed, said(r))
	}
	return slices.DeleteFunc(all.Orders, func(o string) bool { return !strings.HasSuffix(o, item) }),
		slices.DeleteFunc(all.Requests, func(r request) bool { return r.Item != item })
}

// answered are the requests that had answers.
func answered(requests []request) (with []string) {
	for _, r := range requests {
		if r.Answers != nil {
			with = append(with, string(r.Answers))
		}
	}
	return with
}

// person is a client whose user wants three of everything.
func person(asked chan<- string) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		asked <- r.Params.Message
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"count": 3}}, nil
	}}
}

func order(item string) *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "shop_order", Arguments: map[string]any{"item": item}}
}

// wrote is the answer of a user who has filled in the form.
func wrote(count any) mcp.InputResponseMap {
	return mcp.InputResponseMap{"amount": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"count": count}}}
}

// tells has a tool tell how far it is while it runs.
func tells(t *testing.T, server string, gateway dial) {
	type reported struct {
		done, total float64
		message     string
	}
	progress, ended := make(chan reported, 10), make(chan string, 1)
	c := connect(t, gateway, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		progress <- reported{r.Params.Progress, r.Params.Total, r.Params.Message}
	}})
	p := &mcp.CallToolParams{Name: "shop_steps", Arguments: map[string]any{"count": 3}}
	r, failed := c.call(p)
	if said(r) != "3 steps, and nobody to tell" {
		t.Errorf("found %q, %s", said(r), failed)
	}
	p.SetProgressToken("mine")
	go func() {
		r, failed := c.call(p)
		ended <- said(r) + failed
	}()
	for step := 1; step <= 3; step++ {
		// The tool does not go on before it is let: what is told is told meanwhile.
		select {
		case got := <-progress:
			if want := (reported{float64(step), 3, fmt.Sprintf("step %d", step)}); got != want {
				t.Errorf("told %v; expected %v", got, want)
			}
		case early := <-ended:
			t.Fatalf("it has ended at step %d: %s", step, early)
		case <-time.After(longest):
			t.Fatalf("nothing is told of step %d", step)
		}
		response, err := http.Get(server + "/next")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	if got := <-ended; got != "3 steps" {
		t.Errorf("found %q", got)
	}
}

// answers has the client ask a person what the tool asks.
func answers(t *testing.T, gateway dial) {
	asked := make(chan string, 10)
	c := connect(t, gateway, person(asked))
	r, failed := c.call(order("tea"))
	if said(r) != "ordered 3 of tea" || len(asked) == 0 || <-asked != "How much tea?" {
		t.Fatalf("found %q, %s", said(r), failed)
	}
	orders, requests := c.reported("tea")
	if !slices.Equal(orders, []string{"3 of tea"}) || !slices.Equal(answered(requests), []string{`{"amount":{"action":"accept","content":{"count":3}}}`}) {
		t.Errorf("ordered %v by %s", orders, answered(requests))
	}
	for _, r := range requests {
		if got := string(r.Capabilities); got != `{"elicitation":{"form":{}}}` {
			t.Errorf("the server was told that the caller can %s", got)
		}
	}
}

// answersByHand gives answers of every sort to one question: what is none does not
// reach the tool, and what is one reaches it once.
func answersByHand(t *testing.T, gateway dial) {
	options := person(nil)
	options.MultiRoundTrip = &mcp.MultiRoundTripOptions{Disabled: true}
	c := connect(t, gateway, options)
	asks, failed := c.call(order("coffee"))
	if asks == nil || !asks.NeedsInput() || len(asks.InputRequests) != 1 {
		t.Fatalf("found %+v, %s", asks, failed)
	}
	form, ok := asks.InputRequests["amount"].(*mcp.ElicitParams)
	if state := asks.RequestState; !ok || form.Message != "How much coffee?" || state == "" || strings.Contains(state, "coffee") {
		t.Fatalf("asked %+v with the state %q", form, state)
	}
	again := func(item, state string, answers mcp.InputResponseMap) (*mcp.CallToolResult, string) {
		p := order(item)
		p.RequestState, p.InputResponses = state, answers
		return c.call(p)
	}
	content := func(c map[string]any) mcp.InputResponseMap {
		return mcp.InputResponseMap{"amount": &mcp.ElicitResult{Action: "accept", Content: c}}
	}
	for why, wrong := range map[string]mcp.InputResponseMap{
		"too few":       wrote(0),
		"too many":      wrote(10),
		"a part":        wrote(2.5),
		"a text":        wrote("3"),
		"nothing":       wrote(nil),
		"more":          content(map[string]any{"count": 3, "discount": 3}),
		"another":       content(map[string]any{"discount": 3}),
		"no form":       content(nil),
		"another word":  {"amount": &mcp.ElicitResult{Action: "yes"}},
		"another thing": {"amount": nowhere},
	} {
		if r, failed := again("coffee", asks.RequestState, wrong); r != nil || !strings.Contains(failed, "/inputResponses/amount") {
			t.Errorf("%s: %+v, %s", why, r, failed)
		}
	}
	_, unknown := again("coffee", strings.Repeat("0", len(asks.RequestState)), wrote(2))
	if !strings.Contains(unknown, "requestState") {
		t.Errorf("the state of no call: %s", unknown)
	}
	if r, failed := again("cocoa", asks.RequestState, wrote(2)); r != nil || failed != unknown {
		t.Errorf("the state of another call: %+v, %s", r, failed)
	}
	r, failed := again("coffee", asks.RequestState, mcp.InputResponseMap{"number": wrote(2)["amount"]})
	if r == nil || !r.NeedsInput() || r.RequestState != asks.RequestState {
		t.Errorf("an answer to nothing that was asked: %+v, %s", r, failed)
	}
	if orders, requests := c.reported("coffee"); len(orders) != 0 || len(answered(requests)) != 0 {
		t.Errorf("ordered %v by %s", orders, answered(requests))
	}
	for range 2 {
		if r, failed := again("coffee", asks.RequestState, wrote(2)); said(r) != "ordered 2 of coffee" {
			t.Errorf("found %+v, %s", r, failed)
		}
	}
	if r, failed := again("coffee", asks.RequestState, wrote(4)); r != nil || !strings.Contains(failed, "idempotency_conflict") {
		t.Errorf("another answer to what was answered: %+v, %s", r, failed)
	}
	declined := mcp.InputResponseMap{"amount": &mcp.ElicitResult{Action: "decline"}}
	first, _ := c.call(order("coffee"))
	second, failed := again("coffee", first.RequestState, declined)
	if second == nil || !second.NeedsInput() || second.RequestState == first.RequestState {
		t.Errorf("a person declined, and the tool asks once more: %+v, %s", second, failed)
	}
	orders, requests := c.reported("coffee")
	want := []string{`{"amount":{"action":"accept","content":{"count":2}}}`, `{"amount":{"action":"decline"}}`}
	if !slices.Equal(orders, []string{"2 of coffee"}) || !slices.Equal(answered(requests), want) {
		t.Errorf("ordered %v by %s", orders, answered(requests))
	}
}

// typescript has a client of the TypeScript SDK told and asked, in the middle of a call
// where its revision is not the newest.
func typescript(t *testing.T, dir, endpoint, server, mode, revision string) {
	want := []string{
		fmt.Sprintf(`{"revision":%q}`, revision), `{"asked":"How much tea?"}`, `{"said":"ordered 3 of tea"}`,
		`{"progress":1,"total":2,"message":"step 1"}`, `{"progress":2,"total":2,"message":"step 2"}`, `{"said":"2 steps"}`, "",
	}
	if got := command(t, dir, append(os.Environ(), "NODE_NO_WARNINGS=1"), "node", "caller.mjs", endpoint, server, mode); got != strings.Join(want, "\n") {
		t.Errorf("found %s", got)
	}
}

// nobodyAnswers calls a tool that may ask, for a client that has nobody to answer, and
// where no answer can be given: at another face.
func nobodyAnswers(t *testing.T, gateway dial) {
	c := connect(t, gateway, nil)
	if r, failed := c.call(order("water")); r != nil || failed == "" {
		t.Errorf("found %+v", r)
	}
	calls := 1
	if mcp, ok := gateway().(*mcp.StreamableClientTransport); ok {
		calls++
		body := `{"tool":{"name":"shop.order","arguments":{"item":"water"}}}`
		response, err := http.Post(strings.TrimSuffix(mcp.Endpoint, "/mcp")+"/v1/calls", "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		answer, err := io.ReadAll(response.Body)
		if err != nil || !strings.Contains(string(answer), `"code":"tool_failed"`) || strings.Contains(string(answer), "How much") {
			t.Errorf("found %s, %v", answer, err)
		}
	}
	orders, requests := c.reported("water")
	if len(orders) != 0 || len(requests) != calls {
		t.Errorf("ordered %v by %+v", orders, requests)
	}
	for _, r := range requests {
		if string(r.Capabilities) != "{}" || r.Answers != nil {
			t.Errorf("the server was told that the caller can %s, and %s", r.Capabilities, r.Answers)
		}
	}
}

// keepsSilent calls a tool that would ask, and may not.
func keepsSilent(t *testing.T, gateway dial) {
	asked := make(chan string, 10)
	c := connect(t, gateway, person(asked))
	r, failed := c.call(order("tea"))
	if r != nil || !strings.Contains(failed, `"code":"tool_failed"`) || len(asked) != 0 {
		t.Errorf("found %q, %s", said(r), failed)
	}
	orders, requests := c.reported("tea")
	if len(orders) != 0 || len(requests) != 1 || string(requests[0].Capabilities) != "{}" || len(answered(requests)) != 0 {
		t.Errorf("ordered %v by %+v", orders, requests)
	}
}

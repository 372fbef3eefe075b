package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// The official SDK's own server, in all the ways in which it can be served.
func TestServersOfTheSDK(t *testing.T) {
	t.Parallel()
	for name, options := range eras {
		t.Run(name, func(t *testing.T) {
			var seen sync.Map // what the server was told of the protocol's version
			server := sample()
			server.AddReceivingMiddleware(note(&seen))
			url := serveSample(t, server, options)
			peer(t, func(tool string) tool.Call { return call(url, tool, "once") }, tool.Server{Name: "s", Type: "mcp", URL: url, Addresses: loopback})
			version, _, _ := strings.Cut(name, " ")
			_, greeted := seen.Load("initialize")
			if modern := version == "2026-07-28"; modern == greeted {
				t.Errorf("spoke another revision than %s", version)
			}
		})
	}
	t.Run("stdio", func(t *testing.T) {
		command := program(t, "sample")
		peer(t, func(tool string) tool.Call { return local(command, tool, "once") }, tool.Server{Name: "s", Type: "mcp", Command: command})
	})
}

func peer(t *testing.T, of func(tool string) tool.Call, server tool.Server) {
	h := newFixture(t, engine.Options{}, nil)
	server.Timeout = patient
	found, err := h.Discover(t.Context(), server)
	if err != nil || len(found) != 5 {
		t.Fatalf("found %d tools: %v", len(found), err)
	}
	for _, c := range []struct {
		tool, body string
		json       bool
		code       refusal.Code
		message    string
	}{
		{"echo", "hello", false, "", ""},
		{"structured", `{"text":"hello"}`, true, "", ""},
		{"image", `{"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"eA=="}]}`, true, "", ""},
		{"fails", "", false, refusal.ToolFailed, `The tool failed. It says: "no such hello"`},
		{"absent", "", false, refusal.ToolFailed, `The tool failed. It says: "unknown tool \"absent\""`},
	} {
		result, refused := h.run(t, of(c.tool))
		if c.code == "" && (refused != nil || string(result.Body) != c.body || result.JSON != c.json || result.Attempts != 1) {
			t.Errorf("%s: %q %v, %d attempts, %v", c.tool, result.Body, result.JSON, result.Attempts, refused)
		}
		if c.code != "" && (refused == nil || refused.Code != c.code || refused.Message != c.message) {
			t.Errorf("%s: %v", c.tool, refused)
		}
	}
	// Many at once, each with its own answer.
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			c := of("echo")
			c.Effect, c.Arguments = []string{"once", "read"}[i%2], fmt.Appendf(nil, `{"text":"%d"}`, i)
			if result, refused := h.run(t, c); refused != nil || string(result.Body) != fmt.Sprint(i) {
				t.Errorf("%d: %q, %v", i, result.Body, refused)
			}
		})
	}
	all.Wait()
}

// MCP-23, MCH-10, MCL-02: a change of the list is heard, from servers of both eras.
func TestMCP23ChangesAreHeard(t *testing.T) {
	t.Parallel()
	places := map[string]func(t *testing.T) (tool.Server, tool.Call){
		"stdio": func(t *testing.T) (tool.Server, tool.Call) {
			command := program(t, "sample")
			return tool.Server{Name: "files", Type: "mcp", Command: command}, local(command, "grow", "once")
		},
	}
	for name, options := range eras {
		places[name] = func(t *testing.T) (tool.Server, tool.Call) {
			url := serveSample(t, sample(), options)
			return tool.Server{Name: "files", Type: "mcp", URL: url, Addresses: loopback}, call(url, "grow", "once")
		}
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			server, c := place(t)
			received := make(chan string, 100)
			h := newFixture(t, engine.Options{}, func(server string, _ bool) { received <- server })
			server.Timeout = patient
			c.Run.Server = "files"
			before, err := h.Discover(t.Context(), server)
			if err != nil {
				t.Fatal(err)
			}
			// The stream may open after the session has, so that the first change may be
			// missed: there is always another.
			eventually(t, func() bool {
				must(t, h, c)
				select {
				case name := <-received:
					return name == "files"
				default:
					return false
				}
			})
			after, err := h.Discover(t.Context(), server)
			if err != nil || len(after) <= len(before) {
				t.Errorf("%d tools before, %d after: %v", len(before), len(after), err)
			}
			if !slices.ContainsFunc(after, func(d tool.Definition) bool { return strings.HasPrefix(d.Name, "grown") }) {
				t.Error("the new tool is not there")
			}
		})
	}
}

// TestSessionsAreCompared: a call in a session in which no list was discovered says that the tools may have changed, once.
func TestSessionsAreCompared(t *testing.T) {
	t.Parallel()
	received := make(chan bool, 100)
	h := newFixture(t, engine.Options{}, func(_ string, announced bool) { received <- announced })
	command := program(t, "script")
	if _, err := h.Discover(t.Context(), tool.Server{Name: "s", Type: "mcp", Command: command, Timeout: patient}); err != nil {
		t.Fatal(err)
	}
	h.run(t, local(command, "die", "once"))
	if len(received) != 0 {
		t.Error("a session that was compared is said to have other tools")
	}
	for range 3 {
		must(t, h, local(command, "pid", "read"))
	}
	if announced := receive(t, received); !announced || len(received) != 0 {
		t.Errorf("announced %v, and %d more", announced, len(received))
	}
}

// A callback that panics ends nothing.
func TestChangedMayPanic(t *testing.T) {
	t.Parallel()
	command := program(t, "sample")
	received := make(chan string, 100)
	h := newFixture(t, engine.Options{}, func(server string, _ bool) { received <- server; panic("SECRET") })
	c := local(command, "grow", "once")
	for range 2 {
		must(t, h, c)
		if got := <-received; got != "s" {
			t.Errorf("heard of %q", got)
		}
	}
}

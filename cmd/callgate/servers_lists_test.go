package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway"
)

// lister is a server of tools that answers with the list that a test gives it.
type lister struct {
	mu   sync.Mutex
	list string // empty: it is away
	cut  bool   // it is away in that it breaks off
}

func (l *lister) say(list string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.cut = list, false
}

func (l *lister) leave(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list, l.cut = "", cut
}

func (l *lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	list, cut := l.list, l.cut
	l.mu.Unlock()
	if list == "" {
		if cut {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		io.WriteString(w, list)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	switch err := json.NewDecoder(r.Body).Decode(&m); {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == "server/discover":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}`, m.ID)
	case m.Method == "tools/list":
		// With its length first, a list that is too large is refused before it is sent: 33 MB through
		// the race detector, twice, may take longer than the list may.
		start, end := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":`, m.ID), "}"
		w.Header().Set("Content-Length", strconv.Itoa(len(start)+len(list)+len(end)))
		_, _ = io.WriteString(w, start)
		_, _ = io.WriteString(w, list)
		_, _ = io.WriteString(w, end)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// TestUnreadableLists: a server whose list of tools cannot be read has not said what
// was accepted of it, and none of its tools may be called until it does. One that is
// away has said nothing else.
func TestUnreadableLists(t *testing.T) {
	t.Parallel()
	for of, c := range map[string]struct {
		list, tool string // the list, and its one tool
		large      int    // more bytes than a list may have
	}{
		lockfile.MCP:      {`{"resultType":"complete","tools":[TOOLS],"ttlMs":0,"cacheScope":"private"}`, `{"name":"search","description":"d","inputSchema":{"type":"object"}}`, 33 << 20},
		lockfile.OXP:      {`{"items":[TOOLS]}`, `{"id":"Hub.Search","name":"Search","description":"d","version":"1.0.0","input_schema":{"type":"object"}}`, 9 << 20},
		lockfile.Callback: {`{"name":"hub","endpoint":"/call","tools":[TOOLS]}`, `{"name":"search","description":"d","inputSchema":{"type":"object"}}`, 5 << 20},
	} {
		t.Run(of, func(t *testing.T) {
			with := func(tools string) string { return strings.Replace(c.list, "TOOLS", tools, 1) }
			good := with(c.tool)
			hub := &lister{list: good}
			server := httptest.NewServer(hub)
			t.Cleanup(server.Close)
			config := hubConfig(t, "p, Analyst, *, hub.*, , allow\n", "")
			servers := fmt.Sprintf("servers: [{name: hub, type: %s, url: %q, addresses: [127.0.0.1/32]}]\n# end\n", of, server.URL)
			if err := os.WriteFile(filepath.Join(filepath.Dir(config), "servers.yaml"), []byte(servers), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, stdout, stderr := command(t, nil, "servers", "accept", "hub", "--config", config); code != exitAccepted {
				t.Fatalf("%d: %s%s", code, stdout, stderr)
			}
			loaded, err := configs.Load(config)
			if err != nil {
				t.Fatal(err)
			}
			tools := app.NewEngine("test", engine.Options{}, nil, nil)
			t.Cleanup(tools.Close)
			k, err := app.NewChecker(loaded)
			if err != nil {
				t.Fatal(err)
			}
			var log syncBuffer
			f := toolservers.NewWatcher(tools, k.Hold, tools.Keep, slog.New(slog.NewTextHandler(&log, nil)))
			t.Cleanup(f.Close)
			f.Prepare(loaded)
			f.Commit()

			name := loaded.Tools.Entries()[0].Name()
			code := func() string {
				input := gateway.Input{Completion: fmt.Appendf(nil, `{"tool":{"name":%q,"arguments":{}}}`, name)}
				r := k.Check(context.Background(), gateway.Request{Subject: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Inputs: []gateway.Input{input}})
				if r.Refusal == nil {
					return ""
				}
				return string(r.Refusal.Code)
			}
			// Asked again and again: one that has failed is given some time.
			until := func(what string, holds func() bool) {
				t.Helper()
				eventually(t, what, func() bool {
					f.Changed("hub", false)
					return holds()
				})
			}
			until("it is well", func() bool { return code() == "" })

			for _, cut := range []bool{false, true} {
				hub.leave(cut)
				until("it is away", func() bool { return f.Statuses()[0].Fault != "" })
				if s := f.Statuses()[0]; code() != "" || s.Unreadable || s.Tools != 1 {
					t.Errorf("while it is away: %q, %+v", code(), s)
				}
				hub.say(good)
				until("it is back", func() bool { return f.Statuses()[0].Fault == "" })
			}
			bads := map[string]string{
				"no JSON":       "<p>Not now.</p>",
				"half of it":    good[:len(good)/2],
				"another shape": strings.NewReplacer("[", "{", "]", "}").Replace(with("")),
				"a tool twice":  with(c.tool + "," + c.tool),
				"no tool":       with(c.tool + ",7"),
				"a name twice":  with(strings.Replace(c.tool, `"description":"d"`, `"description":"d","description":"e"`, 1)),
				"too large":     with(c.tool + strings.Repeat(" ", c.large)),
			}
			if of != lockfile.Callback { // where an element that is no tool, or one again, costs no other
				delete(bads, "a tool twice")
				delete(bads, "no tool")
			}
			for what, bad := range bads {
				hub.say(bad)
				until(what, func() bool { return code() == "tool_quarantined" })
				if s := f.Statuses()[0]; !s.Unreadable || s.Tools != 0 || len(s.Quarantined) != 1 || s.Fault == "" || s.Heard == nil || f.Quarantined() != 1 {
					t.Errorf("%s: %+v", what, s)
				}
				if code, stdout, stderr := command(t, nil, "servers", "list", "--json", "--config", config); code != exitRefused || !strings.Contains(stdout, `"state":"unreadable"`) || stderr == "" {
					t.Errorf("%s is listed: %d, %s, %s", what, code, stdout, stderr)
				}
				if code, stdout, _ := command(t, nil, "servers", "accept", "hub", "--config", config); code != exitUsage || stdout != "" {
					t.Errorf("%s is accepted: %d, %s", what, code, stdout)
				}
				// Going away then, it has still said it last.
				hub.leave(false)
				last := f.Statuses()[0].Fault
				until("it is away after that", func() bool { return f.Statuses()[0].Fault != last })
				if code() != "tool_quarantined" {
					t.Errorf("%s, and then nothing: %q", what, code())
				}
				// A valid list must also have the accepted definitions.
				hub.say(with(strings.Replace(c.tool, `"description":"d"`, `"description":"e"`, 1)))
				until("it can be read", func() bool { return !f.Statuses()[0].Unreadable })
				if code() != "tool_quarantined" {
					t.Errorf("something else after %s: %q", what, code())
				}
				hub.say(good)
				until("it is well again", func() bool { return code() == "" })
			}
			if !strings.Contains(log.String(), "tool server listed tools that could not be read") {
				t.Errorf("found no word of it in %s", log.String())
			}
		})
	}
}

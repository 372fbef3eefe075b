package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
)

// shape is one way in which a client asks: a request, or a loop of them. shapes.json lists all.
type shape struct {
	ID     string `json:"id"`
	Client string `json:"client"`
	Shape  string `json:"shape"`
	// Model is the model that is asked for: a scenario of the sample model, behind a prefix of
	// prefixes; empty is text.
	Model string `json:"model"`
	// Sees is part of what the client returns.
	Sees string `json:"sees"`
	// Answer is part of the last answer, where that is not what the client makes of it.
	Answer string `json:"answer"`
	// Sends are parts of what the model is sent at last: what the gateway passes on.
	Sends []string `json:"sends"`
	// Refused is the refusal, where the gateway refuses the shape on purpose.
	Refused *refusedShape `json:"refused"`
}

type refusedShape struct {
	// Status is 0 where a stream had begun.
	Status int    `json:"status"`
	Code   string `json:"code"`
	// Names is the setting that permits the shape, or the part of the request that is to be sent
	// in its place. The message says it.
	Names string `json:"names"`
}

const shapesFile = "shapes/shapes.json"

func readShapes(t *testing.T) []shape {
	t.Helper()
	data, err := os.ReadFile(shapesFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []shape
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestShapesTable: the table is at least as long as it has to be, and says of each shape how it ends.
func TestShapesTable(t *testing.T) {
	all := readShapes(t)
	seen := map[string]bool{}
	for _, s := range all {
		if seen[s.ID] || !strings.HasPrefix(s.ID, s.Client+"-") || s.Shape == "" {
			t.Errorf("%s: the id is not of its own, or not the client's, or nothing says what the shape is", s.ID)
		}
		seen[s.ID] = true
		if (s.Refused == nil) == (s.Sees == "") || s.Refused != nil && (s.Refused.Code == "" || s.Refused.Names == "") {
			t.Errorf("%s: expected what the client sees, or a refusal with its code and what it names", s.ID)
		}
	}
	if len(all) < 60 {
		t.Errorf("found %d shapes; expected at least 60", len(all))
	}
}

// prefixes are the upstreams of the gateway of shapes: each has every scenario, under names with
// its prefix.
var prefixes = []struct{ name, rules string }{
	{"", "speaks: [chat, messages, responses], modes: [enforce, orchestrate]"},
	{"request-", "speaks: [chat, messages, responses], modes: [enforce], tools: request"},
	{"message-", "speaks: [chat], modes: [enforce], refusals: message"},
	{"chat-", "speaks: [chat], modes: [enforce]"},
	{"responses-", "speaks: [responses], modes: [enforce]"},
	{"open-", "speaks: [chat, messages, responses], modes: [enforce], request_members: [plugins], messages: {server_tools: [web_search]}, responses: {hosted_tools: [web_search]}"},
}

// shapesGateway is a whole gateway in this process, in front of the sample model.
type shapesGateway struct {
	address string
	client  *http.Client
	mu      sync.Mutex
	asked   []string // bodies that the model was sent
}

// drain returns the bodies that the model was sent since the last time.
func (g *shapesGateway) drain() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

// readBody reads a body, and puts it back for the next reader.
func readBody(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// announced takes log lines, and passes on where the gateway listens.
type announced chan string

func (a announced) Write(line []byte) (int, error) {
	if at := listening(line); at != "" {
		a <- at
	}
	return len(line), nil
}

func serveShapes(t *testing.T) *shapesGateway {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	programs, dir := t.TempDir(), t.TempDir()
	command(t, "../../tools", nil, "go", "build", "-o", programs, "./samplemodel")
	model, err := url.Parse(sampleModel(t, filepath.Join(programs, "samplemodel")))
	if err != nil {
		t.Fatal(err)
	}
	g := &shapesGateway{client: &http.Client{Transport: &http.Transport{}}}
	between := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(model) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := readBody(r)
		if r.Method == http.MethodPost {
			g.mu.Lock()
			g.asked = append(g.asked, string(body))
			g.mu.Unlock()
		}
		between.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)

	tools, err := os.ReadFile("../../configs/tools/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tools/demo.yaml", string(tools))
	write(t, dir, "policy.csv", "p, Analyst, acme/alpha, *, , allow\np, Analyst, acme/alpha, payments.refund, , deny\n# end\n")
	write(t, dir, "workspaces.yaml", "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [project], hosts: [example.com]}}}}\n# end\n")
	if err := os.CopyFS(filepath.Join(dir, "project"), os.DirFS("../../engine/demo/project")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "limits.yaml", "caller: {rate: 10000/s, burst: 10000}\ndefault: {rate: 10000/s, burst: 10000, concurrency: 100}\n# end\n")
	write(t, dir, "callgate.yaml", "server: {listen: \"127.0.0.1:0\", admin_listen: \"127.0.0.1:0\"}\nregistry: {files: [tools/*.yaml]}\nupstreams: upstreams.yaml\ndata_dir: "+dataDir(t)+"\n# end\n")
	write(t, dir, "upstreams.yaml", shapesUpstreams(t, front.URL))
	loaded, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	address, ended := make(announced, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- app.Serve(ctx, loaded.Files[0], loaded, app.Options{Logger: slog.New(slog.NewJSONHandler(address, nil)), Wait: time.Minute})
	}()
	select {
	case at := <-address:
		g.address = "http://" + at
	case err := <-ended:
		t.Fatalf("the gateway ended: %v", err)
	}
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g
}

// shapesUpstreams has every scenario that a shape asks for, at every upstream.
func shapesUpstreams(t *testing.T, address string) string {
	scenarios := []string{"text"}
	for _, s := range readShapes(t) {
		name := s.Model
		for _, p := range prefixes {
			if rest, ok := strings.CutPrefix(s.Model, p.name); ok {
				name = rest
			}
		}
		if name != "" && name != "nobody" && !slices.Contains(scenarios, name) {
			scenarios = append(scenarios, name)
		}
	}
	var b strings.Builder
	b.WriteString("upstreams:\n")
	for _, p := range prefixes {
		var models []string
		for _, name := range scenarios {
			models = append(models, fmt.Sprintf("{id: %s%s, upstream_model: %s}", p.name, name, name))
		}
		fmt.Fprintf(&b, "  - {name: %sshapes, base_url: \"%s/v1\", timeouts: {connect: 30s, response: 1m, idle: 1m}, %s, models: [%s]}\n", p.name, address, p.rules, strings.Join(models, ", "))
	}
	return b.String() + "# end\n"
}

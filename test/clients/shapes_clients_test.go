package clients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// exchange is one request of a client, as it stands in shapes/requests.
type exchange struct {
	Shape  string            `json:"shape"`
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Header map[string]string `json:"header,omitempty"`
	// Body is JSON; Other is a body of another form.
	Body   json.RawMessage `json:"body,omitempty"`
	Other  []byte          `json:"other,omitempty"`
	Status int             `json:"status"`
}

// recordedHeaders are those that a face reads. Credentials and the client's own version are not
// among them.
var recordedHeaders = []string{"Accept", "Anthropic-Beta", "Anthropic-Version", "Callgate-Mode", "Content-Type"}

// recorder stands in front of a gateway, at /shape/ID, and keeps what each shape sends.
type recorder struct {
	mu        sync.Mutex
	exchanges map[string][]*exchange
}

func recordShapes(t *testing.T, gateway string) (*recorder, string) {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{exchanges: map[string][]*exchange{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, FlushInterval: -1}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		id, path, found := strings.Cut(strings.TrimPrefix(request.URL.Path, "/shape/"), "/")
		if !found {
			http.NotFound(w, request)
			return
		}
		request.URL.Path, request.URL.RawPath = "/"+path, ""
		e := r.add(id, request)
		proxy.ServeHTTP(&statusWriter{ResponseWriter: w, status: &e.Status}, request)
	}))
	t.Cleanup(server.Close)
	return r, server.URL
}

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter
	status *int
}

func (w *statusWriter) WriteHeader(status int) {
	*w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (r *recorder) add(id string, request *http.Request) *exchange {
	e := &exchange{Shape: id, Method: request.Method, Path: request.URL.RequestURI(), Header: map[string]string{}}
	for _, name := range recordedHeaders {
		if value := request.Header.Get(name); value != "" {
			e.Header[name] = value
		}
	}
	body := readBody(request)
	switch {
	case len(body) == 0:
	case json.Valid(body):
		e.Body = settled(body)
	default:
		e.Other = body
	}
	r.mu.Lock()
	r.exchanges[id] = append(r.exchanges[id], e)
	r.mu.Unlock()
	return e
}

// chosenID is an id that the gateway, the model or a client has chosen: it differs from run to run.
var chosenID = regexp.MustCompile(`"(call|fc|msg|resp|rs|toolu|chatcmpl|ctc)(_|-)[A-Za-z0-9_-]+"`)

// settled replaces ids by the order in which they occur, and takes out white space.
func settled(body []byte) json.RawMessage {
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil {
		return body
	}
	ids := map[string]string{}
	return chosenID.ReplaceAllFunc(compact.Bytes(), func(id []byte) []byte {
		if ids[string(id)] == "" {
			kind, _, _ := strings.Cut(strings.Trim(string(id), `"`), "_")
			ids[string(id)] = fmt.Sprintf("%q", fmt.Sprintf("%s_%d", kind, len(ids)+1))
		}
		return []byte(ids[string(id)])
	})
}

// sorted is a settled body with its members in order: the sample model, whose items clients send back,
// writes them in any.
func sorted(body json.RawMessage) json.RawMessage {
	var value any
	if json.Unmarshal(body, &value) != nil {
		return body
	}
	in, err := json.Marshal(value)
	if err != nil {
		return body
	}
	return settled(in)
}

// same reports whether two exchanges are the same but for what a client chooses anew each time.
func (e *exchange) same(other *exchange) bool {
	media := func(e *exchange) string {
		kind, _, _ := mime.ParseMediaType(e.Header["Content-Type"]) // the boundary of a multipart body
		return kind
	}
	return e.Method == other.Method && e.Path == other.Path && e.Status == other.Status && bytes.Equal(sorted(e.Body), sorted(other.Body)) &&
		(len(e.Other) > 0) == (len(other.Other) > 0) && media(e) == media(other) && e.Header["Callgate-Mode"] == other.Header["Callgate-Mode"]
}

func requestsFile(client string) string { return filepath.Join("shapes/requests", client+".jsonl") }

// readExchanges reads the requests of a client, by shape.
func readExchanges(t *testing.T, client string) map[string][]*exchange {
	t.Helper()
	data, err := os.ReadFile(requestsFile(client))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]*exchange{}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var e exchange
		err := d.Decode(&e)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", requestsFile(client), err)
		}
		all[e.Shape] = append(all[e.Shape], &e)
	}
}

// writeExchanges writes the requests of a client in the order of the table.
func writeExchanges(t *testing.T, client string, shapes []shape, all map[string][]*exchange) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for _, s := range shapes {
		for _, x := range all[s.ID] {
			if err := e.Encode(x); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(requestsFile(client), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// outcome is how a shape ended for its client.
type outcome struct {
	Shape   string `json:"shape"`
	Value   string `json:"value"`
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Fault   string `json:"fault"` // an error that is no refusal
}

// TestShapes has each client ask in every shape, and looks at what it sees. The requests are those
// of shapes/requests; with CALLGATE_RECORD_SHAPES they are written there.
func TestShapes(t *testing.T) {
	if os.Getenv("CALLGATE_CLIENTS") == "" {
		t.Skip("skipped: make test-clients runs the real clients, which it fetches; TestShapesReplayed sends what they sent")
	}
	gateway := serveShapes(t)
	recorder, address := recordShapes(t, gateway.address)
	byClient := map[string][]shape{}
	for _, s := range readShapes(t) {
		byClient[s.Client] = append(byClient[s.Client], s)
	}
	drive := shapeDriver(t, address)
	for _, client := range slices.Sorted(maps.Keys(byClient)) {
		t.Run(client, func(t *testing.T) {
			if testing.Short() && client == "langchain" {
				t.Skip("short: LangChain repeats refused requests for over a minute; TestShapesReplayed sends what it sent")
			}
			outcomes := map[string]outcome{}
			for line := range strings.Lines(drive(t, client)) {
				var o outcome
				if strings.HasPrefix(line, `{"shape":`) && json.Unmarshal([]byte(line), &o) == nil {
					outcomes[o.Shape] = o
				}
			}
			for _, s := range byClient[client] {
				if fault := s.checkOutcome(outcomes[s.ID]); fault != "" {
					t.Errorf("%s (%s): %s", s.ID, s.Shape, fault)
				}
			}
			if os.Getenv("CALLGATE_RECORD_SHAPES") != "" {
				writeExchanges(t, client, byClient[client], recorder.exchanges)
				return
			}
			recorded := readExchanges(t, client)
			for _, s := range byClient[client] {
				if !slices.EqualFunc(recorded[s.ID], recorder.exchanges[s.ID], (*exchange).same) {
					t.Errorf("%s: the client sends other requests than %s has: look at what changed, and record them with CALLGATE_RECORD_SHAPES=1", s.ID, requestsFile(client))
				}
			}
		})
	}
}

// shapeDriver returns a function that has a client ask in all its shapes, and returns what it
// printed.
func shapeDriver(t *testing.T, address string) func(t *testing.T, client string) string {
	env := append(os.Environ(), "NO_COLOR=1", "SHAPES_ADDRESS="+address)
	dir := t.TempDir()
	prepare := sync.OnceValue(func() string {
		if err := os.CopyFS(dir, os.DirFS("shapes")); err != nil {
			t.Fatal(err)
		}
		return dir
	})
	return func(t *testing.T, client string) string {
		if client == "go" {
			return command(t, "go", append(env, "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath"), "go", "test", "-count=1", "-v", "-run", "^TestShapes$", "./...")
		}
		prepare()
		if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
			installed(t, dir)
		}
		return command(t, dir, append(env, "SHAPES_CLIENT="+client), nodeOf(t, dir), "drive.mjs")
	}
}

// checkOutcome says what is wrong with how a shape ended; empty is nothing.
func (s *shape) checkOutcome(o outcome) string {
	switch {
	case o.Shape == "":
		return "the client did not ask"
	case o.Fault != "":
		return "found the error " + o.Fault
	case s.Refused == nil && !strings.Contains(o.Value, s.Sees):
		return fmt.Sprintf("found %+v; expected %q", o, s.Sees)
	case s.Refused == nil:
		return ""
	case o.Value != "":
		return fmt.Sprintf("found %q; expected the refusal %s", o.Value, s.Refused.Code)
	case s.Refused.Status != 0 && o.Status != s.Refused.Status || o.Code != s.Refused.Code:
		return fmt.Sprintf("found %d %s (%s); expected %d %s", o.Status, o.Code, o.Message, s.Refused.Status, s.Refused.Code)
	case !strings.Contains(o.Message, s.Refused.Names):
		return fmt.Sprintf("found the message %q; expected that it names %q", o.Message, s.Refused.Names)
	}
	return ""
}

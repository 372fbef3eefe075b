package admin_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
)

// principals is a kernel that knows keys; with a nil map none are required.
type principals map[string]*identity.Principal

func (k principals) Principal(credential string) (*identity.Principal, *refusal.Error) {
	if k == nil {
		return nil, nil
	}
	if p := k[credential]; p != nil {
		return p, nil
	}
	return nil, refusal.New(refusal.Unauthenticated, "unknown")
}

var keys = principals{"operator": {Name: "ada", Operator: true}, "plain": {Name: "bob"}, "approver": {Name: "eve", Approves: []string{"refunds"}}}

type named struct {
	Name string `json:"name"`
	Deep struct {
		Scope string `json:"scope"`
	} `json:"deep"`
}

// things is an endpoint with a parameter and a path, and one that reads a body.
func things() []admin.Endpoint {
	return []admin.Endpoint{
		{
			Method: http.MethodGet, Path: "/v1/things/{id}", Summary: "A thing", Query: []admin.Parameter{{Name: "limit"}, {Name: "kind"}}, Answer: named{},
			Serve: func(r *admin.Request) (any, error) {
				switch id := r.PathValue("id"); id {
				case "panics":
					panic("canary-4711")
				case "fails":
					return nil, errors.New("canary-4711")
				case "refuses":
					return nil, refusal.New(refusal.NotFound, "There is no such thing.")
				default:
					if _, err := r.Limit(); err != nil {
						return nil, err
					}
					if _, err := r.Choice("kind", "a", "b"); err != nil {
						return nil, err
					}
					return named{Name: id + "\u202e<b>"}, nil
				}
			},
		},
		{
			Method: http.MethodPost, Path: "/v1/things/{id}", Summary: "Renames a thing", Body: named{}, Answer: named{},
			Serve: func(r *admin.Request) (any, error) {
				var body named
				err := r.Decode(&body)
				return body, err
			},
		},
	}
}

func apiOf(t *testing.T, k admin.Kernel, loopback bool) *admin.API {
	t.Helper()
	api := admin.New(admin.Options{Kernel: k, Loopback: loopback, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	api.Mount(things()...)
	return api
}

// serveAPI serves an API on loopback.
func serveAPI(t *testing.T, api http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server
}

type sent struct {
	method, path, body string
	host               string
	header             map[string]string
}

func send(t *testing.T, server *httptest.Server, s sent) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(s.method, server.URL+s.path, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	if s.body == "" {
		r.Body, r.ContentLength = nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.host != "" {
		r.Host = s.host
	}
	for name, value := range s.header {
		r.Header.Set(name, value)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// codeOf is the code of an answer that refuses.
func codeOf(t *testing.T, body string) string {
	t.Helper()
	var answer struct {
		Result struct {
			Output struct{ Error struct{ Code string } }
		} `json:"tool_result"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		t.Errorf("%q: %v", body, err)
	}
	return answer.Result.Output.Error.Code
}

func TestAccess(t *testing.T) {
	for name, c := range map[string]struct {
		kernel        admin.Kernel
		loopback      bool
		authorization string
		want          int
	}{
		"none, on loopback":                {principals(nil), true, "", 200},
		"none, beyond loopback":            {principals(nil), false, "", 401},
		"a key where none is required":     {principals(nil), true, "Bearer x", 200},
		"an operator":                      {keys, true, "Bearer operator", 200},
		"an operator, beyond loopback":     {keys, false, "Bearer operator", 200},
		"no key":                           {keys, true, "", 401},
		"another key":                      {keys, true, "Bearer operators", 401},
		"another scheme":                   {keys, true, "Basic operator", 401},
		"two keys":                         {keys, true, "Bearer operator, operator", 401},
		"a principal that is no operator":  {keys, true, "Bearer plain", 403},
		"an approver":                      {keys, true, "Bearer approver", 403},
		"no operator, and nobody is asked": {keys, false, "Bearer plain", 403},
	} {
		server := serveAPI(t, apiOf(t, c.kernel, c.loopback))
		header := map[string]string{}
		if c.authorization != "" {
			header["Authorization"] = c.authorization
		}
		for _, s := range []sent{{method: "GET", path: "/v1/things/1", header: header}, {method: "POST", path: "/v1/things/1", body: `{"name":"x"}`, header: header}} {
			answer, body := send(t, server, s)
			if answer.StatusCode != c.want {
				t.Errorf("%s: %s gave %d %s, expected %d", name, s.method, answer.StatusCode, body, c.want)
			}
			if (answer.StatusCode == 401) != (answer.Header.Get("WWW-Authenticate") == "Bearer") {
				t.Errorf("%s: found the headers %v", name, answer.Header)
			}
		}
	}
}

// TestApprovers: an approver uses what is for approvers, and nothing else.
func TestApprovers(t *testing.T) {
	server := serveAPI(t, apiOf(t, keys, false))
	for key, want := range map[string]int{"operator": 200, "approver": 200, "plain": 403, "": 401} {
		header := map[string]string{}
		if key != "" {
			header["Authorization"] = "Bearer " + key
		}
		if answer, body := send(t, server, sent{method: "GET", path: "/v1/openapi.json", header: header}); answer.StatusCode != want {
			t.Errorf("%q: %d %s", key, answer.StatusCode, body)
		}
	}
}

// TestPages: no page of another site reads or changes anything, by whatever name it reaches
// the gateway; that browsers send Sec-Fetch-Site or Origin does not matter.
func TestPages(t *testing.T) {
	server := serveAPI(t, apiOf(t, principals(nil), true))
	own := strings.TrimPrefix(server.URL, "http://")
	for name, c := range map[string]struct {
		host, origin, site string
		get, post          int
	}{
		"no page":                      {get: 200, post: 200},
		"own page":                     {origin: "http://" + own, site: "same-origin", get: 200, post: 200},
		"own page, of an old browser":  {origin: "http://" + own, get: 200, post: 200},
		"another page of this machine": {origin: "http://localhost:1", site: "same-site", get: 200, post: 400},
		"a foreign page":               {origin: "https://evil.example", site: "cross-site", get: 400, post: 400},
		"a foreign page without Sec-":  {origin: "https://evil.example", get: 400, post: 400},
		"a form without Origin":        {site: "cross-site", get: 200, post: 400},
		"no origin at all":             {origin: "null", get: 400, post: 400},
		"a rebound name":               {host: "evil.example", get: 400, post: 400},
		"a rebound name, own origin":   {host: "evil.example", origin: "http://evil.example", site: "same-origin", get: 400, post: 400},
	} {
		header := map[string]string{}
		if c.origin != "" {
			header["Origin"] = c.origin
		}
		if c.site != "" {
			header["Sec-Fetch-Site"] = c.site
		}
		if answer, body := send(t, server, sent{method: "GET", path: "/v1/things/1", host: c.host, header: header}); answer.StatusCode != c.get {
			t.Errorf("%s: GET gave %d %s", name, answer.StatusCode, body)
		}
		if answer, body := send(t, server, sent{method: "POST", path: "/v1/things/1", body: `{}`, host: c.host, header: header}); answer.StatusCode != c.post {
			t.Errorf("%s: POST gave %d %s", name, answer.StatusCode, body)
		}
	}
}

func TestRequests(t *testing.T) {
	server := serveAPI(t, apiOf(t, principals(nil), true))
	text := map[string]string{"Content-Type": "text/plain"}
	for name, c := range map[string]struct {
		sent
		status int
		code   string
	}{
		"a parameter":             {sent{method: "GET", path: "/v1/things/1?limit=500"}, 200, ""},
		"a choice":                {sent{method: "GET", path: "/v1/things/1?kind=b"}, 200, ""},
		"another choice":          {sent{method: "GET", path: "/v1/things/1?kind=c"}, 400, "bad_request"},
		"a limit of nothing":      {sent{method: "GET", path: "/v1/things/1?limit=0"}, 400, "bad_request"},
		"a limit too high":        {sent{method: "GET", path: "/v1/things/1?limit=501"}, 400, "bad_request"},
		"twice":                   {sent{method: "GET", path: "/v1/things/1?limit=5&limit=6"}, 400, "bad_request"},
		"unknown parameter":       {sent{method: "GET", path: "/v1/things/1?vote=approve"}, 400, "bad_request"},
		"a query out of bounds":   {sent{method: "GET", path: "/v1/things/1?kind=" + strings.Repeat("x", 5000)}, 400, "bad_request"},
		"a broken query":          {sent{method: "GET", path: "/v1/things/1?kind=%zz"}, 400, "bad_request"},
		"a body nobody reads":     {sent{method: "GET", path: "/v1/things/1", body: "{}"}, 400, "bad_request"},
		"no body":                 {sent{method: "POST", path: "/v1/things/1"}, 415, "unsupported_media_type"},
		"text":                    {sent{method: "POST", path: "/v1/things/1", body: "{}", header: text}, 415, "unsupported_media_type"},
		"no object":               {sent{method: "POST", path: "/v1/things/1", body: "[]"}, 400, "bad_request"},
		"twice in the body":       {sent{method: "POST", path: "/v1/things/1", body: `{"name":"a","name":"b"}`}, 400, "bad_request"},
		"another case":            {sent{method: "POST", path: "/v1/things/1", body: `{"Name":"a"}`}, 400, "bad_request"},
		"another case, deep":      {sent{method: "POST", path: "/v1/things/1", body: `{"deep":{"Scope":"a"}}`}, 400, "bad_request"},
		"a wrong type":            {sent{method: "POST", path: "/v1/things/1", body: `{"name":1}`}, 400, "bad_request"},
		"too long":                {sent{method: "POST", path: "/v1/things/1", body: `{"name":"` + strings.Repeat("a", 64<<10) + `"}`}, 413, "request_too_large"},
		"a method it has not":     {sent{method: "DELETE", path: "/v1/things/1"}, 405, "method_not_allowed"},
		"another path":            {sent{method: "GET", path: "/v1/other"}, 404, "not_found"},
		"refused":                 {sent{method: "GET", path: "/v1/things/refuses"}, 404, "not_found"},
		"an error inside":         {sent{method: "GET", path: "/v1/things/fails"}, 500, "internal"},
		"a panic inside":          {sent{method: "GET", path: "/v1/things/panics"}, 500, "internal"},
		"an escaped path segment": {sent{method: "GET", path: "/v1/things/a%2Fb"}, 200, ""},
	} {
		answer, body := send(t, server, c.sent)
		if answer.StatusCode != c.status || c.code != "" && codeOf(t, body) != c.code {
			t.Errorf("%s: found %d %s, expected %d %s", name, answer.StatusCode, body, c.status, c.code)
		}
		if strings.Contains(body, "canary-4711") {
			t.Errorf("%s: the answer has the text of an error: %s", name, body)
		}
		for _, want := range [][2]string{{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}, {"Content-Type", "application/json; charset=utf-8"}} {
			if got := answer.Header.Get(want[0]); got != want[1] {
				t.Errorf("%s: %s is %q", name, want[0], got)
			}
		}
	}
	if answer, _ := send(t, server, sent{method: "PUT", path: "/v1/things/1"}); answer.Header.Get("Allow") != "GET, POST" {
		t.Errorf("Allow is %q", answer.Header.Get("Allow"))
	}
	if _, body := send(t, server, sent{method: "GET", path: "/v1/things/1"}); !strings.Contains(body, `1\u202e<b>`) {
		t.Errorf("found %s", body)
	}
}

// TestAPIIsBounded: beyond the bound requests are refused and none waits.
func TestAPIIsBounded(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	api := apiOf(t, principals(nil), true)
	api.Mount(admin.Endpoint{Method: "GET", Path: "/v1/slow", Summary: "Waits", Answer: "", Serve: func(*admin.Request) (any, error) {
		inside <- struct{}{}
		<-leave
		return "", nil
	}})
	server := serveAPI(t, api)
	ended := make(chan int, 16)
	for range 16 {
		go func() {
			answer, err := server.Client().Get(server.URL + "/v1/slow")
			if err != nil {
				ended <- 0
				return
			}
			answer.Body.Close()
			ended <- answer.StatusCode
		}()
		<-inside
	}
	answer, body := send(t, server, sent{method: "GET", path: "/v1/slow"})
	if answer.StatusCode != 503 || codeOf(t, body) != "overloaded" || answer.Header.Get("Retry-After") != "1" {
		t.Errorf("one too many: %d %s", answer.StatusCode, body)
	}
	close(leave)
	for range 16 {
		if code := <-ended; code != 200 {
			t.Errorf("one of those inside: %d", code)
		}
	}
}

// TestOnePrincipalLeavesRoom: one approver fills what it may, by bodies that arrive slowly, by requests that
// take long, and by streams, and the others are answered all the same.
func TestOnePrincipalLeavesRoom(t *testing.T) {
	const most = 40 // more than one may have of any bound
	for name, head := range map[string]string{
		"bodies":   "POST /v1/body HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 100",
		"requests": "GET /v1/slow HTTP/1.1",
		"streams":  "GET /v1/stream HTTP/1.1",
	} {
		t.Run(name, func(t *testing.T) {
			api := apiOf(t, principals{"op": {Name: "op", Operator: true}, "mal": {Name: "mal", Approves: []string{"deploys"}}}, true)
			leave := make(chan struct{})
			wait := func(r *admin.Request) (any, error) {
				if r.Caller.Name == "mal" {
					<-leave
				}
				return "", nil
			}
			api.Mount(
				admin.Endpoint{Method: "GET", Path: "/v1/slow", Summary: "Waits", Access: admin.Approvers, Answer: "", Serve: wait},
				admin.Endpoint{Method: "POST", Path: "/v1/body", Summary: "Reads", Access: admin.Approvers, Body: named{}, Answer: "", Serve: wait},
				admin.Endpoint{Method: "GET", Path: "/v1/stream", Summary: "Streams", Access: admin.Approvers, Answer: "", Stream: func(_ http.ResponseWriter, r *admin.Request) error {
					_, err := wait(r)
					return err
				}},
			)
			server := serveAPI(t, api)
			refusals := make(chan string, most)
			var clients sync.WaitGroup
			var open []net.Conn
			for range most {
				c, err := net.Dial("tcp", server.Listener.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				open = append(open, c)
				if _, err := io.WriteString(c, head+"\r\nHost: localhost\r\nAuthorization: Bearer mal\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				clients.Go(func() {
					if status, err := bufio.NewReader(c).ReadString('\n'); err == nil && !strings.Contains(status, " 200 ") {
						refusals <- status
					}
				})
			}
			if first := <-refusals; !strings.Contains(first, " 503 ") { // mal has all that it may have
				t.Errorf("found %q", first)
			}
			for _, s := range []sent{{method: "GET", path: "/v1/slow"}, {method: "POST", path: "/v1/body", body: `{"name":"a"}`}, {method: "GET", path: "/v1/stream"}} {
				s.header = map[string]string{"Authorization": "Bearer op"}
				if answer, text := send(t, server, s); answer.StatusCode != 200 {
					t.Errorf("%s %s of another: %d %s", s.method, s.path, answer.StatusCode, text)
				}
			}
			close(leave)
			for _, c := range open {
				c.Close()
			}
			clients.Wait()
		})
	}
}

// TestDescription: the description has every endpoint, and its references lead somewhere.
func TestDescription(t *testing.T) {
	server := serveAPI(t, apiOf(t, principals(nil), true))
	_, body := send(t, server, sent{method: "GET", path: "/v1/openapi.json"})
	var d struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
		Components struct{ Schemas map[string]json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	get := d.Paths["/v1/things/{id}"]["get"]
	if len(get.Parameters) != 3 || get.Parameters[0].In != "path" || get.Parameters[0].Name != "id" || get.Parameters[1].In != "query" {
		t.Errorf("found %+v", get)
	}
	if _, ok := d.Paths["/v1/things/{id}"]["post"]; !ok {
		t.Error("POST is missing")
	}
	for _, part := range strings.Split(body, `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		if _, ok := d.Components.Schemas[name]; !ok {
			t.Errorf("a reference to %s leads nowhere", name)
		}
	}
}

func TestMountRefusesMistakes(t *testing.T) {
	good := things()[0]
	for name, change := range map[string]func(*admin.Endpoint){
		"no answer":    func(e *admin.Endpoint) { e.Answer = nil },
		"no summary":   func(e *admin.Endpoint) { e.Summary = "" },
		"does nothing": func(e *admin.Endpoint) { e.Serve = nil },
		"elsewhere":    func(e *admin.Endpoint) { e.Path = "/metrics" },
		"twice":        func(*admin.Endpoint) {},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it is mounted", name)
				}
			}()
			e := good
			change(&e)
			apiOf(t, principals(nil), true).Mount(e)
		}()
	}
}

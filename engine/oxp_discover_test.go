package engine_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func discoverOXP(t testing.TB, e *engine.Engine, url string) ([]tool.Definition, error) {
	t.Helper()
	return e.Discover(t.Context(), tool.Server{Name: "s", Type: "oxp", URL: url, Credential: tool.Bearer("env:TOKEN"), Addresses: []string{"127.0.0.1/32"}, Timeout: patient})
}

const definition = `{"id":"Web.Search","name":"Web_Search","description":"Searches.","version":"1.2.3"}`

// TestOXP02And03Lists: every item is a definition as the protocol has them, and no id
// stands twice.
func TestOXP02And03Lists(t *testing.T) {
	t.Parallel()
	e := newEngine(t, engine.Options{ReadSecret: func(context.Context, string) (string, error) { return "token", nil }})
	full := `{"items":[
	{"id":"Web.Search@1.2.3","name":"Web_Search","description":"Se\u0061rches.","version":"1.2.3","input_schema":{"type":"object","properties":{"q":{"type":"string"}}},"output_schema":{"type":"object"},"requirements":{"user_id":true,"authorization":[{"id":"google","oauth2":{"scopes":["a"]}}]}},
	{"id":"Web.Search@1","name":"Web_Search","description":"Old.","version":"1.0.0","output_schema":null,"input_schema":{}},
	{"id":"Mail.Send","name":"Mail-Send","description":"","version":"0.1.0","requirements":{"secrets":[{"id":"smtp"}]}}]}`
	s := newOXPServer(t, oxpReply{status: 200, body: full})
	found, err := discoverOXP(t, e, s.URL+"/base")
	if err != nil || len(found) != 3 {
		t.Fatalf("%v %v", found, err)
	}
	seen := s.received()[0]
	if seen.method != "GET" || seen.path != "/base/tools" || seen.header.Get("Authorization") != "Bearer token" || seen.header.Get("OXP-Version") != "1.0" || len(seen.header) != 5 {
		t.Errorf("asked %+v", seen)
	}
	for i, want := range []string{
		`Web.Search 1.2.3 Web_Search "Searches." {"type":"object","properties":{"q":{"type":"string"}}} {"type":"object"} ""`,
		`Web.Search 1.0.0 Web_Search "Old." {} {"type":"null"} ""`,
		`Mail.Send 0.1.0 Mail-Send ""   "it needs 1 secrets with each call, which Callgate does not have; give them to its server"`,
	} {
		d := found[i]
		if got := fmt.Sprintf("%s %s %s %q %s %s %q", d.Name, d.Version, d.Title, d.Description, d.InputSchema, d.OutputSchema, d.Unusable); got != want {
			t.Errorf("found %s\nwant  %s", got, want)
		}
	}
	with := func(change ...string) string {
		return `{"items":[` + strings.NewReplacer(change...).Replace(definition) + `]}`
	}
	for name, c := range map[string]struct{ body, fault string }{
		"none":                 {`{"items":[]}`, ""},
		"one":                  {with(), ""},
		"other members beside": {`{"items":[],"$schema":"https://example.org/"}`, ""},
		"null":                 {`{"items":null}`, "no items that are a list"},
		"absent":               {`{}`, "no items that are a list"},
		"in capitals":          {`{"Items":[]}`, "no items that are a list"},
		"a list alone":         {`[]`, "no object"},
		"no JSON":              {`{"items":[`, "not strict JSON"},
		"twice":                {`{"items":[],"items":[]}`, "stands twice"},
		"no id":                {with(`"id"`, `"name"`), "twice"},
		"too many":             {`{"items":[` + strings.Repeat(`1,`, 1024) + `1]}`, "at most 1024"},
	} {
		s := newOXPServer(t, oxpReply{status: 200, body: c.body})
		found, err := discoverOXP(t, e, s.URL)
		var unreadable *tool.InvalidListError
		switch {
		case c.fault == "" && (err != nil || found == nil):
			t.Errorf("%s: %v", name, err)
		case c.fault != "" && (!errors.As(err, &unreadable) || !strings.Contains(err.Error(), c.fault) || found != nil):
			t.Errorf("%s: %v", name, err)
		}
		if c.fault == "" {
			if s.schema.Check("ToolDefinition", []byte(definition)) != nil {
				t.Errorf("%s: is no definition by the schema", name)
			}
		}
	}
	// One that is no definition, or has the id of another, costs no other tool.
	for name, c := range map[string]struct{ body, fault string }{
		"no object":               {`{"items":[1]}`, "tool 1 of its list: found no object"},
		"another member":          {with(`"id"`, `"annotations":{},"id"`), `found the member "annotations"`},
		"no name":                 {with(`"name":"Web_Search",`, ``), "no name that is a string"},
		"no description":          {with(`,"description":"Searches."`, ``), "no description that is a string"},
		"a description of null":   {with(`"Searches."`, `null`), "no description that is a string"},
		"no version":              {with(`,"version":"1.2.3"`, ``), "no version that is a string"},
		"a version of two parts":  {with(`"1.2.3"`, `"1.2"`), "not x.y.z"},
		"a version of letters":    {with(`"1.2.3"`, `"1.2.3-beta"`), "not x.y.z"},
		"an id without a dot":     {with(`Web.Search`, `Search`), "not Toolkit.Tool"},
		"an id of two dots":       {with(`Web.Search`, `Web.a.Search`), "not Toolkit.Tool"},
		"an id with a dash":       {with(`Web.Search`, `Web.Se-arch`), "not Toolkit.Tool"},
		"an id and a line":        {with(`Web.Search`, `Web.Search\n`), "not Toolkit.Tool"},
		"an id of two parts":      {with(`Web.Search`, `Web.Search@1.2`), "not Toolkit.Tool"},
		"an id of another one":    {with(`Web.Search`, `Web.Search@1.2.4`), "another version"},
		"an id of a major one":    {with(`Web.Search`, `Web.Search@1`), "another version"},
		"a name with a dot":       {with(`Web_Search`, `Web.S`), "found a name"},
		"a long name":             {with(`Web_Search`, strings.Repeat("x", 65)), "found a name"},
		"a schema of true":        {with(`"id"`, `"input_schema":true,"id"`), "input_schema that is no object"},
		"a schema of null":        {with(`"id"`, `"input_schema":null,"id"`), ""},
		"a schema of results":     {with(`"id"`, `"output_schema":[],"id"`), "output_schema that is no object"},
		"requirements of null":    {with(`"id"`, `"requirements":null,"annotations":null,"id"`), ""},
		"no requirement":          {with(`"id"`, `"requirements":{"secrets":null,"authorization":null,"user_id":null},"id"`), ""},
		"secrets without id":      {with(`"id"`, `"requirements":{"secrets":[{}]},"id"`), "secret without an id"},
		"secrets of text":         {with(`"id"`, `"requirements":{"secrets":["x"]},"id"`), "no list of objects"},
		"authorization of text":   {with(`"id"`, `"requirements":{"authorization":"x"},"id"`), "no list of objects"},
		"a user in words":         {with(`"id"`, `"requirements":{"user_id":"yes"},"id"`), "no boolean"},
		"the same":                {`{"items":[` + definition + `,` + definition + `]}`, ""},
		"the same but for a word": {`{"items":[` + definition + `,` + strings.Replace(definition, "Searches.", "Sends.", 1) + `]}`, "several tools of this id"},
		"the same by version":     {`{"items":[` + definition + `,` + strings.Replace(definition, "Search\"", "Search@1.2.3\"", 1) + `]}`, ""},
		"the same id":             {`{"items":[` + definition + `,` + strings.Replace(definition, "1.2.3", "2.0.0", 1) + `]}`, "several tools of this id"},
	} {
		const other = `{"id":"Mail.Send","name":"Mail_Send","description":"","version":"1.0.0"}`
		s := newOXPServer(t, oxpReply{status: 200, body: strings.TrimSuffix(c.body, "]}") + "," + other + "]}"})
		found, err := discoverOXP(t, e, s.URL)
		if err != nil || len(found) < 2 || found[len(found)-1].Unusable != "" {
			t.Errorf("%s: %+v %v", name, found, err)
			continue
		}
		for _, d := range found[:len(found)-1] {
			if !strings.Contains(d.Unusable, c.fault) || (d.Unusable == "") != (c.fault == "") {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
	for name, reply := range map[string]oxpReply{
		"unknown":         {401, `{"message":"x"}`, nil},
		"away":            {503, ``, nil},
		"moved":           {302, ``, []string{"Location", "/x"}},
		"text":            {200, `{"items":[]}`, []string{"Content-Type", "text/plain"}},
		"another version": {200, `{"items":[]}`, []string{"OXP-Version", "2.0"}},
		"too large":       {200, `{"items":["` + strings.Repeat("x", 8<<20) + `"]}`, nil},
	} {
		s := newOXPServer(t, reply)
		found, err := discoverOXP(t, e, s.URL)
		if err == nil || strings.Contains(err.Error(), "xx") {
			t.Errorf("%s: %v %.200v", name, found, err)
		}
		// Its list is known to be unreadable only where it has sent it.
		var unreadable *tool.InvalidListError
		if errors.As(err, &unreadable) != (reply.status == 200) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

// TestOXP03Definitions: what is taken for a definition is one by the schema, and what
// the schema refuses is refused.
func TestOXP03Definitions(t *testing.T) {
	t.Parallel()
	schema := corpora.OpenAPI(t, "oxp", "openapi-header-version.json")
	e := newEngine(t, engine.Options{ReadSecret: func(context.Context, string) (string, error) { return "token", nil }})
	members := []string{`"id":"A.B"`, `"id":"A.B@1"`, `"id":"A-B.C"`, `"name":"A_B"`, `"name":"A B"`, `"description":"d"`, `"description":1`, `"version":"1.0.0"`, `"version":"1"`, `"input_schema":{}`, `"input_schema":[]`, `"output_schema":null`, `"output_schema":"x"`, `"requirements":{}`, `"requirements":[]`, `"more":1`}
	random := 0
	for round := range 600 {
		var parts []string
		names := map[string]bool{}
		for i, m := range members {
			random = (random*1103515245 + 12345 + round) & 0x7fffffff
			name, _, _ := strings.Cut(m, ":")
			if random>>16%3 != 0 && !names[name] && (i < 9 || random>>18%4 == 0) {
				names[name] = true
				parts = append(parts, m)
			}
		}
		item := "{" + strings.Join(parts, ",") + "}"
		s := newOXPServer(t, oxpReply{status: 200, body: `{"items":[` + item + `]}`})
		found, err := discoverOXP(t, e, s.URL)
		if valid := schema.Check("ToolDefinition", []byte(item)) == nil; err != nil || len(found) != 1 || valid != (found[0].Unusable == "") {
			t.Errorf("%s: the schema says %v, and we %+v %v", item, valid, found, err)
		}
		s.Close()
	}
	// One by one each of these is a definition; together they are the same one.
	for _, ids := range [][2]string{{"A.B", "A.B@1.0.0"}, {"A.B@1.0.0", "A.B"}, {"A.B@1", "A.B@1.0.0"}, {"A.B", "A.B@1"}, {"A.B", "A.B"}} {
		item := func(id string) string { return `{"id":"` + id + `","name":"A_B","description":"d","version":"1.0.0"}` }
		for _, list := range []string{item(ids[0]), item(ids[1]), item(ids[0]) + "," + item(ids[1])} {
			s := newOXPServer(t, oxpReply{status: 200, body: `{"items":[` + list + `]}`})
			if found, err := discoverOXP(t, e, s.URL); err != nil || len(found) != 1 || found[0].Unusable != "" {
				t.Errorf("%s: %+v %v", list, found, err)
			}
			s.Close()
		}
	}
}

// authorize is a refusal that asks for an authorization.
func authorize(challenges string) oxpReply {
	return oxpReply{400, `{"message":"not authorized","missing_requirements":{"authorization":[` + challenges + `]}}`, nil}
}

// TestOXP50Challenges: where a person can lift a refusal, where to do so is for the
// person: the model reads nothing of it.
func TestOXP50Challenges(t *testing.T) {
	e := newEngine(t, engine.Options{})
	for name, c := range map[string]struct {
		reply oxpReply
		want  string
	}{
		"one":                     {authorize(`{"id":"google","url":"https://accounts.example.com/o?state=s-1","check_url":"SERVER/c/1"}`), "[{google https://accounts.example.com/o?state=s-1 SERVER/c/1}]"},
		"no check":                {authorize(`{"id":"google","url":"https://accounts.example.com/o"}`), "[{google https://accounts.example.com/o }]"},
		"a check that may not be": {authorize(`{"id":"g","url":"https://accounts.example.com/o","check_url":"http://169.254.169.254/"}`), "[{g https://accounts.example.com/o }]"},
		"two":                     {authorize(`{"id":"a","url":"https://a.example.com/"},{"id":"b","url":"https://b.example.com/"}`), "[{a https://a.example.com/ } {b https://b.example.com/ }]"},
		"one of two":              {authorize(`{"id":"a","url":"javascript:alert(1)"},{"id":"b","url":"https://b.example.com/"}`), "[{b https://b.example.com/ }]"},
		"none that may be":        {authorize(`{"id":"a","url":"http://a.example.com/"}`), "[]"},
		"another member":          {authorize(`{"id":"a","url":"https://a.example.com/","html":"<b>"}`), "[]"},
		"no id":                   {authorize(`{"url":"https://a.example.com/"}`), "[]"},
		"too many":                {authorize(strings.TrimSuffix(strings.Repeat(`{"id":"a","url":"https://a.example.com/"},`, 9), ",")), "[" + strings.TrimSuffix(strings.Repeat("{a https://a.example.com/ } ", 8), " ") + "]"},
	} {
		for _, effect := range []string{"read", "once"} {
			s := newOXPServer(t, c.reply)
			s.answers[0].body = strings.ReplaceAll(c.reply.body, "SERVER", s.URL)
			result, err := e.Run(t.Context(), oxpCall(s.URL, effect))
			if code(t, err) != refusal.ToolFailed || fmt.Sprint(result.Challenges) != strings.ReplaceAll(c.want, "SERVER", s.URL) || len(s.received()) != 1 || result.Attempts != 1 {
				t.Errorf("%s: %v %v after %d requests", name, err, result.Challenges, len(s.received()))
				continue
			}
			refused := err.(*refusal.Error)
			if strings.Contains(err.Error(), "example.com") || strings.Contains(err.Error(), "alert") || !strings.Contains(refused.Message, "authorize") || !strings.Contains(refused.Message, "did not run") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestOXPChallengeHosts: what the guard of addresses refuses by its spelling is no host
// that a person is sent to.
func TestOXPChallengeHosts(t *testing.T) {
	for _, row := range rows(t, "hosts.txt", 2) {
		named := strings.HasSuffix(row[1], ".example.test") && !strings.Contains(row[1], "@")
		if url := "https://" + row[1] + "/"; !named && weburl.IsPublic(url) {
			t.Errorf("%q is shown", url)
		}
	}
}

// TestOXP19Authorization: how an authorization stands is asked of the tool's own
// server, by its rules, and nowhere else.
func TestOXP19Authorization(t *testing.T) {
	var body atomic.Value
	var hits atomic.Int64
	var header http.Header
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		header = r.Header
		w.Header().Set("Content-Type", "application/json")
		switch output := body.Load().(string); output {
		case "moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		default:
			fmt.Fprint(w, output)
		}
	}))
	defer server.Close()
	server.Config.ErrorLog = quiet()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n := &names{answers: map[string][][]string{"example.com": {{"127.0.0.1"}}, "www.example.com": {{"127.0.0.1"}}}}
	e := newEngine(t, engine.Options{Certificates: roots, Resolver: n.resolver(t), ReadSecret: func(context.Context, string) (string, error) { return "token", nil }})
	base := "https://example.com:" + port
	own := tool.Run{Type: "oxp", URL: base + "/x", Credential: tool.Bearer("env:T"), Addresses: []string{"127.0.0.1/32"}, Timeout: patient}
	schema := corpora.OpenAPI(t, "oxp", "openapi-auth-challenge.json")
	for text, want := range map[string]string{
		"pending": "pending", "completed": "completed", "failed": "failed",
		// An unknown status is not final.
		"done": "pending", "Completed": "pending", "": "pending", "\u202ecompleted": "pending",
	} {
		body.Store(`{"status":"` + text + `","more":1}`)
		if got, err := e.Authorization(t.Context(), own, base+"/check?id=1"); err != nil || got != want {
			t.Errorf("%q: %q %v, want %q", text, got, err, want)
		}
		if err := schema.Check("AuthorizationChallengeCheckResponse", []byte(`{"status":"`+want+`"}`)); err != nil {
			t.Error(err)
		}
	}
	if header.Get("Authorization") != "Bearer token" {
		t.Errorf("asked with %v", header)
	}
	for _, said := range []string{`{"status":null}`, `{"status":1}`, `{}`, `[]`, `{"status":"pending","status":"completed"}`, ``, "moved", `{"status":"` + strings.Repeat("x", 20<<10) + `"}`} {
		body.Store(said)
		if got, err := e.Authorization(t.Context(), own, base+"/check"); code(t, err) != refusal.ToolUnavailable || got == "completed" {
			t.Errorf("%.100q: %q %v", said, got, err)
		}
	}
	hits.Store(0)
	c := newCanary(t)
	elsewhere := []string{
		c.URL, "https://127.0.0.1:" + port + "/", "https://www.example.com:" + port + "/", "https://example.com/", "http://example.com:" + port + "/", "https://u@example.com:" + port + "/", "", "//example.com:" + port + "/", "https://EXAMPLE.com:" + port + "/", "https://example.com:" + port + ".evil.example/",
	}
	for _, row := range rows(t, "hosts.txt", 2) {
		elsewhere = append(elsewhere, "http://"+row[1]+":"+c.port()+"/", "https://"+row[1]+":"+c.port()+"/")
	}
	for _, address := range elsewhere {
		if got, err := e.Authorization(t.Context(), own, address); code(t, err) != refusal.NotFound {
			t.Errorf("%s: %q %v", address, got, err)
		}
	}
	blocked := own
	blocked.Addresses = nil
	if _, err := e.Authorization(t.Context(), blocked, base+"/check"); code(t, err) != refusal.ToolUnavailable {
		t.Errorf("an address that is not allowed: %v", err)
	}
	for name, change := range map[string]func(*tool.Run){"another type": func(r *tool.Run) { r.Type = "http" }, "no URL": func(r *tool.Run) { r.URL = "" }} {
		other := own
		change(&other)
		if _, err := e.Authorization(t.Context(), other, base+"/check"); code(t, err) != refusal.NotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if hits.Load() != 0 || c.hits.Load() != 0 {
		t.Errorf("%d and %d requests", hits.Load(), c.hits.Load())
	}
}

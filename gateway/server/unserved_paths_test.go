package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/server"
)

// A request that no route takes is refused in the shape of the API that its path belongs to.
func TestUnknownPathsOfAnAPI(t *testing.T) {
	d := serverOf(io.Discard, nil,
		server.Route{Method: http.MethodPost, Path: "/v1/talk", Serve: echo, MaxBody: fixed(10), Refuse: refuseAs("talk")},
		server.Route{Method: http.MethodGet, Path: "/v1/talk/:id", Serve: echo, Refuse: refuseAs("talk")},
	)
	d.MountAPI(server.API{Prefixes: []string{"/v1/talk", "/v1/files", "/v1/talk/deep"}, Refuse: refuseAs("one"), Advice: "Ask for talk."})
	d.MountAPI(server.API{Prefixes: []string{"/v1/files", "/v1/talk"}, Header: "Other-Version", Refuse: refuseAs("two")})
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
		answer       string
		allow        string
	}{
		"below a path":               {"POST", "/v1/talk/batches/x", nil, 404, "one not_found: There is nothing at this path. Ask for talk.", ""},
		"a path without routes":      {"GET", "/v1/files", nil, 404, "one not_found", ""},
		"a slash at its end":         {"GET", "/v1/files/", nil, 404, "one not_found", ""},
		"of two, by the header":      {"GET", "/v1/files/x", []string{"Other-Version", "1"}, 404, "two not_found: There is nothing at this path.", ""},
		"the longer one comes first": {"POST", "/v1/talk/deep/x", []string{"Other-Version", "1"}, 404, "one not_found", ""},
		"a longer word":              {"GET", "/v1/filesystem", nil, 404, "door not_found", ""},
		"of none":                    {"GET", "/v1/calls", []string{"Other-Version", "1"}, 404, "door not_found: There is nothing at this path. Applications call below /v1, MCP", ""},
		"of another case":            {"GET", "/V1/files", nil, 404, "door not_found", ""},
		"a method with advice":       {"PUT", "/v1/talk", nil, 405, "talk method_not_allowed: This path does not take this method. Ask for talk.", "POST"},
		"a method":                   {"PUT", "/v1/talk", []string{"Other-Version", "1"}, 405, "talk method_not_allowed", "POST"},
		"a method at a name":         {"PUT", "/v1/talk/1", nil, 405, "one method_not_allowed", "GET"},
		"HEAD":                       {"HEAD", "/v1/talk", nil, 405, "talk method_not_allowed", "POST"},
		"a method of our own":        {"PURGE", "/v1/files", nil, 404, "one not_found", ""},
	} {
		w := ask(d, c.method, c.path, http.NoBody, c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.answer) || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s: %d %s, Allow: %q; expected %d %s, Allow: %q", name, w.Code, w.Body, w.Header().Get("Allow"), c.status, c.answer, c.allow)
		}
	}
}

// A route may read the credential from x-api-key as well (AM-02): either place, or both alike.
func TestAPIKey(t *testing.T) {
	d := serverOf(io.Discard, nil, server.Route{Method: http.MethodGet, Path: "/keyed", Serve: echo, APIKey: true})
	for name, c := range map[string]struct {
		headers []string
		status  int
		seen    string
	}{
		"none":                {nil, 200, ""},
		"a key":               {[]string{"X-Api-Key", "k1"}, 200, "k1"},
		"a bearer":            {[]string{"Authorization", "Bearer k1"}, 200, "k1"},
		"both, alike":         {[]string{"X-Api-Key", "k1", "Authorization", "bearer k1"}, 200, "k1"},
		"both, different":     {[]string{"X-Api-Key", "k1", "Authorization", "Bearer k2"}, 401, ""},
		"a key and no bearer": {[]string{"X-Api-Key", "k1", "Authorization", "Basic k1"}, 401, ""},
		"an empty key":        {[]string{"X-Api-Key", "", "Authorization", "Bearer k1"}, 401, ""},
		"two keys in one":     {[]string{"X-Api-Key", "k1,k2"}, 401, ""},
		"a key with a space":  {[]string{"X-Api-Key", "k1 k2"}, 401, ""},
		"a key with a scheme": {[]string{"X-Api-Key", "Bearer k1"}, 401, ""},
		"a key twice":         {[]string{"X-Api-Key", "k1", "X-Api-Key", "k1"}, 400, ""},
		"an unknown one":      {[]string{"X-Api-Key", "unknown"}, 401, ""},
	} {
		w := ask(d, http.MethodGet, "/keyed", http.NoBody, c.headers...)
		if w.Code != c.status || w.Header().Get("Seen-Credential") != c.seen {
			t.Errorf("%s: %d %s, credential %q; expected %d, %q", name, w.Code, w.Body, w.Header().Get("Seen-Credential"), c.status, c.seen)
		}
		if strings.Contains(w.Body.String(), "k2") {
			t.Errorf("%s: the refusal repeats a credential: %s", name, w.Body)
		}
	}
	if w := ask(d, http.MethodGet, "/look/1", http.NoBody, "X-Api-Key", "k1"); w.Code != 200 || w.Header().Get("Seen-Credential") != "" {
		t.Errorf("a route that does not read x-api-key took one: %d, credential %q", w.Code, w.Header().Get("Seen-Credential"))
	}
}

// A route may read names from the query of its path, each once.
func TestQuery(t *testing.T) {
	d := serverOf(io.Discard, nil, server.Route{Method: http.MethodGet, Path: "/asked", Serve: echo, Query: []string{"beta", "limit"}})
	for query, status := range map[string]int{
		"": 200, "?": 200, "?beta=true": 200, "?beta=true&limit=1": 200, "?beta=": 200,
		"?beta=true&beta=true": 400, "?other=1": 400, "?beta=true&other": 400, "?beta=%zz": 400, "?beta=1;limit=2": 400,
		"?beta=" + strings.Repeat("x", server.MaxValueBytes): 400, "?Beta=true": 400,
	} {
		if w := ask(d, http.MethodGet, "/asked"+query, http.NoBody); w.Code != status {
			t.Errorf("%.40q: %d %s; expected %d", query, w.Code, w.Body, status)
		}
	}
}

package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

var vectorConfig = corpora.Testdata("vectors", "config", "callgate.yaml")

// adminOf serves the guard of an admin listener that would listen at an address. The
// handler behind the guard answers 200.
func adminOf(t *testing.T, listen string, principals map[string]*identity.Principal) *httptest.Server {
	t.Helper()
	loaded, err := configs.Load(vectorConfig)
	if err != nil {
		t.Fatal(err)
	}
	var authn gateway.Authenticator
	if principals != nil {
		if authn, err = identity.NewAPIKeys(principals); err != nil {
			t.Fatal(err)
		}
	}
	k, err := gateway.New(KernelConfig(loaded, authn), gateway.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(adminGuard(configs.Server{AdminListen: listen}, k, adminAPI(k), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "inside")
	})))
	t.Cleanup(server.Close)
	return server
}

// getAdmin sends one request to an admin listener.
func getAdmin(t *testing.T, server *httptest.Server, path, host, origin string, authorization ...string) (int, http.Header) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	r.Header["Authorization"] = authorization
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if inside := string(body) == "inside"; !strings.HasPrefix(path, "/v1/") && inside != (answer.StatusCode == http.StatusOK) {
		t.Errorf("%s: %d %s", path, answer.StatusCode, body)
	}
	return answer.StatusCode, answer.Header
}

// TestAdminCredentials: beyond loopback the admin listener answers operators alone, but
// for its liveness, which says nothing.
func TestAdminCredentials(t *testing.T) {
	operator, sha := identity.NewAPIKey()
	other, otherSHA := identity.NewAPIKey()
	principals := map[string]*identity.Principal{
		sha:      {Name: "op", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}, Operator: true},
		otherSHA: {Name: "other", Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}},
	}
	for _, listen := range []string{"0.0.0.0:9090", ":9090", "[::]:9090", "192.0.2.1:9090", "gateway.example:9090"} {
		server := adminOf(t, listen, principals)
		for _, path := range []string{"/metrics", "/readyz", "/", "/healthz/x", "//healthz", "/debug/pprof"} {
			for name, c := range map[string]struct {
				authorization []string
				want          int
			}{
				"nobody":                  {nil, 401},
				"an operator":             {[]string{"Bearer " + operator}, 200},
				"no operator":             {[]string{"Bearer " + other}, 403},
				"an unknown key":          {[]string{"Bearer " + operator + "x"}, 401},
				"another scheme":          {[]string{"Basic " + operator}, 401},
				"no scheme":               {[]string{operator}, 401},
				"an empty key":            {[]string{"Bearer "}, 401},
				"an operator and another": {[]string{"Bearer " + operator, "Bearer " + other}, 401},
				"an operator twice":       {[]string{"Bearer " + operator, "Bearer " + operator}, 401},
			} {
				status, head := getAdmin(t, server, path, "", "", c.authorization...)
				if status != c.want || (status == 401) != (head.Get("WWW-Authenticate") == "Bearer") {
					t.Errorf("%s at %s of %s: %d %v, expected %d", name, path, listen, status, head, c.want)
				}
			}
		}
		if status, _ := getAdmin(t, server, "/healthz", "", ""); status != 200 {
			t.Errorf("/healthz: %d", status)
		}
		if status, _ := getAdmin(t, server, "/metrics", "", "https://evil.example", "Bearer "+operator); status != 400 {
			t.Errorf("a page with the key of an operator: %d", status)
		}
	}
	// Where nobody is asked for a credential, there is no operator.
	if status, _ := getAdmin(t, adminOf(t, "0.0.0.0:9090", nil), "/metrics", "", "", "Bearer "+operator); status != 401 {
		t.Errorf("without credentials: %d", status)
	}
}

// TestAdminOnThisMachine: a loopback admin listener needs no credential, and does not
// answer web pages, nor by a name that was led to this machine.
func TestAdminOnThisMachine(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:9090", "localhost:9090", "[::1]:9090"} {
		server := adminOf(t, listen, nil)
		for _, c := range []struct {
			host, origin string
			want         int
		}{
			{"", "", 200}, {"localhost:9090", "", 200}, {"[::1]:9090", "", 200}, {"", "http://localhost:3000", 200},
			{"evil.example", "", 400}, {"evil.example:9090", "http://evil.example:9090", 400}, {"", "https://evil.example", 400}, {"", "null", 400},
			{"127.0.0.1.evil.example", "", 400}, {"10.0.0.1", "", 400},
		} {
			for _, path := range []string{"/metrics", "/readyz"} {
				if status, _ := getAdmin(t, server, path, c.host, c.origin); status != c.want {
					t.Errorf("%s of %s by %q from %q: %d, expected %d", path, listen, c.host, c.origin, status, c.want)
				}
			}
		}
		if status, _ := getAdmin(t, server, "/healthz", "10.0.0.1", ""); status != 200 {
			t.Errorf("/healthz: %d", status)
		}
	}
}

// TestAdminIsBounded: only a few requests are answered at once, so that the callers of
// the admin listener cannot hold the process up.
func TestAdminIsBounded(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	loaded, err := configs.Load(vectorConfig)
	if err != nil {
		t.Fatal(err)
	}
	k, err := gateway.New(KernelConfig(loaded, nil), gateway.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	guard := adminGuard(configs.Server{AdminListen: "127.0.0.1:9090"}, k, adminAPI(k), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-leave
	}))
	send := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", strings.NewReader("")))
		return w
	}
	ended := make(chan int, maxAdminRequests)
	for range maxAdminRequests {
		go func() { ended <- send().Code }()
		<-inside
	}
	if w := send(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("one too many: %d %v", w.Code, w.Header())
	}
	close(leave)
	for range maxAdminRequests {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("one of those inside: %d", code)
		}
	}
}

func adminAPI(k *gateway.Kernel) []ownHandler {
	return []ownHandler{admin.New(admin.Options{Kernel: k, Log: slog.New(slog.DiscardHandler)})}
}

// TestAdminAPIChecksItself: the paths of the API do not ask the guard of the others.
func TestAdminAPIChecksItself(t *testing.T) {
	key, sha := identity.NewAPIKey()
	plain, plainSHA := identity.NewAPIKey()
	server := adminOf(t, "127.0.0.1:9090", map[string]*identity.Principal{sha: {Name: "ada", Operator: true}, plainSHA: {Name: "bob"}})
	for name, c := range map[string]struct {
		path, host, origin, key string
		want                    int
	}{
		"operator":     {path: "/v1/openapi.json", key: key, want: 200},
		"no key":       {path: "/v1/openapi.json", want: 401},
		"no operator":  {path: "/v1/openapi.json", key: plain, want: 403},
		"another name": {path: "/v1/openapi.json", key: key, host: "evil.example", want: 400},
		"another page": {path: "/v1/openapi.json", key: key, origin: "https://evil.example", want: 400},
		"no such path": {path: "/v1/nothing", key: key, want: 404},
		"metrics":      {path: "/metrics", want: 200},
	} {
		var authorization []string
		if c.key != "" {
			authorization = []string{"Bearer " + c.key}
		}
		if status, _ := getAdmin(t, server, c.path, c.host, c.origin, authorization...); status != c.want {
			t.Errorf("%s: %d, expected %d", name, status, c.want)
		}
	}
}

// paged has pages of a console.
type paged struct{ http.Handler }

func (paged) Serves(path string) bool { return path == "/console" }

// TestAdminRoot: the root leads a person to the console, which asks for a key itself, but no page of
// another site.
func TestAdminRoot(t *testing.T) {
	guard := adminGuard(configs.Server{AdminListen: "127.0.0.1:9090"}, nil, []ownHandler{paged{http.NotFoundHandler()}}, http.NotFoundHandler())
	for host, want := range map[string]int{"127.0.0.1:9090": 303, "evil.example": 400} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090}))
		r.RemoteAddr = "127.0.0.1:5000"
		w := httptest.NewRecorder()
		guard.ServeHTTP(w, r)
		if w.Code != want || want == 303 && w.Header().Get("Location") != "/console" {
			t.Errorf("%s: %d %v", host, w.Code, w.Header())
		}
	}
}

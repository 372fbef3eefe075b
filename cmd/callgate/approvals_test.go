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
	"testing"
)

const approvalDigest = "aaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccddddaaaabbbbccccdddd"

// adminDouble answers as the admin API of a gateway does, and notes what it was asked.
type adminDouble struct {
	*httptest.Server
	asked  []string // method, path, credential and body
	status int      // of every answer, unless it is 0
	answer string
}

func newAdminDouble(t *testing.T) *adminDouble {
	t.Helper()
	d := &adminDouble{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.asked = append(d.asked, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), body)))
		switch {
		case d.status != 0:
			w.WriteHeader(d.status)
			_, _ = io.WriteString(w, d.answer)
		case strings.HasPrefix(r.URL.Path, "/v1/grants"):
			_, _ = io.WriteString(w, `{"grants":[{"id":"grant_1","rule":"refunds","scope":"same","tool":"payments.refund","agent":"Analyst","principal":"app","until":"2026-11-23T10:00:00Z"}]}`)
		case r.URL.Path == "/v1/approvals" && r.URL.Query().Get("after") == "":
			_, _ = io.WriteString(w, `{"approvals":[`+approvalJSON("call_A")+`],"next":"call_A"}`)
		case r.URL.Path == "/v1/approvals":
			_, _ = io.WriteString(w, `{"approvals":[`+approvalJSON("call_B")+`]}`)
		default:
			_, _ = io.WriteString(w, approvalJSON("call_A"))
		}
	}))
	t.Cleanup(d.Close)
	return d
}

// approvalJSON has what a model may write: a number as it was written, and what a terminal obeys.
func approvalJSON(id string) string {
	return fmt.Sprintf(`{"id":%q,"state":"waiting","rules":["refunds"],"tool":"payments.refund","agent":"Analyst","until":"2026-11-22T10:00:00Z",`+
		`"arguments":{"z":1.0,"a":"\u001b[2J\u202e"},"digest":%q,"hint":"Look \u001b[31mtwice.","votes":[],"may_vote":true}`, id, approvalDigest)
}

func TestApprovalsCommands(t *testing.T) {
	d := newAdminDouble(t)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("cgk_one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  string
		asked []string
		says  []string
	}{
		{"list --waiting --rule refunds", []string{"GET /v1/approvals?limit=200&rule=refunds&state=waiting Bearer cgk_one",
			"GET /v1/approvals?after=call_A&limit=200&rule=refunds&state=waiting Bearer cgk_one"}, []string{"call_A  waiting  refunds  payments.refund  Analyst", "call_B"}},
		{"list --json", []string{"GET /v1/approvals?limit=200 Bearer cgk_one", "GET /v1/approvals?after=call_A&limit=200 Bearer cgk_one"}, []string{`{"id":"call_A",`, `{"id":"call_B",`}},
		{"show call_A", []string{"GET /v1/approvals/call_A Bearer cgk_one"}, []string{"id            call_A\n", `"z": 1.0,`, `"a": "\u001b[2J\u202e"`, `Look \u001b[31mtwice.`, "may vote      true"}},
		{"show --json call_A", []string{"GET /v1/approvals/call_A Bearer cgk_one"}, []string{`"arguments":{"z":1.0,"a":"\u001b[2J\u202e"}`}},
		{"show ../../metrics", []string{"GET /v1/approvals/..%2F..%2Fmetrics Bearer cgk_one"}, nil},
		{"approve call_A --remember same=2h --reason ok --digest " + approvalDigest,
			[]string{`POST /v1/approvals/call_A Bearer cgk_one {"vote":"yes","digest":"` + approvalDigest + `","reason":"ok","remember":{"scope":"same","for":"2h"}}`}, []string{"call_A: waiting\n"}},
		{"deny call_A --reason no", []string{"GET /v1/approvals/call_A Bearer cgk_one",
			`POST /v1/approvals/call_A Bearer cgk_one {"vote":"no","digest":"` + approvalDigest + `","reason":"no"}`}, []string{"call_A: waiting\n"}},
		{"grants", []string{"GET /v1/grants?limit=200 Bearer cgk_one"}, []string{"grant_1  refunds  same   payments.refund  Analyst  app"}},
		{"revoke call_A", []string{"DELETE /v1/approvals/call_A Bearer cgk_one"}, []string{"call_A: revoked\n"}},
		{"revoke grant_1", []string{"DELETE /v1/grants/grant_1 Bearer cgk_one"}, []string{"grant_1: revoked\n"}},
	} {
		d.asked = nil
		code, stdout, stderr := command(t, nil, append([]string{"approvals"}, append(strings.Fields(c.args), "--url", d.URL, "--key-file", key)...)...)
		if code != exitAccepted || strings.Join(d.asked, "\n") != strings.Join(c.asked, "\n") {
			t.Errorf("%s: exit code %d %s; asked\n%s", c.args, code, stderr, strings.Join(d.asked, "\n"))
		}
		for _, says := range c.says {
			if !strings.Contains(stdout, says) {
				t.Errorf("%s lacks %q:\n%s", c.args, says, stdout)
			}
		}
		if strings.ContainsFunc(stdout+stderr, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }) {
			t.Errorf("%s prints %q", c.args, stdout)
		}
	}
}

func TestApprovalsUsage(t *testing.T) {
	d := newAdminDouble(t)
	for args, want := range map[string]string{
		"approve call_A":                   "--digest is needed where standard input is no terminal",
		"approve call_A --digest abc":      "expected 64 hexadecimal digits, as callgate approvals show prints them",
		"approve":                          "ID is missing, as in: callgate approvals approve call_",
		"approve call_A call_B":            "found 2 arguments; expected 1, as in: callgate approvals approve call_",
		"show":                             "ID is missing, as in: callgate approvals show call_",
		"deny call_A":                      "--reason is empty",
		"deny call_A --remember same=2h":   "unknown flag",
		"list call_A":                      "unknown command",
		"show call_A --key-file none":      "--key-file none: ",
		"show call_A --key-file /dev/null": "--key-file",
		"show call_A --url ftp://x":        "--url is no URL",
		"show call_A --url http://u:p@x":   "--url is no URL",
		"show call_A --url http://x?y=1":   "--url is no URL",
		"revoke":                           "ID|GRANT is missing",
		"approve call_A --digest " + approvalDigest + " --remember same": "expected SCOPE=TIME",
	} {
		d.asked = nil
		all := strings.Fields(args)
		if !strings.Contains(args, "--url") {
			all = append(all, "--url", d.URL)
		}
		code, stdout, stderr := command(t, nil, append([]string{"approvals"}, all...)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) || len(d.asked) > 0 {
			t.Errorf("%s: exit code %d, asked %v: %q %q", args, code, d.asked, stdout, stderr)
		}
	}
}

// TestApprovalsRefused: what the gateway refuses is 1, that none answers is 3.
func TestApprovalsRefused(t *testing.T) {
	t.Setenv("CALLGATE_KEY", "")
	refused := func(code, message string) string {
		text, err := json.Marshal(map[string]any{"tool_result": map[string]any{"tool": nil, "output": map[string]any{"error": map[string]any{"code": code, "stage": "request", "message": message}}}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	elsewhere := newAdminDouble(t)
	for name, c := range map[string]struct {
		status int
		answer string
		code   int
		says   string
	}{
		"it has ended":  {http.StatusConflict, refused("approval_conflict", "It has \x1b[31mended."), exitRefused, `approval_conflict: It has \u001b[31mended.`},
		"no credential": {http.StatusUnauthorized, refused("unauthenticated", "Who?"), exitRefused, "no key was sent: use --key-file, or the variable CALLGATE_KEY"},
		"store away":    {http.StatusServiceUnavailable, refused("store_unavailable", "Later."), exitInternal, "store_unavailable: Later."},
		"another page":  {http.StatusNotFound, "<html>", exitInternal, "is not the admin API of a gateway: status 404"},
		"no JSON":       {http.StatusOK, "<html>", exitInternal, "is not the admin API of a gateway"},
		"a redirect":    {http.StatusFound, "", exitInternal, "status 302"},
	} {
		d := newAdminDouble(t)
		d.status, d.answer = c.status, c.answer
		d.Config.Handler = redirecting(d.Config.Handler, elsewhere.URL)
		code, stdout, stderr := command(t, nil, "approvals", "show", "call_A", "--url", d.URL)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d: %q %q", name, code, stdout, stderr)
		}
	}
	if len(elsewhere.asked) > 0 {
		t.Errorf("a redirect was followed: %v", elsewhere.asked)
	}
	gone := newAdminDouble(t)
	gone.Close()
	if code, _, stderr := command(t, nil, "approvals", "list", "--url", gone.URL); code != exitInternal || !strings.HasPrefix(stderr, "callgate: the gateway does not answer: ") {
		t.Errorf("exit code %d: %q", code, stderr)
	}
}

// redirecting adds the address of a redirect to every answer.
func redirecting(h http.Handler, to string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to)
		h.ServeHTTP(w, r)
	})
}

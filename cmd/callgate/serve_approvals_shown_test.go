package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShownIsWhatRuns: the tool gets the bytes that the caller wrote, those that people were shown
// when they approved them, whatever JSON would let one change; also when the gateway is started
// again in between. A secret argument reaches the tool, and no answer, page, log or metric.
func TestShownIsWhatRuns(t *testing.T) {
	t.Parallel()
	const secret, redacted = `"canary-secret-1"`, `"[redacted]"`
	// Numbers, escapes and the order of members as a careless reader would rewrite them.
	const arguments = `{"z":1.0,"amount":1e2,"note":"<b>&amp; caf\u00e9 café \/ \"q\"","list":[1,{"b":-0.0,"a":12345678901234567890}],"secret":` + secret + `}`
	var got []string
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what was read is compared
		got = append(got, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"ok":true}`) // the gateway may have left
	}))
	defer tool.Close()
	config, data := layout(t, map[string]string{
		"callgate.yaml":  "server: {" + anyPort + "}\nregistry: {files: [tools/*.yaml]}\napprovals: approvals.yaml\naudit: {record: arguments}\n",
		"approvals.yaml": "rules: {board: {remember: {tool: 1h}}}\n",
		"policy.csv":     "p, Analyst, *, pay, , ask:board\n",
		"tools/pay.yaml": "tools:\n  - {name: pay, effect: once, run: {type: http, url: \"" + tool.URL + "\", addresses: [127.0.0.1/32]}, input_schema: {type: object, properties: {" +
			"z: {type: number}, amount: {type: number}, note: {type: string}, list: {type: array}, secret: {type: string, x-secret: true}}}}\n",
	})
	completion := `{"tool":{"name":"pay","arguments":` + arguments + `}}`
	var written strings.Builder // by the gateway, but for what its tool gets
	note := func(text string) string {
		written.WriteString(text + "\n")
		return text
	}
	// look opens every page and every answer of the admin API that there is of a call.
	look := func(g *gate, id string) {
		paths := []string{
			"/v1/approvals", "/v1/approvals/" + id, "/v1/calls", "/v1/config", "/v1/decisions", "/v1/decisions/" + id, "/v1/grants", "/v1/limits", "/v1/policy", "/v1/status",
			"/v1/tools", "/v1/tools/pay", "/metrics", "/readyz",
		}
		if pages := g.consolePages(t); pages != nil {
			paths = append(append(paths, pages...), "/console/calls/"+id, "/console/tools/pay", "/console/approvals/"+id)
		}
		for _, path := range paths {
			if r := g.askAdmin(t, path); note(r.body) == "" || r.status != http.StatusOK {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
		note(g.ask(t, http.MethodGet, "/v1/calls/"+id, "").body)
	}
	vote := func(g *gate, id, more string) {
		var shown struct {
			Digest    string
			Arguments json.RawMessage
		}
		r := g.askAdmin(t, "/v1/approvals/"+id)
		if err := json.Unmarshal([]byte(r.body), &shown); err != nil || string(shown.Arguments) != strings.Replace(arguments, secret, redacted, 1) {
			t.Errorf("people are shown %s, %v; the call is of %s", shown.Arguments, err, arguments)
		}
		answer, err := g.try(http.MethodPost, "http://"+g.admin+"/v1/approvals/"+id, `{"digest":"`+shown.Digest+`",`+more+`}`, "Content-Type", "application/json")
		if note(answer.body); err != nil || answer.status != http.StatusOK {
			t.Fatalf("the vote: %d %s, %v", answer.status, answer.body, err)
		}
	}

	g := serveGate(t, config)
	first := g.call(t, completion)
	id := first.header.Get("Callgate-Call-Id")
	if note(first.body); first.status != http.StatusAccepted || id == "" {
		t.Fatalf("asked: %d %s", first.status, first.body)
	}
	look(g, id)
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	note(g.stdout.String() + g.stderr.String())

	g = serveGate(t, config)
	vote(g, id, `"vote":"yes","remember":{"scope":"tool","for":"1h"}`)
	if r := g.ask(t, http.MethodPost, "/v1/calls/"+id+"/resume", ""); r.status != http.StatusOK {
		t.Fatalf("taken up: %d %s", r.status, note(r.body))
	}
	spaced := strings.ReplaceAll(completion, `,"`, ` , "`)
	if r := g.call(t, spaced); r.status != http.StatusOK { // by the grant
		t.Errorf("sent again: %d %s", r.status, note(r.body))
	}
	look(g, id)
	if r, err := g.try(http.MethodDelete, "http://"+g.admin+"/v1/grants/"+grantOf(t, g), ""); err != nil || r.status != http.StatusOK {
		t.Errorf("the grant is revoked: %d %s, %v", r.status, r.body, err)
	}
	denied := g.call(t, completion).header.Get("Callgate-Call-Id")
	vote(g, denied, `"vote":"no","reason":"not this one"`)
	note(g.call(t, completion).body)
	look(g, denied)
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	note(g.stdout.String() + g.stderr.String())

	spacedArguments := strings.TrimSuffix(strings.TrimPrefix(spaced, `{"tool":{"name":"pay" , "arguments":`), `}}`)
	if len(got) != 2 || got[0] != arguments || got[1] != spacedArguments {
		t.Errorf("the tool got %q", got)
	}
	log, err := os.ReadFile(filepath.Join(data, "audit.jsonl"))
	if err != nil || !strings.Contains(string(log), strings.Trim(redacted, `"`)) {
		t.Fatalf("the audit log has no arguments: %v", err)
	}
	for where, text := range map[string]string{"an answer, a page, the log or a metric": written.String(), "the audit log": string(log)} {
		if at := strings.Index(text, strings.Trim(secret, `"`)); at >= 0 {
			t.Errorf("the secret argument is in %s: …%s…", where, text[max(0, at-300):min(len(text), at+60)])
		}
	}
}

// grantOf is the id of the one grant of a gateway.
func grantOf(t *testing.T, g *gate) string {
	t.Helper()
	var list struct{ Grants []struct{ ID string } }
	if err := json.Unmarshal([]byte(g.askAdmin(t, "/v1/grants").body), &list); err != nil || len(list.Grants) != 1 {
		t.Fatalf("%d grants, %v", len(list.Grants), err)
	}
	return list.Grants[0].ID
}

package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const petsDocument = `openapi: 3.0.3
info: {title: Pets, version: 1.0.0}
servers: [{url: /v1}]
paths:
  /pets/{petId}/notes:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: string, maxLength: 40}}
    get:
      operationId: notes.list
      parameters:
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: limit, in: query, schema: {type: integer, format: int32, minimum: 1}}
        - {name: X-Request-Id, in: header, schema: {type: string}}
      responses: {200: {description: The notes.}}
    post:
      operationId: notes.add
      security: [{token: []}]
      requestBody:
        required: true
        content:
          application/json:
            schema: {type: object, required: [text], properties: {text: {type: string}, stars: {type: number}}}
      responses: {201: {description: Added.}}
    delete:
      operationId: notes.clear
      responses: {204: {description: Gone.}}
components:
  securitySchemes: {token: {type: http, scheme: bearer}}
`

// TestOpenAPIEndToEnd imports a document, and calls its tools: what the server gets
// is what the model wrote, in its place.
func TestOpenAPIEndToEnd(t *testing.T) {
	arrived := make(chan string, 8) // one call is sent at most three times
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		arrived <- strings.TrimSpace(strings.Join([]string{r.Method, r.RequestURI, r.Header.Get("X-Request-Id"), r.Header.Get("Authorization"), string(body)}, " "))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()

	dir := t.TempDir()
	program := func(stdin string, args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(t.Context(), env{Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs, Wait: inTests}, args)
		return code, out.String(), errs.String()
	}
	if code, _, errorOutput := program(petsDocument, "tools", "import", "openapi", "-"); code != exitUsage || !strings.Contains(errorOutput, "choose it with --url") {
		t.Fatalf("without a server: exit code %d, %s", code, errorOutput)
	}
	code, tools, errorOutput := program(petsDocument, "tools", "import", "openapi", "--url", server.URL+"/v1", "--addresses", "127.0.0.1/32", "--prefix", "pets.", "-")
	if code != 0 || !strings.Contains(errorOutput, "3 tools imported, 1 change, 0 reasons") {
		t.Fatalf("exit code %d: %s", code, errorOutput)
	}
	tools = strings.Replace(tools, "method: POST\n", "method: POST\n      credential: env:PETS_TOKEN\n", 1)
	t.Setenv("PETS_TOKEN", "pets-token")
	for name, text := range map[string]string{
		"callgate.yaml":   "registry: {files: [pets.yaml]}\ndata_dir: " + filepath.Join(dir, "data") + "\n# end\n",
		"pets.yaml":       tools,
		"policy.csv":      "p, Analyst, acme/alpha, pets.*, , allow\n# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n",
		"limits.yaml":     "{}\n# end\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "callgate.yaml")
	for _, c := range []struct {
		call, answer, request string
		code                  int
	}{
		{`{"name":"pets.notes.list","arguments":{"petId":"a b?c#d","tags":["x&y=1","ü"],"limit":10,"X-Request-Id":"r 1"}}`,
			`"output":{"ok":true}`, "GET /v1/pets/a%20b%3Fc%23d/notes?tags=x%26y%3D1&tags=%C3%BC&limit=10 r 1", exitAccepted},
		{`{"name":"pets.notes.list","arguments":{"petId":"7"}}`, `"output":{"ok":true}`, "GET /v1/pets/7/notes", exitAccepted},
		{`{"name":"pets.notes.add","arguments":{"petId":"7","body":{ "text":"\u00e9\n", "stars":1.50}}}`,
			`"output":{"ok":true}`, `POST /v1/pets/7/notes  Bearer pets-token { "text":"\u00e9\n", "stars":1.50}`, exitAccepted},
		{`{"name":"pets.notes.clear","arguments":{"petId":"7"}}`, `"output":{"value":""}`, "DELETE /v1/pets/7/notes", exitAccepted},
		{`{"name":"pets.notes.list","arguments":{"petId":"../../admin"}}`, `"code":"tool_failed"`, "", exitRefused},
		{`{"name":"pets.notes.list","arguments":{"petId":"7","X-Request-Id":"a\r\nX-Admin: 1"}}`, `"code":"tool_failed"`, "", exitRefused},
		{`{"name":"pets.notes.list","arguments":{"petId":"7","admin":"1"}}`, `"code":"unexpected_argument"`, "", exitRefused},
		{`{"name":"pets.notes.add","arguments":{"petId":"7"}}`, `"code":"missing_argument"`, "", exitRefused},
		{`{"name":"pets.notes.add","arguments":{"petId":"7","body":{"text":"x","more":1}}}`, `"code":"unexpected_argument"`, "", exitRefused},
	} {
		code, answer, errorOutput := program(`{"tool":`+c.call+`}`, "call", "--config", config)
		var seen []string
		for len(arrived) > 0 {
			seen = append(seen, <-arrived)
		}
		if code != c.code || !strings.Contains(answer, c.answer) || strings.Join(seen, "\n") != c.request {
			t.Errorf("%s: exit code %d, %s%s\narrived  %q\nexpected %q", c.call, code, answer, errorOutput, seen, c.request)
		}
	}
}

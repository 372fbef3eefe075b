package console_test

import (
	"strings"
	"testing"
)

// TestRowThatWouldAllow: the page of a denied call has the row that would allow it, and leads to the rows that nearly
// matched.
func TestRowThatWouldAllow(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	call := f.judge("Intern", `{"tool":{"name":"web.search","arguments":{}}}`)
	_, body := f.do(t, f.Client(), sent{path: "/console/calls/" + call})
	for _, want := range []string{"p, Intern, acme/alpha, web.search, , allow</pre>", `<a href="/console/policy#line-1">`, "policy.csv:1"} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q: %s", want, body)
		}
	}
}

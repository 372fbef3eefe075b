package console_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
)

// TestOverviewShowsActivity: each chart has what was counted, in a picture, in words, and in the table.
func TestOverviewShowsActivity(t *testing.T) {
	f := newFixtureOf(t, nil, asking("Pays.", "look"))
	if _, body := f.do(t, f.Client(), sent{path: "/console"}); !strings.Contains(body, "Nothing was judged in this period") || strings.Contains(body, "<rect") {
		t.Errorf("before anything was judged: %s", body)
	}
	f.ask(t, gateway.Request{}, `{"amount":1}`)
	f.judge("Analyst", "text")
	for range 3 {
		f.judge("Analyst", `{"tool":{"name":"nothing","arguments":{}}}`)
	}
	f.recent.Ran(40 * time.Millisecond)
	f.recent.Charged(1234, 5_000_000, "CHF")
	for _, span := range []string{"", "?span=15m", "?span=24h"} {
		answer, body := f.do(t, f.Client(), sent{path: "/console" + span})
		for _, want := range []string{
			"1 text, 0 allowed, 1 asked, 3 refused. The highest is 5 at", "3 unknown_tool, 1 approval_required. The highest is 4 at", "1234 tokens.", "5.00 CHF", "<span> 3 times</span>", "Of the last 3 refusals", "<b>3</b> <a href=\"/console/agents/Analyst\">Analyst</a> &rarr; nothing",
			`<rect class="no"`, `<rect class="hit"`, "<td data-label=\"Codes\">unknown_tool 3 approval_required 1 </td>", "1 text, 1 asked, 3 refused</title>",
		} {
			if answer.StatusCode != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d, without %q: %s", span, answer.StatusCode, want, body)
			}
		}
		if m := regexp.MustCompile(`Latency of executed calls: (\d+)\.\d ms p95`).FindStringSubmatch(body); m == nil || m[1] < "32" || m[1] > "50" {
			t.Errorf("%s: a call of 40 ms is shown as %v", span, m)
		}
	}
	if answer, _ := f.do(t, f.Client(), sent{path: "/console?span=2h"}); answer.StatusCode != 400 {
		t.Errorf("another span: %d", answer.StatusCode)
	}
	f.changes.Note(time.Now(), "failed", "<b>policy.csv:3: no such rule")
	if _, body := f.do(t, f.Client(), sent{path: "/console"}); !strings.Contains(body, `<span class="tag no">failed</span>`) || !strings.Contains(body, "&lt;b&gt;policy.csv:3") {
		t.Errorf("a change is not shown: %s", body)
	}
}

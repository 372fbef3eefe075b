package console_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
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
			"1 answered without a tool, 0 allowed, 1 sent for approval, 3 refused. The highest is 5 at", "3 unknown_tool, 1 approval_required. The highest is 4 at", "1234 tokens.", "5.00 CHF", "<span> 3 times</span>", "Of 3 refusals in the last ", "<b>3</b> <a href=\"/console/agents/Analyst\">Analyst</a> &rarr; nothing",
			`<rect class="no"`, `<rect class="hit"`, "<td data-label=\"Codes\">unknown_tool 3 approval_required 1 </td>", "1 answered without a tool, 1 sent for approval, 3 refused</title>",
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
	if _, body := f.do(t, f.Client(), sent{path: "/console"}); !strings.Contains(body, "Last call <time") || strings.Count(body, "since=1h") < 6 {
		t.Errorf("the links do not keep the period: %s", body)
	}
	f.changes.Note(time.Now(), "failed", "<b>policy.csv:3: no such rule")
	if _, body := f.do(t, f.Client(), sent{path: "/console"}); !strings.Contains(body, `<span class="tag no">failed</span>`) || !strings.Contains(body, "&lt;b&gt;policy.csv:3") {
		t.Errorf("a change is not shown: %s", body)
	}
}

// TestRefusalsOfThePeriod: the overview counts refusals of its period, and says so.
func TestRefusalsOfThePeriod(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	refused := func(tool string, before time.Duration) {
		r := audit.Record{Time: time.Now().Add(-before), Event: audit.Decision, Mode: audit.Call, Verdict: audit.Refused, CallID: "call_" + tool, Agent: "Analyst", Tool: tool, Code: "unknown_tool", Stage: "schema"}
		if err := f.log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	refused("older", 2*time.Hour)
	refused("newer", 30*time.Minute)
	refused("", time.Minute)
	for span, want := range map[string][2]bool{"15m": {false, false}, "1h": {false, true}, "24h": {true, true}} {
		_, body := f.do(t, f.Client(), sent{path: "/console?span=" + span})
		_, most, _ := strings.Cut(body, `id="most"`)
		most, _, _ = strings.Cut(most, "</section>")
		_, last, _ := strings.Cut(body, `id="refused"`)
		for part, text := range map[string]string{"by agent and tool": most, "the last": last} {
			if got := [2]bool{strings.Contains(text, "older"), strings.Contains(text, "newer")}; got != want {
				t.Errorf("%s, %s: found %v: %s", span, part, got, text)
			}
		}
		// A list of calls cannot be of those without a tool, and so is no link.
		if row := regexp.MustCompile(`<li>[^\n]*without a tool.*?</li>`).FindString(most); row == "" || strings.Contains(row, "/console/calls") {
			t.Errorf("%s: refusals without a tool are shown as %s", span, row)
		}
		if want[1] && !strings.Contains(most, "refusals in the last "+span) || !strings.Contains(body, "Last call <time") {
			t.Errorf("%s: it does not say what it counts: %s", span, body)
		}
	}
}

// TestBadFilterKeepsTheForm: a filter that cannot be read is shown with what was filled in.
func TestBadFilterKeepsTheForm(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	answer, body := f.do(t, f.Client(), sent{path: "/console/calls?since=yesterday&agent=Intern"})
	if answer.StatusCode != 400 || !strings.Contains(body, `value="yesterday"`) || !strings.Contains(body, `value="Intern"`) || !strings.Contains(body, "parameter since") {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
}

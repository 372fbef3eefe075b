package console_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
)

// An approval is shown with the last five of the same agent and tool that people acted on, to
// those who may see them, and without itself.
func TestEarlierApprovals(t *testing.T) {
	f := newFixtureOf(t, staff{}, asking("Pays somebody.", "look it up"))
	var ids []string
	for _, amount := range []string{"1", "2", "3", "4", "5", "6", "7"} {
		id := f.ask(t, gateway.Request{Credential: "bot"}, `{"amount":`+amount+`}`)
		ids = append(ids, id)
		vote := "no"
		if amount == "6" {
			vote = "yes"
		}
		if amount == "7" {
			break // it waits
		}
		form := url.Values{"vote": {vote}, "digest": {f.see(t, "ada", id).Digest}, "reason": {"because of " + amount}}
		if answer, body := f.do(t, f.browser(t), sent{method: "POST", path: "/console/approvals/" + id, form: form, header: bearer("ada")}); answer.StatusCode != 303 {
			t.Fatalf("the vote: %d %s", answer.StatusCode, body)
		}
	}
	shown := f.see(t, "ada", ids[6])
	if len(shown.Earlier) != 5 || shown.Earlier[0].ID != ids[5] || shown.Earlier[0].Code != "yes" || shown.Earlier[4].ID != ids[1] || shown.Earlier[1].Reason != "because of 5" || shown.Earlier[1].By != "ada" {
		t.Errorf("found %+v", shown.Earlier)
	}
	_, body := f.do(t, f.Client(), sent{path: "/console/approvals/" + ids[6], header: bearer("ada")})
	for _, want := range []string{"/console/approvals/" + ids[5], "because of 6", "because of 2"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %q:\n%s", want, body)
		}
	}
	if strings.Contains(body, "because of 1<") {
		t.Error("the page has a sixth one")
	}
	if own := f.see(t, "ada", ids[3]).Earlier; len(own) != 5 || own[0].ID != ids[5] || own[2].ID == ids[3] {
		t.Errorf("of one that was decided: %+v", own)
	}
}

// The page of a tool shows what its server has changed, and that of the policy how often a row
// decided.
func TestChangedDefinitionAndCounts(t *testing.T) {
	f := newFixture(t, nil, oneTool)
	f.differences = []toolservers.Difference{
		{
			Server: "hub", Version: "1.0.0", State: "changed", Offered: &toolservers.DefinitionShown{Description: "Ignore it.", InputSchema: json.RawMessage(`{"type":"object"}`)}, Omitted: 7,
			Changes: []toolservers.ChangedMember{{Path: "/description", Old: json.RawMessage(`"Searches"`), New: json.RawMessage(`"Ignore it."`)}, {Path: "/input_schema/properties/to", New: json.RawMessage(`{"a":1}`)}},
		},
		{Server: "hub", State: "gone"},
	}
	_, body := f.do(t, f.Client(), sent{path: "/console/tools/web.search"})
	for _, want := range []string{"What differs", "/input_schema/properties/to", "&#34;Ignore it.&#34;", "not there", "and 7 more places", ">gone<"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page of the tool has no %q:\n%s", want, body)
		}
	}
	f.differences = nil
	if _, body := f.do(t, f.Client(), sent{path: "/console/tools/web.search"}); strings.Contains(body, "What differs") {
		t.Error("a difference is shown where there is none")
	}
	for range 41 {
		f.judge("Analyst", `{"tool":{"name":"web.search","arguments":{}}}`)
	}
	if _, body := f.do(t, f.Client(), sent{path: "/console/policy"}); strings.Count(body, `" class="num">41</td>`) != 2 {
		t.Errorf("the page of the policy:\n%s", body)
	}
}

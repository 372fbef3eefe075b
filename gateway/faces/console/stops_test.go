package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/store"
)

// TestStopPages: operators alone stop and resume, by forms of the gateway's own pages; the answer says what runs,
// the overview that something is stopped.
func TestStopPages(t *testing.T) {
	f := newFixture(t, staff{}, oneTool)
	running := store.Call{ID: "call_x", Scope: store.Scope{Principal: "bot", Workspace: "acme", Project: "alpha"}}
	if _, err := f.store.Open(t.Context(), running); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Dispatch(t.Context(), "call_x", store.Task{Tool: "<b>tool", Agent: "Analyst", Effect: "once"}); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"agent": {" Analyst "}, "for": {"1h"}, "reason": {"<script>\r\nwhy"}}
	for name, s := range map[string]struct {
		sent
		status int
	}{
		"nobody":            {sent{path: "/console/stops"}, http.StatusSeeOther},
		"a voter looks":     {sent{path: "/console/stops", header: bearer("ada")}, http.StatusForbidden},
		"a voter stops":     {sent{method: "POST", path: "/console/stops", form: form, header: bearer("ada")}, http.StatusForbidden},
		"an agent stops":    {sent{method: "POST", path: "/console/stops", form: form, header: bearer("bot")}, http.StatusForbidden},
		"by GET":            {sent{path: "/console/stops/x/resume", header: bearer("ops")}, http.StatusNotFound},
		"another site":      {sent{method: "POST", path: "/console/stops", form: form, header: map[string]string{"Authorization": "Bearer ops", "Origin": "https://evil.example"}}, http.StatusBadRequest},
		"nothing is named":  {sent{method: "POST", path: "/console/stops", form: url.Values{"reason": {"r"}}, header: bearer("ops")}, http.StatusBadRequest},
		"without a reason":  {sent{method: "POST", path: "/console/stops", form: url.Values{"agent": {"a"}}, header: bearer("ops")}, http.StatusBadRequest},
		"everything beside": {sent{method: "POST", path: "/console/stops", form: url.Values{"agent": {"a"}, "everything": {"yes"}, "reason": {"r"}}, header: bearer("ops")}, http.StatusBadRequest},
		"no such stop":      {sent{method: "POST", path: "/console/stops/stop_none/resume", form: url.Values{}, header: bearer("ops")}, http.StatusNotFound},
	} {
		if answer, body := f.do(t, f.browser(t), s.sent); answer.StatusCode != s.status {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
	}
	if _, body := f.do(t, f.browser(t), sent{path: "/console/stops", header: bearer("ops")}); !strings.Contains(body, "Nothing is stopped.") {
		t.Errorf("at first: %s", body)
	}
	answer, body := f.do(t, f.browser(t), sent{method: "POST", path: "/console/stops", form: form, header: bearer("ops")})
	id := regexp.MustCompile(`stop_[A-Z0-9]+`).FindString(body)
	if answer.StatusCode != http.StatusOK || id == "" || strings.Contains(body, "<script>\n") {
		t.Fatalf("stopped: %d %s", answer.StatusCode, body)
	}
	for _, want := range []string{"at this gateway alone", "<b>agent Analyst</b>", "call_x", "&lt;b&gt;tool", "&lt;script&gt;", "it is not ended", `action="/console/stops/` + id + `/resume"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if _, body := f.do(t, f.browser(t), sent{path: "/console", header: bearer("ops")}); !strings.Contains(body, `<a href="/console/stops">One stop is</a> in force`) {
		t.Errorf("the overview: %s", body)
	}
	_, body = f.do(t, f.browser(t), sent{path: "/v1/stops", header: bearer("ops")})
	var list admin.StopList
	if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Stops) != 1 || list.Scope != admin.ScopeAlone {
		t.Fatalf("the API: %v %s", err, body)
	}
	if s := list.Stops[0]; s.Agent != "Analyst" || s.By != "ops" || s.Reason != "<script>\nwhy" || s.Until.Sub(s.Since) < 59*time.Minute {
		t.Errorf("the stop: %+v", s)
	}
	answer, body = f.do(t, f.browser(t), sent{method: "POST", path: "/console/stops/" + id + "/resume", form: url.Values{}, header: bearer("ops")})
	if answer.StatusCode != http.StatusOK || !strings.Contains(body, "Resumed") || !strings.Contains(body, "Nothing is stopped.") {
		t.Errorf("resumed: %d %s", answer.StatusCode, body)
	}
}

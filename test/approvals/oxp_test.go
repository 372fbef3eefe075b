package approvals_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
)

// byOXP is the face of the Open eXecution Protocol. Each call has an id of its own.
func byOXP() face {
	return face{"OXP", false, false, func(o *office, c call) *httptest.ResponseRecorder {
		o.sent++
		return o.sendOXP(c, o.sent)
	}, codeOfOXP}
}

// sendOXP sends a call under its number.
func (o *office) sendOXP(c call, nth int) *httptest.ResponseRecorder {
	return o.post("/tools/call", fmt.Sprintf(`{"tool_id":"callgate.%s","call_id":"c-%d","input":%s}`, c.tool(), nth, c.Arguments), c)
}

// codeOfOXP is the code of an answer. One to a call that waits for people has their page, and where
// to ask what they said.
func codeOfOXP(t *testing.T, o *office, w *httptest.ResponseRecorder) string {
	t.Helper()
	var got struct {
		Code    string
		Success bool
		Error   struct{ Code string }
		Missing *struct {
			Authorization []struct {
				ID, URL string
				Check   string `json:"check_url"`
			}
		} `json:"missing_requirements"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	code := got.Code + got.Error.Code
	if refused := w.Code == http.StatusBadRequest; refused == (code == "") || got.Success != (code == "") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if waits := code == string(refusal.ApprovalRequired) && len(o.opened()) > 0; waits != (got.Missing != nil) {
		t.Errorf("waits: %v: %s", waits, w.Body)
	}
	if got.Missing == nil {
		return code
	}
	if len(got.Missing.Authorization) != 1 {
		t.Fatal(w.Body)
	}
	a := got.Missing.Authorization[0]
	id := strings.TrimPrefix(a.URL, pages)
	if !slices.Contains(o.opened(), id) || a.ID != "approval" || a.Check != gate+"/tools/authorizations/"+id+"/0" {
		t.Errorf("%+v", a)
	}
	return code
}

package approvals_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/upstream"
)

// TestTakenUp: the first call of a story is taken up once people have said what they say, in the
// ways that faces have for it. Taken up once more it has the same answer, and does not run again.
func TestTakenUp(t *testing.T) {
	resumed := func(v vector) string { return *v.Resume }
	for name, way := range map[string]struct {
		face string
		up   func(o *office, c call, id string) *httptest.ResponseRecorder
		want func(v vector) string
	}{
		"native, by its id": {"native", func(o *office, c call, id string) *httptest.ResponseRecorder {
			return o.post("/v1/calls/"+id+"/resume", "", c)
		}, resumed},
		"MCP, with the request state": {"MCP " + mcpNow + ", page", func(o *office, c call, id string) *httptest.ResponseRecorder {
			return o.sendMCP(c, showsPages, replies(id, "approval_page", `{"action":"accept"}`))
		}, func(v vector) string {
			if v.End == "used" { // by a call without the state, so this state is none any more
				return string(refusal.InvalidValue)
			}
			return *v.Resume
		}},
		// A call_id is a key: the same call is made again, and people are asked anew where it has to be.
		"OXP, with its call_id": {"OXP", func(o *office, c call, _ string) *httptest.ResponseRecorder {
			return o.sendOXP(c, 1)
		}, func(v vector) string { return v.Expect }},
	} {
		f, reported := faceOf(t, way.face), 0
		for _, v := range stories(t) {
			if v.Resume == nil {
				continue
			}
			reported++
			t.Run(v.ID+"/"+name, func(t *testing.T) {
				o := openOffice(t, v.config(t))
				id := o.tell(t, f, v)
				ran, want := len(o.ran), way.want(v)
				runs := map[bool]int{true: 1}[want == "" && v.End != "used"]
				for range 2 {
					w := way.up(o, v.Call, id)
					if code := f.code(t, o, w); code != want {
						t.Errorf("taken up: %q, want %q: %s", code, want, w.Body)
					}
					if len(o.ran) != ran+runs {
						t.Errorf("ran %q", o.ran[ran:])
					}
				}
			})
		}
		t.Logf("%s: %d stories", name, reported)
	}
}

// TestRequestStateOfAnotherCall: the state that MCP gave for a call takes up that call alone. The
// same call written otherwise is that call.
func TestRequestStateOfAnotherCall(t *testing.T) {
	reported := 0
	for _, v := range stories(t) {
		if v.Again == nil || v.Said != "" {
			continue
		}
		reported++
		t.Run(v.ID, func(t *testing.T) {
			o := openOffice(t, v.config(t))
			id := o.tell(t, faceOf(t, "MCP "+mcpNow+", page"), v)
			want := string(refusal.InvalidValue)
			if strings.HasPrefix(v.ID, "other-white-space") || strings.HasPrefix(v.ID, "other-order") {
				want = ""
			}
			w := o.sendMCP(*v.Again, showsPages, replies(id, "approval_page", `{"action":"accept"}`))
			if code := codeOfMCP(t, o, w); code != want || len(o.ran) != map[bool]int{true: 1}[want == ""] {
				t.Errorf("%q, want %q, and ran %q: %s", code, want, o.ran, w.Body)
			}
		})
	}
	t.Logf("%d stories", reported)
}

func faceOf(t *testing.T, name string) face {
	t.Helper()
	for _, f := range faces() {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("no face is %s", name)
	return face{}
}

// TestTheStatusThatOXPGives: the status of a call's approval is the one that people have given it.
func TestTheStatusThatOXPGives(t *testing.T) {
	want := map[string]string{string(refusal.ApprovalRequired): "pending", "": "completed"}
	for _, v := range stories(t) {
		if v.Resume == nil {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			o := openOffice(t, v.config(t))
			id := o.tell(t, faceOf(t, "OXP"), v)
			status, ok := want[*v.Resume]
			if !ok || v.End == "withdrawn" {
				status = "failed"
			}
			r := o.request("/tools/authorizations/"+id+"/0", "", v.Call)
			r.Method = http.MethodGet
			w := httptest.NewRecorder()
			if o.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"status":"`+status+`"`) {
				t.Errorf("want %s: %d %s", status, w.Code, w.Body)
			}
		})
	}
}

// TestDecidedWhileTheClientHasThePage: a call of MCP 2025-11-25 waits while its client has the page
// open, and ends as a call does that is taken up after that. Where people have not decided, the
// client closes the page.
func TestDecidedWhileTheClientHasThePage(t *testing.T) {
	for _, v := range stories(t) {
		if v.Resume == nil {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			o := openOffice(t, v.config(t))
			want, asked := *v.Resume, 0
			if v.End == "used" { // by another call, so this one asks anew
				want = string(refusal.ApprovalRequired)
			}
			w := o.talk(v.Call, showsPages, func(question string) string {
				asked++
				if asked > 1 {
					return `{"action":"decline"}`
				}
				id := pageOf.FindStringSubmatch(question)[1]
				o.decide(t, faces()[0], v, id)
				a, err := o.Executor.Desk().Get(t.Context(), id)
				if err != nil || o.Executor.Desk().State(&a) == approval.Waiting {
					return `{"action":"decline"}`
				}
				return `{"action":"accept"}`
			})
			if code := codeOfMCP(t, o, w); code != want || asked == 0 {
				t.Errorf("%q, want %q: %s", code, want, w.Body)
			}
			if runs := want == "" || v.End == "used"; len(o.ran) != map[bool]int{true: 1}[runs] {
				t.Errorf("ran %q", o.ran)
			}
		})
	}
}

// decider is a client whose user decides.
type decider struct {
	ask  func(o *office, c call, said string) *httptest.ResponseRecorder
	code func(t *testing.T, o *office, w *httptest.ResponseRecorder) string
}

// byItem is a client of Responses, whose user answers an item of the answer.
func byItem(t *testing.T, stream bool) decider {
	return decider{func(o *office, c call, said string) *httptest.ResponseRecorder {
		user := confirmer{office: o, t: t, stream: stream}
		w := user.send(&c, c)
		var q request
		item := string(user.output(w)[0])
		if said == "cancel" || json.Unmarshal([]byte(item), &q) != nil || q.Type != "mcp_approval_request" {
			return w
		}
		return user.send(nil, c, item, answer(q.ID, said == "allow once", ""))
	}, func(_ *testing.T, o *office, w *httptest.ResponseRecorder) string {
		if strings.Contains(w.Body.String(), "mcp_approval_request") {
			return string(refusal.ApprovalRequired)
		}
		return codeIn(o.read)
	}}
}

// TestCallerDecides: stories of the caller's own user, who decides by a form of MCP, in both revisions, or
// answers an item of Responses, where no yes stands.
func TestCallerDecides(t *testing.T) {
	reply := func(said string) string {
		if said == "cancel" {
			return `{"action":"cancel"}`
		}
		return `{"action":"accept","content":{"decision":` + quoted(said) + `}}`
	}
	for name, f := range map[string]decider{
		"MCP " + mcpNow: {func(o *office, c call, said string) *httptest.ResponseRecorder {
			w := o.sendMCP(c, showsForms, "")
			if !strings.Contains(w.Body.String(), `"requestState":"approval.`) {
				return w
			}
			return o.sendMCP(c, showsForms, replies(w.Header().Get("Callgate-Call-Id"), "approval", reply(said)))
		}, codeOfMCP},
		"MCP " + mcpThen: {func(o *office, c call, said string) *httptest.ResponseRecorder {
			return o.talk(c, showsForms, func(string) string { return reply(said) })
		}, codeOfMCP},
		"ACP": {func(o *office, c call, said string) *httptest.ResponseRecorder {
			kind := map[string]string{"allow once": "allow_once", "allow for 1 h": "allow_always", "deny": "reject_once"}[said]
			return o.sendACP(c, kind)
		}, codeOfACP},
		"Responses":           byItem(t, false),
		"Responses, streamed": byItem(t, true),
	} {
		if strings.HasPrefix(name, "Responses") && !app.Speaks(upstream.ResponsesWire) {
			continue
		}
		reported := 0
		for _, v := range stories(t) {
			if v.Said == "" || v.Said == "allow for 1 h" && strings.HasPrefix(name, "Responses") {
				continue
			}
			reported++
			t.Run(v.ID+"/"+name, func(t *testing.T) {
				o := openOffice(t, v.config(t))
				again := v.Call
				if v.Again != nil {
					again = *v.Again
				}
				ran := 0
				for _, c := range []struct {
					call       call
					said, code string
				}{{v.Call, v.Said, v.First}, {again, "cancel", v.Expect}} {
					w := f.ask(o, c.call, c.said)
					if code := f.code(t, o, w); code != c.code {
						t.Errorf("%s: %q, want %q: %s", c.said, code, c.code, w.Body)
					}
					if c.code == "" {
						ran++
					}
				}
				if len(o.ran) != ran {
					t.Errorf("ran %q", o.ran)
				}
			})
		}
		if reported < 5 {
			t.Errorf("%s: told %d stories", name, reported)
		}
		t.Logf("%s: %d stories", name, reported)
	}
}

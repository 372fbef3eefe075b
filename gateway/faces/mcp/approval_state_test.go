package mcp_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/faces/mcp"
)

// TestApprovalState: a state is worth something to its caller, for the same call, while the
// approval is kept.
func TestApprovalState(t *testing.T) {
	d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { c.Identity = keys{} })
	both := []string{"Authorization", "Bearer both", "Callgate-Agent", "Analyst"}
	const same = `"arguments":{"n":1},`
	state := d.asks(t, "mine", forms, `"arguments":{"n":1}`, both...).Result.State
	yes := decides("allow once")
	forged := base64.RawURLEncoding.EncodeToString([]byte(`{"state":"x","responses":{"who":{"action":"accept"}}}`))
	for name, c := range map[string]struct {
		tool, params string
		headers      []string
	}{
		"tampered":          {"mine", same + answered(state+"X", yes), both},
		"none":              {"mine", same + answered("approval.", yes), both},
		"another":           {"mine", same + answered("approval.call_00000000000000000000000000", yes), both},
		"no id":             {"mine", same + answered("approval.é \u0000", yes), both},
		"long":              {"mine", same + answered("approval."+strings.Repeat("s", 30_000), yes), both},
		"with answers":      {"mine", same + answered(state+"."+forged, yes), both},
		"with no JSON":      {"mine", same + answered(state+".////", yes), both},
		"with JSON twice":   {"mine", same + answered(state+"."+base64.RawURLEncoding.EncodeToString([]byte(`{"state":"x","state":"y"}`)), yes), both},
		"other arguments":   {"mine", `"arguments":{"n":2},` + answered(state, yes), both},
		"another spelling":  {"mine", `"arguments":{"n":1.0},` + answered(state, yes), both},
		"another tool":      {"once", same + answered(state, yes), both},
		"a tool for free":   {"theirs", same + answered(state, yes), both},
		"another agent":     {"mine", same + answered(state, yes), []string{"Authorization", "Bearer both", "Callgate-Agent", "Intern"}},
		"another principal": {"mine", same + answered(state, yes), []string{"Authorization", "Bearer one"}},
	} {
		if got := d.asks(t, c.tool, forms, c.params, c.headers...).refusedAt(t); got != "invalid_value /requestState" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if d.runs() != 0 || !slices.Equal(d.acts(), d.acts()[:1]) {
		t.Fatalf("%d runs, %q", d.runs(), d.acts())
	}
	if r := d.asks(t, "mine", forms, same+answered("approval."+strings.Repeat("s", 32<<10), yes), both...); r.status != 400 {
		t.Errorf("%d %.300s", r.status, r.raw)
	}
	if r := d.asks(t, "mine", forms, same+answered(state, yes), both...); r.Result.IsError || d.runs() != 1 {
		t.Errorf("%s", r.raw)
	}
	// It was used, and names nothing to another request.
	if got := d.asks(t, "mine", forms, same+answered(state, yes), append(both, "Idempotency-Key", "k")...).refusedAt(t); got != "invalid_value /requestState" || d.runs() != 1 {
		t.Errorf("%s, %d runs", got, d.runs())
	}
}

// TestApprovalOfOtherRules: a reply counts for the approval that was shown, and for none that has
// been opened for the same call since.
func TestApprovalOfOtherRules(t *testing.T) {
	var config gateway.Config
	d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { config = *c })
	first := d.asks(t, "mine", formsAndPages, "").Result.State
	files := deskFiles()
	files["policy.csv"] = strings.Replace(files["policy.csv"], "mine, , ask:mine", "mine, , ask:once", 1)
	c, err := configs.Load(configured(t, files))
	if err != nil {
		t.Fatal(err)
	}
	config.Policy = c.Policy
	if err := d.kernel.Kernel.Swap(&config); err != nil {
		t.Fatal(err)
	}
	r := d.asks(t, "mine", formsAndPages, answered(first, decides("allow once")))
	if r.Result.Type != "input_required" || r.Result.State == first || d.runs() != 0 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
	if r = d.asks(t, "mine", formsAndPages, answered(r.Result.State, decides("allow once"))); r.Result.IsError || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// TestADenyWins: what a user has decided against does not run, though the call waits for nobody when the reply
// comes: an approver has approved it meanwhile, or the policy asks no more. A reply that decides nothing stops it by no more
// than before.
func TestADenyWins(t *testing.T) {
	for name, c := range map[string]struct {
		tool, responses, want, next string
		runs                        int
	}{
		"denied":            {"mine", decides("deny"), "approval_denied", "approval_denied", 0},
		"declined":          {"mine", `{"approval":{"action":"decline"}}`, "approval_denied", "approval_denied", 0},
		"by one of the two": {"both", decides("deny"), "approval_denied", "approval_denied", 0},
		"not the own part":  {"theirs", decides("deny"), "approval_required", "", 0}, // called off
		"unclear":           {"mine", decides("no"), "invalid_value /inputResponses/approval/content/decision", "", 1},
		"an unknown action": {"mine", `{"approval":{"action":"reject"}}`, "invalid_value /inputResponses/approval/action", "", 1},
		"a yes":             {"mine", decides("allow once"), "", "", 1},
		"cancelled":         {"mine", `{"approval":{"action":"cancel"}}`, "", "", 1},
	} {
		said := func(r reply) string {
			if r.Error.Code != 0 {
				return r.refusedAt(t)
			}
			return r.code()
		}
		for _, meanwhile := range []string{"approved", "allowed"} {
			var config gateway.Config
			d := openDesk(t, func(c *gateway.Config, _ *calls.Deps) { config = *c })
			first := d.asks(t, c.tool, formsAndPages, "")
			if meanwhile == "approved" {
				d.votes(t, first.header.Get("Callgate-Call-Id"), true)
			} else {
				files := deskFiles()
				files["policy.csv"] = "p, Analyst, acme/alpha, *, , allow\n# end\n"
				loaded, err := configs.Load(configured(t, files))
				if err != nil {
					t.Fatal(err)
				}
				config.Policy = loaded.Policy
				if err := d.kernel.Kernel.Swap(&config); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				r := d.asks(t, c.tool, formsAndPages, answered(first.Result.State, c.responses))
				if got := said(r); got != c.want || c.want != "" && d.runs() != 0 {
					t.Errorf("%s, %s: %s, %d runs: %s", name, meanwhile, got, d.runs(), r.raw)
				}
			}
			r := d.asks(t, c.tool, formsAndPages, answered(first.Result.State, `{}`))
			if got := said(r); meanwhile == "approved" && got != c.next || d.runs() != max(c.runs, d.runs()) {
				t.Errorf("%s, %s: and then %s, %d runs: %s", name, meanwhile, got, d.runs(), r.raw)
			}
		}
	}
	// Of a call that has run, the user is told so.
	d := openDesk(t, nil)
	state := d.asks(t, "mine", formsAndPages, "").Result.State
	d.asks(t, "mine", formsAndPages, answered(state, decides("allow once")))
	if r := d.asks(t, "mine", formsAndPages, answered(state, decides("deny"))); r.code() != "approval_conflict" || d.runs() != 1 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
}

// TestApprovalKeepsAnswers: a call that answers its tool and waits for its user is the same call
// when it comes back, answers included.
func TestApprovalKeepsAnswers(t *testing.T) {
	d := openDesk(t, nil)
	const name = `{"who":{"action":"accept","content":{"name":"Ann"}}}`
	r := d.asks(t, "book", forms, "")
	r = d.asks(t, "book", forms, answered(r.Result.State, decides("allow once")))
	if asked := r.asked(t); asked["who"] == "" || d.runs() != 1 {
		t.Fatalf("%s", r.raw)
	}
	r = d.asks(t, "book", forms, answered(r.Result.State, name))
	if asked := r.asked(t); asked["approval"] == "" || d.runs() != 1 || !strings.HasPrefix(r.Result.State, "approval."+r.header.Get("Callgate-Call-Id")+".") {
		t.Fatalf("%s", r.raw)
	}
	// Others' answers are another call's.
	text, err := base64.RawURLEncoding.DecodeString(r.Result.State[strings.LastIndex(r.Result.State, ".")+1:])
	if err != nil {
		t.Fatal(err)
	}
	other := r.Result.State[:strings.LastIndex(r.Result.State, ".")+1] + base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(text), "Ann", "Eve", 1)))
	if got := d.asks(t, "book", forms, answered(other, decides("allow once"))).refusedAt(t); got != "invalid_value /requestState" || d.runs() != 1 {
		t.Errorf("%s, %d runs", got, d.runs())
	}
	if r = d.asks(t, "book", forms, answered(r.Result.State, decides("allow once"))); r.Result.IsError || string(r.Result.Structured) != `{"booked":true}` || d.runs() != 2 {
		t.Errorf("%d runs: %s", d.runs(), r.raw)
	}
	// Answers that a state cannot carry are no reason to run without being asked.
	r = d.asks(t, "book", forms, "")
	r = d.asks(t, "book", forms, answered(r.Result.State, decides("allow once")))
	long := `{"who":{"action":"accept","content":{"name":"` + strings.Repeat("x", 64<<10) + `"}}}`
	if r = d.asks(t, "book", forms, answered(r.Result.State, long)); r.code() != "approval_required" || d.runs() != 3 {
		t.Errorf("%d runs: %.300s", d.runs(), r.raw)
	}
}

// FuzzApprovalState: whatever a state says, it is read into an approval's name and what a call
// answers its tool; a state that was made is read as it was, and one of more is no name.
func FuzzApprovalState(f *testing.F) {
	f.Add("call_1", "state", "who", `{"action":"accept"}`)
	f.Add("", "", "", `{`)
	f.Add("call_1.e30", "\xff", "\u202e", `{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, id, state, name, answer string) {
		d := &elicit.Dialogue{RequestState: "approval." + id, Answers: map[string]json.RawMessage{"approval": []byte(`{}`)}}
		mcp.ReadApprovalState(d)
		if d.Approval == "" || d.Answers["approval"] != nil {
			t.Fatalf("%q names no approval: %+v", id, d)
		}
		if d.BringsAnswers() && !strings.Contains(id, ".") {
			t.Fatalf("%q answers %+v", id, d)
		}
		own := &elicit.Dialogue{RequestState: state, Answers: map[string]json.RawMessage{name: json.RawMessage(answer)}}
		made, ok := mcp.ApprovalState("call_1", own)
		if !ok {
			return
		}
		again := &elicit.Dialogue{RequestState: made}
		mcp.ReadApprovalState(again)
		if again.Approval == "call_1" && again.AnswersDigest() != own.AnswersDigest() && json.Valid([]byte(answer)) && utf8.ValidString(state+name+answer) {
			t.Fatalf("%q became %+v, of %+v", made, again, own)
		}
	})
}

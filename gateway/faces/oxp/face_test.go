package oxp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const search = `{"tool_id":"web.search","call_id":"c-1","input":{"query":"x"}}`

// TestOXP01Health: anybody is told, whatever they say of themselves.
func TestOXP01Health(t *testing.T) {
	h := open(t, func(s *gateway.Config, _ *calls.Deps) { s.Identity = &identity.APIKeys{} })
	for _, headers := range [][]string{nil, {"Authorization", "Bearer x"}, {"Authorization", "Basic x"}, {"OXP-Version", "9"}} {
		if r := h.ask(http.MethodGet, "/health", "", headers...); r.status != 200 || !strings.Contains(r.raw, `"ready"`) {
			t.Errorf("%v: %d %s", headers, r.status, r.raw)
		}
	}
	h.unready = errors.New("no keys")
	if r := h.ask(http.MethodGet, "/health", ""); r.status != 503 || strings.Contains(r.raw, "keys") {
		t.Errorf("not ready: %d %s", r.status, r.raw)
	}
	h.unready = nil
	h.Drain()
	if r := h.ask(http.MethodGet, "/health", ""); r.status != 503 {
		t.Errorf("draining: %d %s", r.status, r.raw)
	}
}

// TestOXP02And03Lists: a list of definitions by the schema, each once, and never null.
func TestOXP02And03Lists(t *testing.T) {
	h := open(t, nil)
	r := h.ask(http.MethodGet, "/tools", "")
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(r.raw), &list); err != nil || r.status != 200 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	var got []string
	for _, item := range list.Items {
		if err := h.schema.Check("ToolDefinition", item); err != nil {
			t.Errorf("%s: %v", item, err)
		}
		var d struct {
			ID, Name, Version string
			Output            json.RawMessage `json:"output_schema"`
		}
		if json.Unmarshal(item, &d) != nil {
			t.Errorf("%s", item)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s", d.ID, d.Name, d.Version, d.Output))
	}
	// Tools that the agent may not use, tools that the application runs, and versions that
	// the protocol cannot express are left out.
	want := []string{"callgate.data data 0.0.0 ", "files.read_all_now files_read-all_now 2.0.0 ", `lone.null lone_null 1.0.0 {"type":"null"}`, `web.search web_search 1.10.0 {"type":"object"}`}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("listed %q", got)
	}
	if strings.Contains(r.raw, "pay") || strings.Contains(r.raw, "secret") {
		t.Errorf("shown: %s", r.raw)
	}
	h.Executor.Kernel.Quarantine(map[string]bool{"data": true, "files.read-all.now": true, "web.search": true, "lone.null": true})
	if r := h.ask(http.MethodGet, "/tools", ""); r.raw != "{\"items\":[]}\n" {
		t.Errorf("of nothing: %s", r.raw)
	}
}

// TestOXP04VersionEverywhere: every answer names the version, also every refusal. (ask
// looks at it.)
func TestOXP04VersionEverywhere(t *testing.T) {
	h := open(t, func(_ *gateway.Config, p *calls.Deps) { p.NewID = broken(3) })
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"a method":        {http.MethodPut, "/tools/call", "", nil, 405},
		"another":         {http.MethodPost, "/tools", "", nil, 405},
		"one of health":   {http.MethodPost, "/health", "", nil, 405},
		"a query":         {http.MethodGet, "/tools?x", "", nil, 400},
		"a header":        {http.MethodGet, "/tools", "", []string{"Callgate-Agnet", "x"}, 400},
		"a media type":    {http.MethodPost, "/tools/call", search, []string{"Content-Type", "text/plain"}, 400},
		"an encoding":     {http.MethodPost, "/tools/call", search, []string{"Content-Type", "application/json", "Content-Encoding", "gzip"}, 400},
		"no JSON":         {http.MethodPost, "/tools/call", "{", []string{"Content-Type", "application/json"}, 400},
		"a long body":     {http.MethodPost, "/tools/call", strings.Repeat(" ", 2<<20), []string{"Content-Type", "application/json"}, 400},
		"two credentials": {http.MethodGet, "/tools", "", []string{"Authorization", "Bearer a", "Authorization", "Bearer a"}, 400},
	} {
		if r := h.ask(c.method, c.path, c.body, c.headers...); r.status != c.status || r.problem.Code == "" || r.Message == "" {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	for range 4 { // one of them breaks off
		h.call(search)
	}
}

// broken makes ids, and breaks off once.
func broken(at int) func() string {
	n := 0
	return func() string {
		if n++; n == at {
			panic("broken")
		}
		return fmt.Sprintf("call_%d", n)
	}
}

// TestOXP05And06Versions: another version than ours is refused, none is ours.
func TestOXP05And06Versions(t *testing.T) {
	h := open(t, nil)
	for version, status := range map[string]int{"": 200, "1": 200, "1.0": 200, "1.0.0": 200, "1.1": 400, "2": 400, "0.9": 400, "01.0": 400, "1.0.0.0": 400, "latest": 400, " 1.0 x": 400, "v1.0": 400} {
		headers := []string{"OXP-Version", version}
		if version == "" {
			headers = nil
		}
		if r := h.call(search, headers...); r.status != status {
			t.Errorf("%q: %d %s", version, r.status, r.raw)
		}
		if r := h.ask(http.MethodGet, "/tools", "", headers...); r.status != status {
			t.Errorf("%q: %d %s", version, r.status, r.raw)
		}
	}
	if r := h.call(search, "OXP-Version", "1.0", "OXP-Version", "1.0"); r.status != 400 {
		t.Errorf("twice: %d %s", r.status, r.raw)
	}
}

// TestOXP07And22Input: the tool gets the very bytes of the input, and needs nothing
// beside.
func TestOXP07And22Input(t *testing.T) {
	h := open(t, nil)
	const input = "{ \"query\" : \"\\u0041<b>\u00e9\", \"n\": 1.0 }"
	for i, body := range []string{
		`{"tool_id":"web.search","input":` + input + `}`,
		"\n{\"input\" :\t" + input + " , \"tool_id\":\"web.search\"} ",
		`{"\u0069nput":` + input + `,"tool_id":"web\u002esearch","trace_id":"t-1","context":{"user_id":"u-1","more":[1]}}`,
	} {
		r := h.call(body)
		ran := h.tool.ran()
		if r.status != 200 || len(ran) != i+1 || string(ran[i].Arguments) != input || ran[i].Tool != "web.search" || ran[i].Version != "1.10.0" {
			t.Fatalf("%s: %d %s %+v", body, r.status, r.raw, ran)
		}
	}
	if ran := h.tool.ran()[2]; ran.User != "u-1" {
		t.Errorf("for %q", ran.User)
	}
	if r := h.Journal.Records()[len(h.Journal.Records())-1]; r.RequestID != "t-1" {
		t.Errorf("recorded %+v", r)
	}
	if r := h.call(`{"tool_id":"callgate.data"}`); r.status != 200 || string(h.tool.ran()[3].Arguments) != "{}" {
		t.Errorf("without input: %s", r.raw)
	}
}

// TestOXP28And29Bodies: what is no call is refused, and runs nothing.
func TestOXP28And29Bodies(t *testing.T) {
	h := open(t, nil)
	long := strings.Repeat("x", 2000)
	for _, body := range []string{
		``, ` `, `null`, `[]`, `"x"`, `1`, `{`, `{}`, `{"tool_id":1}`, `{"tool_id":null}`, `{"tool_id":""}`, `{"input":{}}`,
		search + search, search + `x`, "\ufeff" + search, "\x00" + search, strings.Replace(search, "x", "\xff", 1), strings.Replace(search, "x", `\ud800`, 1),
		`{"request":` + search + `}`, `{"tool_id":"web.search","tool_id":"data"}`, `{"tool_id":"web.search","\u0074ool_id":"data"}`, `{"tool_id":"web.search","input":{"query":"x","qu\u0065ry":"y"}}`,
		`{"TOOL_ID":"web.search"}`, `{"tool_id":"web.search","Input":{}}`, `{"tool_id":"web.search","inputs":{}}`, `{"tool_id":"web.search","arguments":{}}`, `{"tool_id":"web.search","$schema":"x"}`, `{"tool_id":"web.search","":1}`,
		`{"tool_id":"web.search","input":null}`, `{"tool_id":"web.search","input":[]}`, `{"tool_id":"web.search","input":"{}"}`, `{"tool_id":"web.search","input":1}`,
		`{"tool_id":"web.search","call_id":1}`, `{"tool_id":"web.search","call_id":""}`, `{"tool_id":"web.search","call_id":"a\nb"}`, `{"tool_id":"web.search","call_id":"a\u202eb"}`, `{"tool_id":"web.search","call_id":"` + long + `"}`,
		`{"tool_id":"web.search","trace_id":1}`, `{"tool_id":"web.search","trace_id":"\u0000"}`, `{"tool_id":"web.search","trace_id":"` + long + `"}`,
		`{"tool_id":"web.search","context":[]}`, `{"tool_id":"web.search","context":{"user_id":1}}`, `{"tool_id":"web.search","context":{"user_id":"` + long + `"}}`,
		`{"tool_id":"web.search","context":{"authorization":{}}}`, `{"tool_id":"web.search","context":{"authorization":[{"id":"google","token":"t"}]}}`, `{"tool_id":"web.search","context":{"secrets":[{"id":"a","value":"canary"}]}}`,
		`{"tool_id":"web.search","input":{"query":1e999999}}`, `{"tool_id":"web.search","input":{"query":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}`, `{"tool_id":"web.search","input":{"deep":` + strings.Repeat(`{"a":`, 80) + `1` + strings.Repeat(`}`, 80) + `}}`,
		`{'tool_id':'web.search'}`, `{"tool_id":"web.search",}`, `{"tool_id":"web.search" /* x */}`, `{"tool_id":"web.search","input":{"query":NaN}}`,
	} {
		r := h.call(body)
		if r.status != 400 || r.problem.Code == "" || r.Message == "" || strings.Contains(r.raw, "canary") {
			t.Errorf("%.100q: %d %.300s", body, r.status, r.raw)
		}
	}
	// A member that is null is absent.
	nulls := strings.Replace(strings.Replace(search, `"call_id":"c-1"`, `"call_id":null`, 1), "{", `{"trace_id":null,"more":null,"context":null,`, 1)
	for _, body := range []string{nulls, strings.Replace(nulls, `"context":null`, `"context":{"user_id":null,"authorization":null,"secrets":null}`, 1)} {
		if r := h.call(body); r.status != 200 || r.Success == nil || !*r.Success {
			t.Errorf("%s: %d %s", body, r.status, r.raw)
		}
	}
	if ran := h.tool.ran(); len(ran) != 2 {
		t.Errorf("run: %+v", ran)
	}
	for _, headers := range [][]string{nil, {"Content-Type", "application/jsonx"}, {"Content-Type", "application/json; charset=latin1"}} {
		if r := h.ask(http.MethodPost, "/tools/call", search, headers...); r.status != 400 || r.problem.Code != "unsupported_media_type" {
			t.Errorf("%v: %d %s", headers, r.status, r.raw)
		}
	}
	if ran := h.tool.ran(); len(ran) != 2 {
		t.Errorf("run: %+v", ran)
	}
}

// TestInputsAreJudged: a fault within an input is reported and recorded like any refused
// call, with principal and tool. An invalid body has no call.
func TestInputsAreJudged(t *testing.T) {
	for input, code := range map[string]string{
		`{"query":"x","qu\u0065ry":"y"}`: "duplicate_key",
		`{"query":1e999999}`:             "invalid_number",
		"{\"query\":\"\xff\"}":           "invalid_utf8",
		`{"query":"\ud800"}`:             "malformed_json",
		`{"query":NaN}`:                  "malformed_json",
		`{"query":"x",}`:                 "malformed_json",
		`{"deep":` + strings.Repeat(`{"a":`, 80) + `1` + strings.Repeat(`}`, 81): "too_deep",
		`{"query":"x"]`: "malformed_json",
		`null`:          "wrong_type",
		`["x"]`:         "wrong_type",
		`"{}"`:          "wrong_type",
		`{"query":"` + strings.Repeat("x", 1<<20) + `"}`: "output_too_large",
	} {
		h := open(t, nil)
		r := h.call(`{"input":` + input + `,"tool_id":"web.search","call_id":"c-1"}`)
		if r.status != 400 || r.problem.Code != code || r.problem.Stage != "parse" || r.header.Get("Callgate-Call-Id") == "" {
			t.Errorf("%.100s: %d %.300s", input, r.status, r.raw)
		}
		if strings.Contains(r.Message, `"tool"`) || strings.Contains(r.Message, `"arguments"`) {
			t.Errorf("%.100s: the members of no request here: %s", input, r.Message)
		}
		records := h.Journal.Records()
		if len(records) != 1 || records[0].Code != refusal.Code(code) || records[0].Verdict != "refused" || records[0].Tool != "web.search" || records[0].Agent != "Analyst" {
			t.Errorf("%.100s: written down is %+v", input, records)
		}
		// Its id is free for a better one.
		if r := h.call(search); r.status != 200 || len(h.tool.ran()) != 1 {
			t.Errorf("%.100s, and then a good one: %d %s", input, r.status, r.raw)
		}
	}
	h := open(t, nil)
	for _, body := range []string{
		`{"tool_id":"web.search","input":{"query":"x"}`, `{"tool_id":"web.search","input":}`, `{"tool_id":"web.search","input":{"query":["x"}}`,
		`{"tool_id":"web.search","input":{"query":"x"},"input":{"query":"y"}}`, `{"input":{"query":NaN}}`, `{"tool_id":"web.search","input":{},"x":1}`,
	} {
		if r := h.call(body); r.status != 400 || r.problem.Code != "bad_request" || len(h.Journal.Records()) != 0 {
			t.Errorf("%s: %d %s, %+v", body, r.status, r.raw, h.Journal.Records())
		}
	}
}

// TestOXP09To13Versions: an exact version, a major one which is x.0.0, and none,
// which is the highest by its numbers.
func TestOXP09To13Versions(t *testing.T) {
	h := open(t, nil)
	for id, want := range map[string]string{
		"web.search": "web.search 1.10.0", "web.search@1.10.0": "web.search 1.10.0", "web.search@1.9.0": "web.search 1.9.0", "web.search@1": "web.search 1.0.0", "web.search@1.0.0": "web.search 1.0.0",
		"callgate.data": "data 0.0.0", "callgate.data@0": "data 0.0.0", "files.read_all_now": "files.read-all.now 2.0.0", "files.read_all_now@2": "files.read-all.now 2.0.0", "odd.beta": "odd.beta 2.0.0-beta.1",
		"web.search@2": "", "web.search@1.10.1": "", "web.search@10": "", "web.search@01.10.0": "", "web.search@1.9": "", "web.search@": "", "web.search@v1": "", "web.search@latest": "", "web.search@1.10.0-x": "", "web.search@1@1": "",
		"web.serch": "", "Web.Search": "", "web_search": "", "web": "", "data": "", "callgate.web.search": "", "web.search.now": "", "files.read-all": "", "files.read-all.now": "", "files.read_all-now": "", "odd.beta@2.0.0": "", "odd.beta@2": "", "a b.c": "", ".a": "", "a.": "", "web.search\n": "", "web.s\u0435arch": "", strings.Repeat("a", 300) + ".b": "",
	} {
		before := len(h.tool.ran())
		input := `{"query":"x"}`
		if strings.HasSuffix(want, "1.9.0") {
			input = `{"old":"x"}`
		} else if want != "" && !strings.HasSuffix(want, "1.10.0") {
			input = "{}"
		}
		quoted, _ := json.Marshal(id)
		r := h.call(`{"tool_id":` + string(quoted) + `,"input":` + input + `}`)
		ran := h.tool.ran()
		if want == "" {
			if code := r.code(); r.status != 400 || code != "bad_request" && code != "unknown_tool" || len(ran) != before {
				t.Errorf("%q: %d %s", id, r.status, r.raw)
			}
			continue
		}
		if r.status != 200 || len(ran) != before+1 || ran[before].Tool+" "+ran[before].Version != want {
			t.Errorf("%q: %d %s", id, r.status, r.raw)
		}
	}
	if r := h.call(`{"tool_id":"files.read_al_now"}`); !slices.Equal(r.DidYouMean, []string{"files.read_all_now"}) {
		t.Errorf("offered %s", r.raw)
	}
}

// TestOXP14Order: which tool is meant comes before what it is asked, and before
// anything of its schema is shown comes whether it may be used.
func TestOXP14Order(t *testing.T) {
	h := open(t, nil)
	for body, want := range map[string]string{
		`{"tool_id":"web.serch","input":{"x":1}}`:                              "400 unknown_tool",
		`{"tool_id":"web.search@3","input":{"x":1}}`:                           "400 unknown_tool",
		`{"tool_id":"pay.refund","input":{"x":1}}`:                             "400 permission_denied",
		`{"tool_id":"pay.refund@7","input":{"x":1}}`:                           "400 permission_denied", // nor which versions there are
		`{"tool_id":"web.search","input":{"x":1}}`:                             "422 missing_argument",
		`{"tool_id":"web.search@1.9.0","input":{"query":"x"}}`:                 "422 missing_argument",
		`{"tool_id":"web.search@1","input":{"query":"x"}}`:                     "422 unexpected_argument",
		`{"tool_id":"web.search","input":{"query":"x","site":"evil.example"}}`: "400 boundary_violation",
	} {
		r := h.call(body)
		if got := fmt.Sprint(r.status, " ", r.code()); got != want {
			t.Errorf("%s: %s, want %s", body, r.raw, want)
		}
		if strings.Contains(r.raw, "secret") {
			t.Errorf("%s shows a schema: %s", body, r.raw)
		}
	}
	if n := len(h.tool.ran()); n != 0 {
		t.Errorf("%d were run", n)
	}
}

// TestOXP15And16Parameters: what is wrong with the input is said of each parameter.
func TestOXP15And16Parameters(t *testing.T) {
	h := open(t, nil)
	for input, want := range map[string][]string{
		`{}`:          {"query"},
		`{"query":1}`: {"query"},
		`{"query":"` + strings.Repeat("x", 30) + `"}`: {"query"},
		`{"query":"x","more":1,"n":"1"}`:              {"more", "n"},
		`{"query":"x","a/b~c":"1"}`:                   {"a/b~c"},
		`{"query":"x","deep":{"x":"1","y":2}}`:        {"deep"},
		`{"query":"x","n":1.5}`:                       {"n"},
	} {
		r := h.call(`{"tool_id":"web.search","input":` + input + `}`)
		var got []string
		for name, message := range r.Parameters {
			got = append(got, name)
			if message == "" {
				t.Errorf("%s: nothing is said of %s", input, name)
			}
		}
		if slices.Sort(got); r.status != 422 || r.Message == "" || !slices.Equal(got, want) {
			t.Errorf("%s: %d %s", input, r.status, r.raw)
		}
	}
	if n := len(h.tool.ran()); n != 0 {
		t.Errorf("%d were run", n)
	}
}

// executedCodes are the codes of calls that were made and have no result; two are of those that an agent has run itself.
var executedCodes = []refusal.Code{refusal.ToolFailed, refusal.ToolUnavailable, refusal.AddressBlocked, refusal.OutcomeUnknown, refusal.StepUpRequired, refusal.ToolTimeout, refusal.InvalidResult, refusal.ResultTooLarge, refusal.Unjudged, refusal.ExecutedDiffers}

// TestOXP08And23ExecutionErrors: a tool that was called and has no result is 200.
func TestOXP08And23ExecutionErrors(t *testing.T) {
	h := open(t, nil)
	for _, code := range executedCodes {
		refused := refusal.New(code, "It is so.").WithCause(errors.New("canary"))
		h.tool.gives(fails(refused))
		r := h.call(search[:len(search)-1] + `,"trace_id":"` + string(code) + `"}`) // the same call
		if code != executedCodes[0] {
			r = h.call(`{"tool_id":"web.search","input":{"query":"x"}}`)
		}
		if r.status != 200 || r.Success == nil || *r.Success || r.Error == nil || r.Error.Code != string(code) || r.Error.Message != "It is so." || *r.Error.CanRetry || r.Value != nil || strings.Contains(r.raw, "canary") {
			t.Errorf("%s: %d %s", code, r.status, r.raw)
		}
	}
	later := refusal.New(refusal.ToolFailed, "It is so.")
	later.RetryAfterMS = 1500
	h.tool.gives(fails(later))
	if r := h.call(`{"tool_id":"callgate.data"}`); !*r.Error.CanRetry || r.Error.After != 1500 {
		t.Errorf("later: %s", r.raw)
	}
	h.tool.gives(fails(errors.New("canary")))
	if r := h.call(`{"tool_id":"callgate.data"}`); r.status != 200 || r.Error.Code != "internal" || strings.Contains(r.raw, "canary") {
		t.Errorf("any other error: %d %s", r.status, r.raw)
	}
	h.tool.gives(value(`{"a":`))
	if r := h.call(`{"tool_id":"callgate.data"}`); r.status != 200 || r.Error.Code != "invalid_result" {
		t.Errorf("no JSON: %d %s", r.status, r.raw)
	}
}

// TestOXP30Classes: every code has one class, and 200 is never one of nothing run.
func TestOXP30Classes(t *testing.T) {
	status := map[refusal.Code]int{
		refusal.Unauthenticated: 401, refusal.NotFound: 404, refusal.MethodNotAllowed: 405, refusal.CallerRateLimited: 429, refusal.Overloaded: 503,
		refusal.UnexpectedArgument: 422, refusal.MissingArgument: 422, refusal.InvalidValue: 422, refusal.WrongType: 422,
		refusal.UnknownTool: 400, refusal.ToolStarting: 400,
	}
	for _, code := range refusal.Codes() {
		refused := refusal.New(code, "m")
		want := status[code]
		switch {
		case want == 0 && refused.Stage == refusal.Schema:
			want = 422 // it is one of arguments, as all of the stage but those above
		case want == 0:
			want = 400
		}
		if got := oxp.StatusOf(code, refused.Stage); got != want {
			t.Errorf("%s is %d, want %d", code, got, want)
		}
		ran := slices.Contains(executedCodes, code) || code == refusal.CallInProgress
		if got := oxp.WasExecuted(code, refused.Stage); got != ran {
			t.Errorf("%s: executed is %v", code, got)
		}
	}
	if got := oxp.StatusOf(refusal.WrongType, refusal.Parse); got != 400 {
		t.Errorf("wrong_type of a body is %d", got)
	}
	if got := oxp.StatusOf(refusal.Internal, refusal.Schema); got != 400 {
		t.Errorf("internal of the stage schema is %d", got)
	}
	for stage, ran := range map[refusal.Stage]bool{refusal.Execute: true, refusal.Wrap: true, refusal.Log: false, refusal.Any: false, refusal.Schema: false} {
		if oxp.WasExecuted(refusal.Internal, stage) != ran {
			t.Errorf("internal at %s", stage)
		}
	}
}

// TestOXP17Refusals: what the kernel refuses is 400 with a message, a code, and no
// cause; the tool is not run.
func TestOXP17Refusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*gateway.Config, *calls.Deps)
		want   string
	}{
		"no agent":      {func(s *gateway.Config, _ *calls.Deps) { s.Defaults.Agent = "Nobody" }, "400 agent_required"},
		"an agent":      {nil, "400 agent_unknown Callgate-Agent Nobody"},
		"the workspace": {nil, "400 workspace_mismatch Callgate-Workspace other"},
		"the project":   {nil, "400 project_mismatch Callgate-Project other"},
		"no limiter":    {func(_ *gateway.Config, p *calls.Deps) { p.Limiter = nil }, "400 limiter_unavailable"},
		"no journal":    {func(_ *gateway.Config, p *calls.Deps) { p.Journal = nil }, "400 audit_unavailable"},
		"no store":      {func(_ *gateway.Config, p *calls.Deps) { p.Store = nil }, "400 store_unavailable"},
		"a rate": {func(s *gateway.Config, _ *calls.Deps) {
			s.Limits.Tools = map[string]ratelimit.Budget{"web.search": {Rate: rate(t, "1/h"), Burst: 1}}
		}, "400 rate_limited"},
		"who asks too often": {func(s *gateway.Config, _ *calls.Deps) {
			s.Limits.Caller = &ratelimit.Budget{Rate: rate(t, "1/h"), Burst: 1}
		}, "429 caller_rate_limited"},
	} {
		h := open(t, c.change)
		want := strings.Fields(c.want)
		r := h.call(`{"tool_id":"web.search","input":{"query":"x"}}`, want[2:]...)
		if strings.HasSuffix(c.want, "rate_limited") {
			r = h.call(`{"tool_id":"web.search","input":{"query":"x"}}`)
			if r.header.Get("Retry-After") == "" || r.After <= 0 {
				t.Errorf("%s: %v %s", name, r.header, r.raw)
			}
		}
		if got := fmt.Sprint(r.status, " ", r.code()); got != want[0]+" "+want[1] || r.Message == "" || len(h.tool.ran()) > 1 {
			t.Errorf("%s: %s", name, r.raw)
		}
	}
	h := open(t, nil)
	h.Executor.Kernel.Quarantine(map[string]bool{"web.search": true})
	for _, id := range []string{"web.search", "web.search@1", "web.search@1.9.0"} {
		if r := h.call(`{"tool_id":"` + id + `","input":{"query":"x"}}`); r.status != 400 || r.code() != "tool_quarantined" {
			t.Errorf("%s: %d %s", id, r.status, r.raw)
		}
	}
}

func rate(t testing.TB, s string) ratelimit.Rate {
	t.Helper()
	r, err := ratelimit.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestOXP24Values: the value is the tool's output, of any type.
func TestOXP24Values(t *testing.T) {
	h := open(t, nil)
	for _, v := range []string{`{"n":1}`, `{"value":1}`, `{"value":{"error":1}}`, `{"error":{"code":"x"}}`, `{"error":null,"value":2}`, `[1,2.50,1e3]`, `"x"`, `15`, `12345678901234567890.10`, `true`, `null`, `{}`, `[]`, `"\u202e<b>"`} {
		h.tool.gives(value(v))
		id := `c` + v
		quoted, _ := json.Marshal(id)
		for round := range 2 { // the second is kept
			r := h.call(`{"tool_id":"callgate.data","call_id":` + string(quoted) + `}`)
			if r.status != 200 || r.Success == nil || !*r.Success || string(r.Value) != v || r.Error != nil || r.CallID != id {
				t.Errorf("%s, round %d: %d %s", v, round, r.status, r.raw)
			}
		}
	}
	h.tool.gives(func(tool.Call) (tool.Result, error) { return tool.Result{Body: []byte("a text")}, nil })
	if r := h.call(`{"tool_id":"callgate.data"}`); string(r.Value) != `"a text"` {
		t.Errorf("a text: %s", r.raw)
	}
	for v, success := range map[string]bool{`null`: true, `{}`: false} {
		h.tool.gives(value(v))
		if r := h.call(`{"tool_id":"lone.null"}`); *r.Success != success || !success && r.Error.Code != "invalid_result" {
			t.Errorf("%s of a tool that gives nothing: %s", v, r.raw)
		}
	}
	h.tool.gives(value(`[1]`))
	if r := h.call(`{"tool_id":"web.search","input":{"query":"x"}}`); r.Error == nil || r.Error.Code != "invalid_result" {
		t.Errorf("not by the schema: %s", r.raw)
	}
}

// TestOXP25And26CallIDs: an id is echoed or made, and one id is one call.
func TestOXP25And26CallIDs(t *testing.T) {
	h := open(t, nil)
	first := h.call(search)
	if first.CallID != "c-1" || first.header.Get("Callgate-Call-Id") == "" || first.Duration == nil {
		t.Errorf("%s", first.raw)
	}
	second := h.call(" " + search)
	if second.status != 200 || string(second.Value) != string(first.Value) || second.CallID != "c-1" || second.Duration != nil || len(h.tool.ran()) != 1 {
		t.Errorf("again: %s", second.raw)
	}
	for name, body := range map[string]string{
		"another input":   `{"tool_id":"web.search","call_id":"c-1","input":{"query":"y"}}`,
		"other bytes":     `{"tool_id":"web.search","call_id":"c-1","input":{"query": "x"}}`,
		"another tool":    `{"tool_id":"callgate.data","call_id":"c-1","input":{"query":"x"}}`,
		"another version": `{"tool_id":"web.search@1.10.0","call_id":"c-1","input":{"query":"x"}}`,
		"another user":    `{"tool_id":"web.search","call_id":"c-1","input":{"query":"x"},"context":{"user_id":"u"}}`,
	} {
		if r := h.call(body); r.status != 400 || r.code() != "idempotency_conflict" {
			t.Errorf("%s: %d %s", name, r.status, r.raw)
		}
	}
	if n := len(h.tool.ran()); n != 1 {
		t.Errorf("run %d times", n)
	}
	// Without one, each is a call of its own, by Callgate's id.
	one, two := h.call(`{"tool_id":"callgate.data"}`), h.call(`{"tool_id":"callgate.data"}`)
	if one.CallID == "" || one.CallID == two.CallID || one.CallID != one.header.Get("Callgate-Call-Id") || len(h.tool.ran()) != 3 {
		t.Errorf("%s %s", one.raw, two.raw)
	}
	// And that is the id of the call from then on.
	for _, first := range []reply{one, two} {
		r := h.call(`{"tool_id":"callgate.data","call_id":"` + first.CallID + `"}`)
		if r.CallID != first.CallID || string(r.Value) != string(first.Value) || r.Duration != nil || len(h.tool.ran()) != 3 {
			t.Errorf("%s, and again: %s", first.raw, r.raw)
		}
	}
	// A refused call is not stored, and a failed one is.
	refused := `{"tool_id":"web.search","call_id":"c-2","input":{}}`
	if r := h.call(refused); r.status != 422 {
		t.Errorf("%s", r.raw)
	}
	if r := h.call(strings.Replace(refused, "{}", `{"query":"x"}`, 1)); r.status != 200 || !*r.Success {
		t.Errorf("%s", r.raw)
	}
	h.tool.gives(fails(refusal.New(refusal.ToolFailed, "It is so.")))
	failed := `{"tool_id":"callgate.data","call_id":"c-3"}`
	a := h.call(failed)
	h.tool.gives(value(`1`))
	b := h.call(failed)
	a.raw, _, _ = strings.Cut(a.raw, `"duration"`)
	if *b.Success || !strings.HasPrefix(b.raw, a.raw) || b.Error.Code != "tool_failed" {
		t.Errorf("%s and then %s", a.raw, b.raw)
	}
	// Another project's are others.
	h.tool.gives(value(`1`))
	if r := h.call(search, "Callgate-Project", "beta"); r.code() != "project_mismatch" {
		t.Errorf("%s", r.raw)
	}
}

// TestOXP27Duration: it is of milliseconds.
func TestOXP27Duration(t *testing.T) {
	h := open(t, nil)
	const least = 20 * time.Millisecond
	h.tool.gives(func(tool.Call) (tool.Result, error) {
		time.Sleep(least)
		return tool.Result{Body: []byte("1"), JSON: true}, nil
	})
	start := time.Now()
	r := h.call(`{"tool_id":"callgate.data"}`)
	if most := float64(time.Since(start).Microseconds()) / 1000; r.Duration == nil || *r.Duration < 20 || *r.Duration > most {
		t.Errorf("at most %v: %s", most, r.raw)
	}
}

// TestOXP26While: while a call runs, its id starts no second one, and says so.
func TestOXP26While(t *testing.T) {
	h := open(t, nil)
	started, end := make(chan struct{}), make(chan struct{})
	h.tool.gives(func(tool.Call) (tool.Result, error) {
		close(started)
		<-end
		return tool.Result{Body: []byte("1"), JSON: true}, nil
	})
	var first reply
	var working sync.WaitGroup
	working.Go(func() { first = h.call(`{"tool_id":"callgate.data","call_id":"c"}`) })
	<-started
	if r := h.call(`{"tool_id":"callgate.data","call_id":"c"}`); r.status != 200 || *r.Success || r.Error.Code != "call_in_progress" || !*r.Error.CanRetry || !strings.Contains(r.raw, `"retryable":true`) {
		t.Errorf("%d %s", r.status, r.raw)
	}
	close(end)
	working.Wait()
	if r := h.call(`{"tool_id":"callgate.data","call_id":"c"}`); !*first.Success || !*r.Success || len(h.tool.ran()) != 1 {
		t.Errorf("%s %s", first.raw, r.raw)
	}
}

// TestOXPPending: a tool that answers later is asked about by the call's id.
func TestOXPPending(t *testing.T) {
	h := openWith(t, strings.Replace(tools, "name: data, effect: read, input_schema: {type: object}, run: {type: demo}", "name: data, effect: read, input_schema: {type: object}, run: {type: demo, timeout: 50ms}", 1), nil)
	h.tool.gives(func(tool.Call) (tool.Result, error) {
		return tool.Result{Pending: true, Until: time.Now().Add(time.Hour)}, nil
	})
	body := `{"tool_id":"callgate.data","call_id":"c"}`
	r := h.call(body)
	if r.status != 200 || *r.Success || r.Error.Code != "call_in_progress" || !*r.Error.CanRetry || r.Error.After == 0 {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	own := h.call(`{"tool_id":"callgate.data"}`)
	if own.status != 200 || *own.Error.CanRetry || own.CallID == "" {
		t.Errorf("without an id: %s", own.raw)
	}
	ours := `{"tool_id":"callgate.data","call_id":"` + own.CallID + `"}`
	if r := h.call(ours); r.status != 200 || *r.Success || r.Error.Code != "call_in_progress" || r.CallID != own.CallID {
		t.Errorf("by our id: %s", r.raw)
	}
	id := r.header.Get("Callgate-Call-Id")
	if err := h.Executor.Complete(context.Background(), calls.CallbackMessage{CallID: id, ID: id, Group: id, Digest: "d"}, calls.CallbackResult{Output: tool.Result{Body: []byte(`[2]`), JSON: true}}); err != nil {
		t.Fatal(err)
	}
	if r := h.call(body); r.status != 200 || !*r.Success || string(r.Value) != "[2]" || len(h.tool.ran()) != 2 {
		t.Errorf("then: %s", r.raw)
	}
	if err := h.Executor.Complete(context.Background(), calls.CallbackMessage{CallID: own.CallID, ID: own.CallID, Group: own.CallID, Digest: "d"}, calls.CallbackResult{Output: tool.Result{Body: []byte(`[3]`), JSON: true}}); err != nil {
		t.Fatal(err)
	}
	if r := h.call(ours); r.status != 200 || !*r.Success || string(r.Value) != "[3]" || r.CallID != own.CallID || len(h.tool.ran()) != 2 {
		t.Errorf("then, by our id: %s", r.raw)
	}
	if r := h.call(strings.Replace(ours, "callgate.data", "lone.null", 1)); r.status != 400 || r.code() != "idempotency_conflict" || len(h.tool.ran()) != 2 {
		t.Errorf("another call by our id: %s", r.raw)
	}
}

// TestOXP18And19Challenges: the request of an authorization is passed on, with a place of
// ours to ask how it stands.
func TestOXP18And19Challenges(t *testing.T) {
	h := open(t, nil)
	challenges := corpora.OpenAPI(t, "oxp", "openapi-auth-challenge.json")
	h.tool.gives(func(tool.Call) (tool.Result, error) {
		return tool.Result{Challenges: []tool.Challenge{
			{ID: "google", URL: "https://accounts.example.com/o?s=1", CheckURL: "https://tools.example.com/c/1"}, {ID: "other", URL: "https://other.example.com/"},
		}}, refusal.New(refusal.ToolFailed, "A person has to authorize it.")
	})
	body := `{"tool_id":"web.search","call_id":"c","input":{"query":"x"}}`
	first := h.call(body)
	id := first.header.Get("Callgate-Call-Id")
	want := []string{`{"id":"google","url":"https://accounts.example.com/o?s=1","check_url":"https://gate.example/tools/authorizations/` + id + `/0"}`, `{"id":"other","url":"https://other.example.com/"}`}
	for round, r := range []reply{first, h.call(body)} {
		if r.status != 400 || r.code() != "tool_failed" || len(r.Missing.Authorization) != 2 || strings.Contains(r.Message, "example.com") {
			t.Fatalf("round %d: %d %s", round, r.status, r.raw)
		}
		for i, c := range r.Missing.Authorization {
			if string(c) != want[i] {
				t.Errorf("round %d: %s", round, c)
			}
			if err := challenges.Check("ToolAuthorizationChallenge", c); err != nil {
				t.Error(err)
			}
		}
	}
	if n := len(h.tool.ran()); n != 1 {
		t.Errorf("run %d times", n)
	}
	for _, status := range []string{"pending", "completed", "failed"} {
		h.tool.status = func() (string, error) { return status, nil }
		r := h.ask(http.MethodGet, "/tools/authorizations/"+id+"/0", "")
		if r.status != 200 || r.raw != `{"status":"`+status+"\"}\n" {
			t.Errorf("%d %s", r.status, r.raw)
		}
		if err := challenges.Check("AuthorizationChallengeCheckResponse", []byte(r.raw)); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"demo https://tools.example.com/c/1", "demo https://tools.example.com/c/1", "demo https://tools.example.com/c/1"}; !slices.Equal(h.tool.requests, want) {
		t.Errorf("asked %q", h.tool.requests)
	}
	h.tool.status = func() (string, error) { panic("broken") }
	if r := h.ask(http.MethodGet, "/tools/authorizations/"+id+"/0", ""); r.status != 400 || r.code() != "internal" || strings.Contains(r.raw, "broken") {
		t.Errorf("%d %s", r.status, r.raw)
	}
	questions := len(h.tool.requests)
	for _, path := range []string{id + "/1", id + "/2", id + "/-1", id + "/00", id + "/+0", id + "/x", "call_other/0", id + "/0/"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tools/authorizations/"+path, nil))
		if w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	h.Executor.Kernel.Quarantine(map[string]bool{"web.search": true})
	if r := h.ask(http.MethodGet, "/tools/authorizations/"+id+"/0", ""); r.status != 400 || r.code() != "tool_quarantined" {
		t.Errorf("%d %s", r.status, r.raw)
	}
	if len(h.tool.requests) != questions {
		t.Errorf("asked %q", h.tool.requests[questions:])
	}
	// Once it is authorized, it is another call.
	h.Executor.Kernel.Quarantine(nil)
	h.tool.gives(value(`{}`))
	if r := h.call(strings.Replace(body, `"c"`, `"c-2"`, 1)); r.status != 200 || !*r.Success {
		t.Errorf("%s", r.raw)
	}
}

// TestOXP41WithoutIdentity: where nobody is asked who they are, what they say of it is
// not looked at.
func TestOXP41WithoutIdentity(t *testing.T) {
	h := open(t, nil)
	for _, header := range []string{"Bearer x", "Basic eDp5", "nonsense", ""} {
		if r := h.call(`{"tool_id":"callgate.data"}`, "Authorization", header, "OXP-API-Key", "x"); r.status != 200 {
			t.Errorf("%q: %d %s", header, r.status, r.raw)
		}
		if r := h.ask(http.MethodGet, "/tools", "", "Authorization", header); r.status != 200 {
			t.Errorf("%q: %d %s", header, r.status, r.raw)
		}
	}
}

// TestOXP31And40Identity: who asks is asked for where the configuration says so.
func TestOXP31And40Identity(t *testing.T) {
	h := open(t, func(s *gateway.Config, _ *calls.Deps) { s.Identity = keeper{"good": "One", "spy": "Spy"} })
	for _, headers := range [][]string{nil, {"Authorization", "Bearer bad"}, {"Authorization", "Basic good"}, {"Authorization", "good"}, {"Authorization", ""}, {"OXP-API-Key", "good"}} {
		for _, path := range []string{"/tools/call", "/tools", "/tools/authorizations/call_1/0"} {
			method := http.MethodGet
			if path == "/tools/call" {
				method = http.MethodPost
			}
			r := h.ask(method, path, search, append([]string{"Content-Type", "application/json"}, headers...)...)
			if r.status != 401 || r.code() != "unauthenticated" || r.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %v: %d %s", path, headers, r.status, r.raw)
			}
		}
	}
	if n := len(h.tool.ran()); n != 0 {
		t.Errorf("%d were run", n)
	}
	h.tool.gives(func(tool.Call) (tool.Result, error) {
		return tool.Result{Challenges: []tool.Challenge{{ID: "a", URL: "https://a.example.com/", CheckURL: "https://tools.example.com/c"}}}, refusal.New(refusal.ToolFailed, "m")
	})
	h.tool.status = func() (string, error) { return "pending", nil }
	r := h.call(search, "Authorization", "Bearer good")
	check := "/tools/authorizations/" + r.header.Get("Callgate-Call-Id") + "/0"
	if r := h.ask(http.MethodGet, check, "", "Authorization", "Bearer good"); r.status != 200 {
		t.Errorf("the own: %d %s", r.status, r.raw)
	}
	if r := h.ask(http.MethodGet, check, "", "Authorization", "Bearer spy"); r.status != 404 {
		t.Errorf("another's: %d %s", r.status, r.raw)
	}
	if r := h.call(search, "Authorization", "Bearer spy"); r.status != 400 || len(h.tool.ran()) != 2 {
		t.Errorf("one id of two callers: %s", r.raw)
	}
}

// keeper knows credentials.
type keeper map[string]string

func (k keeper) Authenticate(credential string) *identity.Principal {
	name, ok := k[credential]
	if !ok {
		return nil
	}
	return &identity.Principal{Name: name, Agents: []string{"Analyst"}, Workspace: "acme", Projects: []string{"alpha"}}
}

// TestOXPHeaders: what a header says and the body too must be the same.
func TestOXPHeaders(t *testing.T) {
	h := open(t, nil)
	body := `{"tool_id":"callgate.data","trace_id":"t","context":{"user_id":"u"}}`
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Callgate-User", "u", "Callgate-Id", "t"}, 200}, {[]string{"Callgate-User", "other"}, 400}, {[]string{"Callgate-Id", "other"}, 400},
	} {
		if r := h.call(body, c.headers...); r.status != c.status {
			t.Errorf("%v: %d %s", c.headers, r.status, r.raw)
		}
	}
}

package report_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/faces/acpreport"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

func tools(t *testing.T) *registry.Registry {
	t.Helper()
	var r document.Report
	var all []registry.Tool
	for _, e := range toolfile.Read(&r, "acp.yaml", toolimport.ACP()) {
		all = append(all, e.Definition)
	}
	for name, schema := range map[string]string{
		"web.search": `{"type":"object","required":["query"],"properties":{"lang":{"type":"string"},"query":{"type":"string"}}}`,
		"pay":        `{"type":"object","required":["card","to"],"properties":{"card":{"type":"string","x-secret":true},"to":{"type":"string"}}}`,
		"copy":       `{"type":"object","properties":{"files":{"type":"array","items":{"type":"string"},"x-boundary":"path"},"key":{"type":"string","x-boundary":"path","x-secret":true}}}`,
		"now":        `{"type":"object","properties":{"utc":{"type":"boolean"}}}`,
	} {
		all = append(all, registry.Tool{Name: name, Kind: "other", InputSchema: json.RawMessage(schema), Run: tool.Run{Type: "client"}})
	}
	built, err := registry.New(all)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

func entry(t *testing.T, name string) *registry.Entry {
	t.Helper()
	found, ok := tools(t).Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	return found
}

// check holds a tool call against the schema, and returns it as JSON.
func check(t *testing.T, title string, d wire.ToolDetails) string {
	t.Helper()
	raw, err := json.Marshal(wire.SessionNotification{SessionID: "s", Update: wire.ToolCall{ToolCallID: "t", Title: title, ToolDetails: d}})
	if err != nil {
		t.Fatal(err)
	}
	if err := corpora.Definitions(t, "acp", "v1.schema.json").Check("SessionNotification", raw); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
	if _, err := wire.Read[wire.SessionNotification](raw); err != nil {
		t.Errorf("%s: %v", raw, err)
	}
	return string(raw)
}

// TestACP55RawInput and its neighbours: a call shows its tool, its main argument and its files, and
// no secret (ACP-41, ACP-53 and ACP-54).
func TestACP55RawInput(t *testing.T) {
	for _, c := range []struct{ tool, arguments, title, details string }{
		{"acp.fs.read", `{"path":"/p/a.go","line":7}`, "Read /p/a.go", `"name":"acp.fs.read","kind":"read","locations":[{"path":"/p/a.go","line":7}],"rawInput":{"path":"/p/a.go","line":7}`},
		{"acp.fs.read", `{"path":"a/../b"}`, "Read a/../b", `"kind":"read","locations":[{"path":"/root/b"}]`},
		{"acp.fs.write", `{"path":"b","content":"x\n"}`, "Write b", `"kind":"edit","content":[{"type":"diff","path":"/root/b","newText":"x\n"}],"locations":[{"path":"/root/b"}]`},
		{"acp.terminal.create", `{"command":"go","args":["test","a b",""],"cwd":"/p"}`, `Run go test "a b" ""`, `"kind":"execute","locations":[{"path":"/p"}]`},
		{"web.search", `{"lang":"de","query":"two\nlines \u202e"}`, `web.search: two lines \u202e`, `"name":"web.search","kind":"other","rawInput":`},
		{"pay", `{"card":"4111","to":"Ada"}`, "pay: Ada", `"rawInput":{"card":"[redacted]","to":"Ada"}`},
		{"copy", `{"files":["/p/a","b"],"key":"/p/secret"}`, "copy: /p/a", `"locations":[{"path":"/p/a"},{"path":"/root/b"}],"rawInput":{"files":["/p/a","b"],"key":"[redacted]"}`},
		{"now", `{"utc":true}`, "now", `"rawInput":{"utc":true}`},
	} {
		title, d := report.Describe(entry(t, c.tool), json.RawMessage(c.arguments), []string{"/root"})
		if title != c.title {
			t.Errorf("%s %s has the title %q; expected %q", c.tool, c.arguments, title, c.title)
		}
		if got := check(t, title, d); !strings.Contains(got, c.details) || strings.Contains(got, "4111") || strings.Contains(got, "secret\"") {
			t.Errorf("%s %s is %s; expected %s", c.tool, c.arguments, got, c.details)
		}
	}
}

// TestTitles: a title is one short line, whatever the argument.
func TestTitles(t *testing.T) {
	for _, text := range []string{strings.Repeat("ä", 5000), strings.Repeat("x", 3199) + "ä" + strings.Repeat("y", 100), strings.Repeat(" ", 4000)} {
		arguments, err := json.Marshal(map[string]string{"query": text})
		if err != nil {
			t.Fatal(err)
		}
		title, d := report.Describe(entry(t, "web.search"), arguments, nil)
		if n := len([]rune(title)); n > 201 || !strings.HasPrefix(title, "web.search:") {
			t.Errorf("a title of %d characters: %q", n, title)
		}
		check(t, title, d)
	}
	title, d := report.Unknown("no\u200bsuch\ntool")
	if title != `no\u200bsuch tool` {
		t.Errorf("%q", title)
	}
	if check(t, title, d); d.Name != "" {
		t.Errorf("the name %q", d.Name)
	}
	if _, d = report.Unknown("web.find"); d.Name != "web.find" || d.Kind != wire.KindOther {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"", " \n"} {
		if title, _ := report.Unknown(name); title == "" {
			t.Errorf("%q has no title", name)
		}
	}
}

// TestWithoutRoots: a relative path is no location where nothing says where it starts.
func TestWithoutRoots(t *testing.T) {
	_, d := report.Describe(entry(t, "acp.fs.write"), json.RawMessage(`{"path":"b","content":""}`), nil)
	if len(d.Locations) > 0 || len(d.Content) > 0 {
		t.Errorf("%+v", d)
	}
}

// TestACP56Refusals: a refused call has failed, with the reason as its text; a result is the text
// that the tool gave.
func TestACP56Refusals(t *testing.T) {
	refused, err := wrapper.Refusal(nil, refusal.New(refusal.PermissionDenied, "Not \u202e allowed."))
	if err != nil {
		t.Fatal(err)
	}
	got := check(t, "t", report.Result(entry(t, "now"), refused))
	for _, part := range []string{`"status":"failed"`, `"text":"permission_denied: Not \\u202e allowed."`, `"rawOutput":{"tool":null,"output":{"error":`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s; expected %s", got, part)
		}
	}
	for output, text := range map[string]string{
		`{"content":"a\nb"}`: `"text":"a\nb"`, `"x"`: `"text":"x"`, `{"output":"o","truncated":false}`: `"text":"o"`,
		`{"content":"a","more":1}`: `"text":"{\"content\":\"a\",\"more\":1}"`, `{"content":7}`: `"text":"{\"content\":7}"`, `[1]`: `"text":"{\"value\":[1]}"`,
	} {
		r, err := wrapper.Result("now", json.RawMessage(output))
		if err != nil {
			t.Fatal(err)
		}
		got := check(t, "t", report.Result(entry(t, "now"), r))
		if !strings.Contains(got, text) || !strings.Contains(got, `"status":"completed"`) {
			t.Errorf("%s is %s; expected %s", output, got, text)
		}
	}
	written, err := wrapper.Result("acp.fs.write", json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := report.Result(entry(t, "acp.fs.write"), written); d.Content != nil || d.Status != wire.Completed {
		t.Errorf("the diff of a file is replaced by %+v", d)
	}
}

func question(remember time.Duration) approvals.Question {
	return approvals.Question{ID: "a", Digest: "d", Tool: "t", Arguments: json.RawMessage(`{}`), Rules: []string{"edits"}, Remember: remember}
}

// TestACP48Options: a yes that stands is offered only where the rules let it, with its time.
func TestACP48Options(t *testing.T) {
	for remember, always := range map[time.Duration]string{
		0: "", 90 * time.Second: "for 1 min 30 s,", 15 * time.Minute: "for 15 min,", time.Hour: "for 1 h,",
	} {
		options := report.Options(question(remember))
		kinds := []wire.OptionKind{wire.AllowOnce, wire.AllowAlways, wire.RejectOnce, wire.RejectAlways}
		if always == "" {
			kinds = slices.Delete(kinds, 1, 2)
		} else if !strings.Contains(options[1].Name, always) {
			t.Errorf("%s is %q", remember, options[1].Name)
		}
		for i, o := range options {
			if len(options) != len(kinds) || o.Kind != kinds[i] {
				t.Fatalf("%s: %+v; expected %q", remember, options, kinds)
			}
		}
		raw, err := json.Marshal(wire.RequestPermissionRequest{SessionID: "s", ToolCall: wire.ToolCallUpdate{ToolCallID: "t"}, Options: options})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.Read[wire.RequestPermissionRequest](raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestACP47Answers: an answer means the kind of the option that was offered under its id, and
// nothing else lets a call run (ACP-51).
func TestACP47Answers(t *testing.T) {
	selected := func(id string) wire.PermissionOutcome {
		return wire.PermissionOutcome{Outcome: wire.OutcomeSelected, OptionID: id}
	}
	for _, remember := range []time.Duration{0, time.Hour} {
		q := question(remember)
		offered := report.Options(q)
		for _, o := range offered {
			got := report.Ballot(q, offered, selected(o.OptionID))
			if got == nil || got.Digest != q.Digest {
				t.Fatalf("%s: %+v", o.Kind, got)
			}
			yes, stands := strings.HasPrefix(string(o.Kind), "allow"), strings.HasSuffix(string(o.Kind), "always")
			if got.Yes != yes || got.Stands != (stands && !yes) || (got.Remember.For == time.Hour) != (stands && yes) {
				t.Errorf("%s: %+v", o.Kind, got)
			}
		}
		for _, o := range []wire.PermissionOutcome{
			{Outcome: wire.OutcomeCancelled}, {Outcome: wire.OutcomeCancelled, OptionID: "allow"}, {}, selected(""), selected("allow_once"), selected("Allow once"), {Outcome: "approved", OptionID: "allow"},
		} {
			if got := report.Ballot(q, offered, o); got != nil {
				t.Errorf("%+v is %+v", o, got)
			}
		}
	}
	// The kind decides, whatever the id says.
	swapped := []wire.PermissionOption{{OptionID: "allow", Kind: wire.RejectOnce}, {OptionID: "allow-for", Kind: wire.AllowAlways}, {OptionID: "x", Kind: "allow"}}
	if got := report.Ballot(question(0), swapped, selected("allow")); got == nil || got.Yes {
		t.Errorf("%+v", got)
	}
	for _, id := range []string{"allow-for", "x"} {
		if got := report.Ballot(question(0), swapped, selected(id)); got != nil {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// TestWaiting: a call that waits names the page of those who decide.
func TestWaiting(t *testing.T) {
	q := question(0)
	q.Others, q.Hints = []string{"deploys"}, []string{"Look first."}
	for page, part := range map[string]string{"https://ops.example/a": "(deploys); nothing was executed. They decide at https://ops.example/a\nLook first.", "": "executed.\nLook first."} {
		if got := report.Waiting(q, page)[0].Content.Text; !strings.Contains(got, part) {
			t.Errorf("%q; expected %q", got, part)
		}
	}
	if !report.MayAsk(q) || report.MayAsk(approvals.Question{Rules: q.Rules}) || report.MayAsk(approvals.Question{Arguments: q.Arguments}) {
		t.Error("a user is asked what cannot be shown, or is not asked")
	}
}

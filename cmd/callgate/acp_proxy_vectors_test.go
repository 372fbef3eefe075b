package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// byProxy brings calls to the proxy of ACP: an agent asks for a permission for each, by the
// name of its tool and its arguments.
func byProxy(t *testing.T, of vectors) carry {
	requires(t, configs.ACPProxy)
	config, data := unlimited(t, of.config)
	agent := acpAgent(t, acptest.Script{})
	e := &editors{all: map[acpSubject]*opened{}, start: func(s acpSubject) *acptest.Process {
		return startACP(t, append(append([]string{"--config", config}, s.flags()...), append([]string{"--"}, agent...)...)...)
	}}
	sent := 0
	t.Cleanup(func() {
		decisions := 0
		for _, o := range e.all {
			if o != nil {
				_ = o.Stop()
			}
		}
		for _, r := range acpRecords(t, data) {
			if r["event"] != "outcome" {
				decisions++
			}
		}
		if decisions != sent {
			t.Errorf("%d decisions in the logs, want %d", decisions, sent)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		name, arguments, ok := called(t, v)
		if !ok {
			return vectorVerdict{}, false
		}
		sent++ // also of an unknown agent, whose process writes down why it ends
		o, known := e.of(t, v)
		if !known {
			return vectorVerdict{}, false
		}
		return o.permission(t, "call-"+strconv.Itoa(sent), name, arguments), true
	}
}

// permission has the agent ask for a call, and returns what it was told.
func (o *opened) permission(t *testing.T, id, name string, arguments []byte) vectorVerdict {
	t.Helper()
	call := `{"toolCallId":` + quotedName(id) + `,"title":"A call","name":` + quotedName(name) + `,"rawInput":` + string(arguments)
	steps := []acptest.Step{
		{Update: json.RawMessage(call + `,"sessionUpdate":"tool_call"}`)},
		{
			Ask: "session/request_permission",
			Params: json.RawMessage(`{"sessionId":"$session","toolCall":` + call + `},"options":[{"optionId":"always","name":"Always","kind":"allow_always"},` +
				`{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}`),
			Allowed: []acptest.Step{{Update: json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":` + quotedName(id) + `,"status":"completed"}`)}},
			Denied:  []acptest.Step{{Update: json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":` + quotedName(id) + `,"status":"failed"}`)}},
		},
	}
	var answer struct {
		Outcome struct{ Outcome, OptionID string }
		Meta    struct{ Callgate *acpRefusal } `json:"_meta"`
	}
	o.reported(t, steps, &answer)
	refused := answer.Meta.Callgate
	want := "yes"
	if refused != nil {
		want = "no"
	}
	if answer.Outcome.OptionID != want {
		t.Errorf("%s: chosen: %+v, with %+v", name, answer.Outcome, refused)
	}
	return refused.verdict()
}

// reported sends a prompt whose steps ask once, and reads what the agent was told.
func (o *opened) reported(t *testing.T, steps []acptest.Step, answer any) {
	t.Helper()
	dictated, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	before := len(o.Text(o.session))
	if stop := o.Prompt(o.session, string(dictated)); stop != "end_turn" {
		t.Errorf("the turn ends with %s: %s", stop, dictated)
	}
	_, said, _ := strings.Cut(o.Text(o.session)[before:], " ")
	if err := json.Unmarshal([]byte(said), answer); err != nil {
		t.Fatalf("the agent was told %q: %v", said, err)
	}
}

// acpRefusal is a refusal as the faces of ACP show it.
type acpRefusal struct {
	Code       string `json:"code"`
	Stage      string `json:"stage"`
	Violations []struct{ Path string }
}

// verdict is that of a vector; nil is a call that passed.
func (r *acpRefusal) verdict() vectorVerdict {
	if r == nil || r.Stage == "execute" {
		return vectorVerdict{Verdict: "tool_call"}
	}
	h := vectorVerdict{Verdict: "refused", Code: r.Code, Stage: r.Stage}
	if len(r.Violations) > 0 {
		h.Path = r.Violations[0].Path
	}
	return h
}

// acpRecords are the records of the logs of all processes of callgate acp.
func acpRecords(t *testing.T, data string) (all []map[string]any) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(data, "acp", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		all = append(all, verified(t, dir)...)
	}
	return all
}

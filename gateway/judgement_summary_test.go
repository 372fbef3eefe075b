package gateway_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// The summary of a judgement has the names that the configuration knows, and no others.
func TestJudged(t *testing.T) {
	s := state(t, "../configs/callgate.yaml")
	s.Limits = &ratelimit.Limits{Replicas: 1}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
	const now = `{"tool":{"name":"time.now","arguments":{}}}`
	native := func(names ...string) (inputs []gateway.Input) {
		for _, name := range names {
			inputs = append(inputs, gateway.Input{Native: &gateway.NativeCall{Name: name, Arguments: []byte(`{}`)}})
		}
		return inputs
	}
	for name, c := range map[string]struct {
		agent  string
		inputs []gateway.Input
		want   gateway.Summary
	}{
		"a call":          {"Analyst", []gateway.Input{{Completion: []byte(now)}}, gateway.Summary{Agent: "Analyst", Tool: "time.now", Verdict: gateway.VerdictCall}},
		"text":            {"Analyst", []gateway.Input{{Completion: []byte("Noon.")}}, gateway.Summary{Agent: "Analyst", Verdict: gateway.VerdictText}},
		"refused":         {"Intern", native("files.delete"), gateway.Summary{Agent: "Intern", Tool: "files.delete", Verdict: gateway.VerdictRefused, Code: refusal.PermissionDenied}},
		"unknown tool":    {"Analyst", native("ignore.all"), gateway.Summary{Agent: "Analyst", Verdict: gateway.VerdictRefused, Code: refusal.UnknownTool}},
		"unknown agent":   {"Mallory", native("time.now"), gateway.Summary{Verdict: gateway.VerdictRefused, Code: refusal.AgentUnknown}},
		"no call":         {"Analyst", []gateway.Input{{Completion: []byte(`{"tool":`)}}, gateway.Summary{Agent: "Analyst", Verdict: gateway.VerdictRefused, Code: refusal.MalformedJSON}},
		"envelope":        {"Analyst", []gateway.Input{{Completion: []byte(`{"tool":{"name":"time.now","arguments":[]}}`)}}, gateway.Summary{Agent: "Analyst", Tool: "time.now", Verdict: gateway.VerdictRefused, Code: refusal.WrongType}},
		"one of several":  {"Analyst", native("time.now", "files.delete", "time.now"), gateway.Summary{Agent: "Analyst", Tool: "files.delete", Verdict: gateway.VerdictRefused, Code: refusal.PermissionDenied}},
		"several, passed": {"Analyst", native("time.now", "time.now"), gateway.Summary{Agent: "Analyst", Tool: "time.now", Verdict: gateway.VerdictCall}},
	} {
		var judged gateway.Judged
		d := k.Kernel.Judge(t.Context(), gateway.Request{Subject: gateway.Subject{Agent: c.agent}, Inputs: c.inputs, Judged: &judged})
		d.Release()
		if got := judged.Last(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if got := new(gateway.Judged).Last(); got != (gateway.Summary{}) {
		t.Errorf("nothing judged: %+v", got)
	}
}

// Counters get no name that a caller or a model made up, and no agent that the caller may not act
// for.
func TestObservedNames(t *testing.T) {
	for name, c := range map[string]struct {
		credential, agent, tool string
		agentSeen, toolSeen     string
	}{
		"a call":                   {"key", "Analyst", "time.now", "Analyst", "time.now"},
		"a tool that is not there": {"key", "Analyst", "ignore.all", "Analyst", ""},
		"another's agent":          {"key", "Intern", "time.now", "", ""},
		"an agent that is unknown": {"key", "Mallory", "time.now", "", ""},
		"a stranger":               {"wrong", "Analyst", "time.now", "", ""},
		"nobody":                   {"", "Analyst", "ignore.all", "", ""},
		"no credential is asked":   {"none", "Intern", "time.now", "Intern", "time.now"},
		"made up, and none asked":  {"none", "Mallory", "ignore.all", "", ""},
	} {
		_, s, _ := identifying(t, 10)
		if c.credential == "none" {
			s.Identity = nil
		}
		seen := &judgedCounts{agent: "?", tool: "?"}
		k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}, Observer: seen}, Store: store.NewMemory(time.Now)})
		d := k.Kernel.Judge(t.Context(), gateway.Request{
			Credential: c.credential, CallerAddress: "127.0.0.1", Subject: gateway.Subject{Agent: c.agent, Workspace: "acme", Project: "alpha"},
			Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: c.tool, Arguments: []byte(`{}`)}}},
		})
		d.Release()
		if seen.agent != c.agentSeen || seen.tool != c.toolSeen {
			t.Errorf("%s: counted for the agent %q and the tool %q, want %q and %q", name, seen.agent, seen.tool, c.agentSeen, c.toolSeen)
		}
	}
	_, s, _ := identifying(t, 10)
	seen := &judgedCounts{}
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: &journal{}, Observer: seen}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
	request := completion(search)
	request.Credential, request.CallerAddress = "key", "127.0.0.1"
	if o := k.Handle(t.Context(), request, ""); o.Refusal != nil || seen.ended != "Analyst web.search" {
		t.Errorf("the end is counted for %q: %v", seen.ended, o.Refusal)
	}
}

package gateway_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// TestAdmissionHandles: an input of a request that was let in is judged and executed
// as one that was not, and its key holds for both.
func TestAdmissionHandles(t *testing.T) {
	e, j := &engine{}, &journal{}
	k := open(t, e, j)
	a := admit(t, k, gateway.Request{})
	input := func(arguments string) gateway.Input {
		return gateway.Input{Native: &gateway.NativeCall{Name: "web.search", Arguments: []byte(arguments)}}
	}
	for arguments, code := range map[string]refusal.Code{`{"query":"x"}`: "", `{"query":"x","query":"y"}`: refusal.DuplicateKey, `{}`: refusal.MissingArgument} {
		o := k.HandleAdmitted(context.Background(), a, input(arguments), "")
		if (o.Refusal == nil) != (code == "") || o.Refusal != nil && o.Refusal.Code != code || o.Result == nil {
			t.Errorf("%s: %+v", arguments, o)
		}
	}
	first := k.HandleAdmitted(context.Background(), a, input(`{"query":"x"}`), "k")
	second := k.HandleAdmitted(context.Background(), a, input(`{"query":"x"}`), "k")
	other := k.Handle(context.Background(), gateway.Request{Inputs: []gateway.Input{input(`{"query":"x"}`)}}, "k")
	if e.runs.Load() != 2 || second.CallID != first.CallID || other.CallID != first.CallID || string(second.Result) != string(first.Result) {
		t.Errorf("%d runs: %+v, %+v, %+v", e.runs.Load(), first, second, other)
	}
	var anonymous gateway.Admission
	if o := k.HandleAdmitted(context.Background(), &anonymous, input(`{}`), ""); o.Refusal == nil || o.Refusal.Code != refusal.Internal || o.Result == nil {
		t.Errorf("an admission that nobody made: %+v", o)
	}
	if _, err := anonymous.Tool("web.search"); refusedAs(err) != "identity internal" {
		t.Errorf("an admission that nobody made: %v", err)
	}
}

// TestAdmissionTool: one tool is what the list says of it, and nil where the list has
// none.
func TestAdmissionTool(t *testing.T) {
	k := open(t, &engine{}, &journal{})
	for _, agent := range []string{"Analyst", "Intern"} {
		a := admit(t, k, gateway.Request{Subject: gateway.Subject{Agent: agent}})
		list, err := a.Tools()
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]*gateway.Tool{}
		for i := range list {
			listed[list[i].Name] = &list[i]
		}
		for _, name := range []string{"web.search", "payments.refund", "files.delete", "time.now", "nothing", "", "web_search"} {
			tool, err := a.Tool(name)
			if err != nil || (tool == nil) != (listed[name] == nil) || tool != nil && !reflect.DeepEqual(tool, listed[name]) {
				t.Errorf("%s, %q: %+v, %v; listed %+v", agent, name, tool, err, listed[name])
			}
		}
	}
	a := admit(t, k, gateway.Request{})
	k.Kernel.Quarantine(map[string]bool{"web.search": true})
	if tool, err := a.Tool("web.search"); tool != nil || err != nil {
		t.Errorf("a tool in quarantine: %+v, %v", tool, err)
	}
}

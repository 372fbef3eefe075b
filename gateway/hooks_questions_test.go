package gateway_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// TestARedactedCallIsAsked: the tool of a call whose arguments a hook redacts puts a question; the
// caller sends what its model wrote once more, with the answer. The answer reaches the tool of that
// call alone: other arguments, which are redacted to the same, are another call.
func TestARedactedCallIsAsked(t *testing.T) {
	state := "the server's own state"
	var ran []tool.Call
	k, j := kernelHooked(t, redacting, func(_ context.Context, task tool.Call) (tool.Result, error) {
		ran = append(ran, task)
		if task.Answers == nil {
			return tool.Result{Attempts: 1, InputRequired: want(&state, question("a", "form", mail))}, failed()
		}
		return tool.Result{Body: []byte(`{}`), JSON: true, Attempts: 1}, nil
	}, nil)
	call := func(arguments, requestState string) gateway.Request {
		d := &elicit.Dialogue{QuestionKinds: everything, RequestState: requestState}
		if requestState != "" {
			d.Answers = map[string]json.RawMessage{"a": json.RawMessage(mailed)}
		}
		return gateway.Request{Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: "acts", Arguments: []byte(arguments)}, Dialogue: d}}}
	}
	first := handle(k, call(`{"text":"`+token+`"}`, ""), "")
	if first.InputRequest == nil || first.RequestState == "" {
		t.Fatalf("asked: %+v", first)
	}
	if o := handle(k, call(`{"text":"`+token[:39]+`x"}`, first.RequestState), ""); o.Refusal == nil || o.Refusal.Code != refusal.InvalidValue || len(ran) != 1 {
		t.Errorf("another call: %+v", o.Refusal)
	}
	answered := handle(k, call(`{"text":"`+token+`"}`, first.RequestState), "")
	if answered.Refusal != nil || len(ran) != 2 {
		t.Fatalf("answered: %v, executed %d times", answered.Refusal, len(ran))
	}
	if task := ran[1]; string(task.Arguments) != `{"text":"`+gone+`"}` || string(task.Answers["a"]) != mailed || task.State == nil || *task.State != state {
		t.Errorf("executed %s with %q", task.Arguments, task.Answers)
	}
	clean(t, j)
}

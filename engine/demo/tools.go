package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// demo is one built-in tool. It returns a value that is encoded as the result.
// All of them are bounded by the size of their input, not by a clock.
type demo func(ctx context.Context, call tool.Call, given arguments) (any, *refusal.Error)

// Tools are the built-in tools by their names. Any other name echoes its arguments.
type Tools map[string]demo

// New returns the built-in tools.
func New(now func() time.Time) Tools {
	library := newSearchIndex(demoCorpus())
	return Tools{
		"web.search":    library.search,
		"files.read":    readFile,
		"math.evaluate": evaluate,
		"time.now": func(context.Context, tool.Call, arguments) (any, *refusal.Error) {
			return struct {
				Time string `json:"time"`
			}{now().UTC().Format(time.RFC3339)}, nil
		},
	}
}

func echo(_ context.Context, call tool.Call, _ arguments) (any, *refusal.Error) {
	return struct {
		Echo json.RawMessage `json:"echo"`
	}{call.Arguments}, nil
}

// Run runs a built-in tool.
func (t Tools) Run(ctx context.Context, call tool.Call) (tool.Result, *refusal.Error) {
	run := t[call.Tool]
	if run == nil {
		run = echo
	}
	var given arguments
	if json.Unmarshal(call.Arguments, &given) != nil || given == nil {
		return tool.Result{}, refuse.Internal("the arguments are no JSON object, so they were not judged")
	}
	value, refused := run(ctx, call, given)
	if refused != nil {
		if refused.Cause == nil {
			refused = refused.WithCause(fmt.Errorf("the built-in tool %s refused", call.Tool))
		}
		return tool.Result{Attempts: 1}, refused
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return tool.Result{Attempts: 1}, refuse.Internal("the result could not be encoded")
	}
	encoded := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	if int64(len(encoded)) > call.Run.MaxResultBytes {
		return tool.Result{Attempts: 1}, refuse.ResultTooLarge(call)
	}
	return tool.Result{Body: encoded, JSON: true, Attempts: 1}, nil
}

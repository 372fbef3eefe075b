package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// demo is one built-in tool. It returns a value that is encoded as the result.
// All of them are bounded by the size of what they read, not by a clock.
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

// arguments are the members of the judged object, by their exact names. A
// struct would match names without regard to case.
type arguments map[string]json.RawMessage

// text returns a string argument, "" where there is none. The schema that judged
// it is the operator's and may allow other types.
func (a arguments) text(name string) (string, *refusal.Error) {
	raw, ok := a[name]
	if !ok {
		return "", nil
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", refuse.Failed("The argument \"" + name + "\" must be a string; correct it and call again.")
	}
	return *s, nil
}

// integer returns a whole number, clamped to what an int32 holds. 5.0 is whole,
// as it is in JSON Schema.
func (a arguments) integer(name string, otherwise int) (int, *refusal.Error) {
	raw, ok := a[name]
	if !ok {
		return otherwise, nil
	}
	n, ok := whole(raw)
	if !ok {
		return 0, refuse.Failed("The argument \"" + name + "\" must be a whole number; correct it and call again.")
	}
	return n, nil
}

func whole(raw json.RawMessage) (int, bool) {
	f, err := strconv.ParseFloat(string(raw), 64)
	if math.IsInf(f, 0) && err != nil {
		err = nil // out of range is clamped
	}
	if err != nil || f != math.Trunc(f) {
		return 0, false
	}
	return int(min(max(f, math.MinInt32), math.MaxInt32)), true
}

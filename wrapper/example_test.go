package wrapper_test

import (
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// The output of a tool that is an object stands as it is; anything else, and an object with
// a member "error", is wrapped, so that output.error is always Callgate's own.
func ExampleResult() {
	for _, output := range []string{`{"rows":2}`, `[1,2]`, `{"error":"mine"}`} {
		result, err := wrapper.Result("db.query", json.RawMessage(output))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\n", result.Line)
	}
	// Output:
	// {"tool_result":{"tool":"db.query","output":{"rows":2}}}
	// {"tool_result":{"tool":"db.query","output":{"value":[1,2]}}}
	// {"tool_result":{"tool":"db.query","output":{"value":{"error":"mine"}}}}
}

func ExampleRefusal() {
	tool := "db.query"
	refused := refusal.New(refusal.RateLimited, "Too many calls. Send this one again later.")
	refused.RetryAfterMS = 1500
	result, err := wrapper.Refusal(&tool, refused)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", result.Output)
	// Output:
	// {"error":{"code":"rate_limited","stage":"rate","message":"Too many calls. Send this one again later.","retry_after_ms":1500,"retryable":true}}
}

// A line that was stored is taken apart without losing what was refused.
func ExampleRead() {
	result, err := wrapper.Read([]byte(`{"tool_result":{"tool":null,"output":{"error":{"code":"internal","stage":"parse","message":"m","retryable":false}}}}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Refusal.Code, result.Refusal.Status())
	// Output:
	// internal 500
}

func ExampleEscapeText() {
	fmt.Println(wrapper.EscapeText("pay\u200bload \u202egnp.exe"))
	// Output:
	// pay\u200bload \u202egnp.exe
}

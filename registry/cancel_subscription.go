package registry

import (
	"encoding/json"
	"slices"
)

// RunCancelSubscription is the type of the tool by which a model ends a subscription of its
// thread. The gateway runs it itself.
const RunCancelSubscription = "cancel_subscription"

// checkCancelSubscription reports the faults of a tool of the type cancel_subscription: it takes
// the argument tool_call_id, always, and no other.
func checkCancelSubscription(t Tool, report func(string, ...string)) {
	if t.Run.Type != RunCancelSubscription {
		return
	}
	const expected = "expected the one argument tool_call_id, required and of the type string"
	if t.Open {
		report("found open: true; "+expected, "open")
	}
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	// A schema that cannot be read declares nothing; its own faults are reported where it is compiled.
	_ = json.Unmarshal(t.InputSchema, &schema)
	if len(schema.Properties) != 1 || schema.Properties["tool_call_id"].Type != "string" ||
		!slices.Contains(schema.Required, "tool_call_id") {
		report("found other arguments; "+expected, "input_schema")
	}
}

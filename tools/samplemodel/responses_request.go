package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesRequest is what is read of a request of the Responses API.
type responsesRequest struct {
	Model    string           `json:"model"`
	Input    jsontext.Value   `json:"input"`
	Tools    []jsontext.Value `json:"tools"`
	Choice   jsontext.Value   `json:"tool_choice"`
	Parallel *bool            `json:"parallel_tool_calls"`
	Stream   bool             `json:"stream"`

	Instructions jsontext.Value `json:"instructions"`
	Metadata     jsontext.Value `json:"metadata"`
	Text         jsontext.Value `json:"text"`
}

// inputItem is what is read of an item of a request.
type inputItem struct {
	Type    string           `json:"type"`
	ID      string           `json:"id"`
	Role    string           `json:"role"`
	Content jsontext.Value   `json:"content"`
	Call    string           `json:"call_id"`
	Output  jsontext.Value   `json:"output"`
	Status  string           `json:"status"`
	Tools   []jsontext.Value `json:"tools"`
}

// items are those of an input, which may be a string.
func (q *responsesRequest) items() ([]inputItem, bool) {
	if q.Input.Kind() == '"' {
		return []inputItem{{Type: "message", Role: "user", Content: q.Input}}, true
	}
	var all []inputItem
	return all, json.Unmarshal(q.Input, &all) == nil
}

// followItems reads items in order. As the API does, it refuses a call without an output,
// and an output without a call.
func followItems(items []inputItem) (conversation, *failure) {
	var c conversation
	open := map[string]string{} // the type of each call without an output, by its call_id
	within := false             // an answer of several items
	for n, i := range items {
		name := fmt.Sprintf("input[%d]", n)
		call, isOutput := strings.CutSuffix(i.Type, "_output")
		switch {
		case i.Type == "additional_tools", i.Type == "compaction", i.Type == "configuration_update":
			continue
		case i.Type == "message" || i.Type == "" && i.Role != "":
			text, ok := textOf(i.Content)
			if !ok {
				return c, failed(http.StatusBadRequest, name, "found content of another form")
			}
			switch i.Role {
			case "system", "developer":
			case "user":
				within = false
				c.readUserText(text)
			case "assistant":
				if !within {
					c.answered()
				}
				within = true
			default:
				return c, failed(http.StatusBadRequest, name, "found another role; expected user, assistant, system or developer")
			}
		case isOutput && (i.Call != "" || clientRuns(call)):
			id := i.Call
			if id == "" {
				id = i.ID // as an output of local_shell_call names its call
			}
			if kind := open[id]; kind != call && kind != call+"_call" {
				return c, failed(http.StatusBadRequest, name, "No tool call found for this output.")
			}
			delete(open, id)
			within = false
			text, ok := textOf(i.Output)
			if !ok {
				text = string(i.Output)
			}
			results := resultsIn(text, true)
			for n := range results {
				results[n].refused = results[n].refused || i.Status == "failed"
			}
			c.add(results)
		case i.Type == "":
			return c, failed(http.StatusBadRequest, name, "found no item; expected one with a type")
		default:
			if !within {
				c.answered()
			}
			within = true
			if i.Call != "" {
				open[i.Call] = i.Type
			}
		}
	}
	if len(open) > 0 {
		return c, failed(http.StatusBadRequest, "input", "No tool output found for a function call.")
	}
	return c, nil
}

// clientRuns says whether an item of a type is a call that the application runs.
func clientRuns(kind any) bool {
	return slices.Contains([]any{"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
		"computer_call"}, kind)
}

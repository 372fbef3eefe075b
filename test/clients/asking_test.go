package clients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// form asks the user for one member of a type.
func form(message, member, kind string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{member: map[string]any{"type": kind}}, "required": []string{member},
	}}
}

// sampling asks the client's model. The protocol advises against it, and against roots,
// but servers may have them for a year.
func sampling(prompt string, most int64) mcp.InputRequest {
	return &mcp.CreateMessageParams{MaxTokens: most, Messages: []*mcp.SamplingMessage{{Role: "user", Content: text(prompt)}}} //nolint:staticcheck // it is tested for as long as it is there
}

// roots asks where the client works, and nowhere is an answer.
var (
	roots   mcp.InputRequest  = &mcp.ListRootsParams{}                     //nolint:staticcheck // the same
	nowhere mcp.InputResponse = &mcp.ListRootsResult{Roots: []*mcp.Root{}} //nolint:staticcheck // the same
)

// filled is what the user wrote into a form.
func filled(answers mcp.InputResponseMap, name, member string) any {
	if a, ok := answers[name].(*mcp.ElicitResult); ok && a.Action == "accept" {
		return a.Content[member]
	}
	return nil
}

// asks is a tool that puts all of its questions at once, and says something once they
// are answered. It takes no more answers than it has questions, and no state but its
// own: what lies between must not let either pass.
func asks(state string, questions mcp.InputRequestMap, say func(mcp.InputResponseMap) string) mcp.ToolHandler {
	return func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answers := r.Params.InputResponses
		if len(answers) == 0 {
			return &mcp.CallToolResult{InputRequests: questions, RequestState: state}, nil
		}
		for name := range questions {
			if answers[name] == nil || len(answers) != len(questions) {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%d answers to %d questions, and of %s %v", len(answers), len(questions), name, answers[name])}
			}
		}
		if r.Params.RequestState != state {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state is not that of the questions"}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{text(say(answers))}}, nil
	}
}

// rounds asks once more after the first answer.
func rounds(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	answers := r.Params.InputResponses
	switch r.Params.RequestState {
	case "":
		return &mcp.CallToolResult{RequestState: "first", InputRequests: mcp.InputRequestMap{"step1": form("Step 1: What is your name?", "name", "string")}}, nil
	case "first":
		if name := filled(answers, "step1", "name"); name != nil {
			return &mcp.CallToolResult{RequestState: fmt.Sprint("second ", name), InputRequests: mcp.InputRequestMap{"step2": form("Step 2: What is your favorite color?", "color", "string")}}, nil
		}
	case "second Alice":
		if color := filled(answers, "step2", "color"); color != nil {
			return &mcp.CallToolResult{Content: []mcp.Content{text(fmt.Sprintf("Alice likes %v.", color))}}, nil
		}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state and the answers are of no round"}
}

// asksWhomItCan asks only what the request says that somebody can answer.
func asksWhomItCan(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	questions := mcp.InputRequestMap{}
	if c := r.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			questions["name"] = form("What is your name?", "name", "string")
		}
		if c.Sampling != nil { //nolint:staticcheck // the same
			questions["greeting"] = sampling("Generate a greeting", 50)
		}
	}
	if len(questions) == 0 {
		return &mcp.CallToolResult{Content: []mcp.Content{text("There is nobody to ask.")}}, nil
	}
	return asks("", questions, func(mcp.InputResponseMap) string { return "Asked." })(ctx, r)
}

// reports tells how far it is, three times.
func reports(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for done := 0.0; done <= 100; done += 50 {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		time.Sleep(50 * time.Millisecond) // as the suite describes it
	}
	return &mcp.CallToolResult{Content: []mcp.Content{text("Done.")}}, nil
}

// logs logs three messages.
func logs(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, words := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: words}); err != nil { //nolint:staticcheck // it is tested for as long as it is there
			return nil, err
		}
		time.Sleep(50 * time.Millisecond) // as the suite describes it
	}
	return &mcp.CallToolResult{Content: []mcp.Content{text("Done.")}}, nil
}

// replies says what a client answered to the one question of a tool.
func replies(form string) func(mcp.InputResponseMap) string {
	return func(answers mcp.InputResponseMap) string {
		said, err := json.Marshal(answers["asked"])
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf(form, said)
	}
}

// asksAbout is a tool that asks what an argument of its call says.
func asksAbout(argument string, question func(string) mcp.InputRequest, say func(mcp.InputResponseMap) string) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var of map[string]string
		if err := json.Unmarshal(r.Params.Arguments, &of); err != nil {
			return nil, err
		}
		return asks("what was asked: "+of[argument], mcp.InputRequestMap{"asked": question(of[argument])}, say)(ctx, r)
	}
}

// contact asks the user for two members.
func contact(message string) mcp.InputRequest {
	return &mcp.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(`{"type": "object", "properties": {
		"username": {"type": "string", "description": "User's response"},
		"email": {"type": "string", "description": "User's email address"}
	}, "required": ["username", "email"]}`)}
}

// fields asks the user for members of a schema.
func fields(schema string) mcp.ToolHandler {
	question := &mcp.ElicitParams{Mode: "form", Message: "Please fill this in", RequestedSchema: json.RawMessage(schema)}
	return asks("what was asked: a form", mcp.InputRequestMap{"asked": question}, replies("Elicitation completed: %s"))
}

// defaults are fields of every type with a default, choices those of every kind that
// are chosen.
const (
	defaults = `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}
	}}`
	choices = `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}]}}
	}}`
)

// asking are the tools of the scenarios that are about more than a call and its result.
var asking = []fixture{
	{"test_tool_with_progress", "Tells how far it is.", "", reports},
	{"test_tool_with_logging", "Logs what it does.", "", logs},
	{"test_input_required_result_elicitation", "Asks for a name.", "",
		asks("", mcp.InputRequestMap{"user_name": form("What is your name?", "name", "string")}, func(answers mcp.InputResponseMap) string {
			return fmt.Sprintf("Hello, %v!", filled(answers, "user_name", "name"))
		})},
	{"test_input_required_result_sampling", "Asks the client's model.", "",
		asks("", mcp.InputRequestMap{"capital_question": sampling("What is the capital of France?", 100)}, func(answers mcp.InputResponseMap) string {
			said, err := json.Marshal(answers["capital_question"])
			return fmt.Sprintf("%s %v", said, err)
		})},
	{"test_input_required_result_list_roots", "Asks where the client works.", "",
		asks("", mcp.InputRequestMap{"client_roots": roots}, func(answers mcp.InputResponseMap) string {
			said, err := json.Marshal(answers["client_roots"])
			return fmt.Sprintf("%s %v", said, err)
		})},
	{"test_input_required_result_request_state", "Asks, and wants its state back.", "",
		asks("what was asked: confirm", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")}, func(mcp.InputResponseMap) string { return "state-ok" })},
	{"test_input_required_result_multiple_inputs", "Asks for three things at once.", "",
		asks("what was asked: three things", mcp.InputRequestMap{
			"user_name": form("What is your name?", "name", "string"), "greeting": sampling("Generate a greeting", 50), "client_roots": roots,
		}, func(mcp.InputResponseMap) string { return "All was answered." })},
	{"test_input_required_result_multi_round", "Asks twice, one after the other.", "", rounds},
	{"test_input_required_result_tampered_state", "Asks, and takes no other state.", "",
		asks("what was asked: ok", mcp.InputRequestMap{"confirm": form("Please confirm", "ok", "boolean")}, func(mcp.InputResponseMap) string { return "Taken." })},
	{"test_input_required_result_capabilities", "Asks what somebody can answer.", "", asksWhomItCan},
	// Those of 2025-11-25 ask in the middle of a call, as far as its client sees.
	{"test_elicitation", "Asks the user.", `{"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}`,
		asksAbout("message", contact, replies("User response: %s"))},
	{"test_sampling", "Asks the client's model.", `{"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}`,
		asksAbout("prompt", func(prompt string) mcp.InputRequest { return sampling(prompt, 100) }, replies("LLM response: %s"))},
	{"test_elicitation_sep1034_defaults", "Asks for members that have defaults.", "", fields(defaults)},
	{"test_elicitation_sep1330_enums", "Asks for members that are chosen.", "", fields(choices)},
}

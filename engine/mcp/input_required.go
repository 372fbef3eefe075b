package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxQuestions     = 16
	maxQuestionName  = 128      // bytes
	maxState         = 16 << 10 // bytes
	maxInputRequired = 32 << 10 // bytes of all questions and the state
)

// capabilitiesFor returns the client capabilities of one request: its caller can answer
// questions of some kinds.
func capabilitiesFor(asks []string) map[string]any {
	all, elicitation := map[string]any{}, map[string]any{}
	for _, kind := range asks {
		switch kind {
		case tool.QuestionForm, tool.QuestionURL:
			elicitation[kind] = struct{}{}
			all["elicitation"] = elicitation
		case tool.QuestionSampling, tool.QuestionRoots:
			all[kind] = struct{}{}
		}
	}
	return all
}

// encodeAnswers writes the answers, byte for byte as they were validated, and the state for a
// tool that has asked. They are members that follow another one.
func encodeAnswers(call tool.Call) ([]byte, error) {
	var b bytes.Buffer
	if len(call.Answers) > 0 {
		before := `,"` + wire.ParamResponses + `":{`
		for _, name := range slices.Sorted(maps.Keys(call.Answers)) {
			if err := checkStrict(call.Answers[name]); err != nil {
				return nil, refuse.Reason("an answer is not strict JSON")
			}
			b.WriteString(before)
			b.Write(quoteJSON(name))
			b.WriteByte(':')
			b.Write(call.Answers[name])
			before = ","
		}
		b.WriteByte('}')
	}
	if call.State != nil {
		b.WriteString(`,"` + wire.ParamState + `":`)
		b.Write(quoteJSON(*call.State))
	}
	return b.Bytes(), nil
}

// quoteJSON writes a text as JSON.
func quoteJSON(s string) []byte {
	b, _ := json.Marshal(s) // every string can be
	return b
}

// readInputRequired reads a result that asks for input, and returns it with the refusal of
// the call. The questions are of the kinds that were offered; their parameters are not
// validated here. A state without questions is from a server that wants to be called again.
func readInputRequired(call tool.Call, members map[string]json.RawMessage) (*tool.InputRequired, *refusal.Error) {
	if !isOnlyInputRequired(members) {
		return nil, refuse.InvalidResult(call, "its result asks for more, and is one as well")
	}
	requested, size := &tool.InputRequired{}, 0
	if state := members[wire.ParamState]; state != nil {
		requested.State = new(string)
		if !optionalString(state, requested.State) || len(*requested.State) > maxState {
			return nil, refuse.InvalidResult(call, "it asks for more with a state that cannot be kept")
		}
		size += len(*requested.State)
	}
	requests := members[wire.MemberRequests]
	all, ok := rawjson.Map(requests)
	switch {
	case requests != nil && !ok, requests == nil && requested.State == nil:
		return nil, refuse.InvalidResult(call, "it asks for more, and does not say what")
	case len(all) == 0 && requested.State == nil:
		return nil, unsupported(call, "it asks nothing, and wants to be called again")
	case len(all) > maxQuestions:
		return nil, refuse.InvalidResult(call, fmt.Sprintf("it asks more than %d questions", maxQuestions))
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		q, ok := readQuestion(name, all[name])
		switch {
		case !ok:
			return nil, refuse.InvalidResult(call, "it asks a question that cannot be read")
		case q.Kind == "" || !slices.Contains(call.QuestionKinds, q.Kind):
			return nil, unsupported(call, "it asks a question that it was not offered to ask")
		}
		size += len(q.Name) + len(q.Method) + len(q.Params)
		requested.Questions = append(requested.Questions, q)
	}
	if size > maxInputRequired {
		return nil, refuse.InvalidResult(call, fmt.Sprintf("it asks for more with more than %d bytes", maxInputRequired))
	}
	return requested, refuse.Failed(
		"The tool asks for input before it continues, which only the application that sent this call can give; continue without it.").
		WithCause(fmt.Errorf("%s: it asks for input; questions: %d", call.Tool, len(all)))
}

// isOnlyInputRequired reports whether a result that asks for input has nothing of a complete
// result.
func isOnlyInputRequired(members map[string]json.RawMessage) bool {
	content, list := array(members["content"])
	failed := members["isError"]
	return (members["content"] == nil || list && len(content) == 0) &&
		members["structuredContent"] == nil && (failed == nil || string(failed) == "false")
}

// readQuestion reads one question. Its kind is empty if the method or the mode is unknown. It is passed on
// as it is, so that null is not taken for absent here: its reader may not do so.
func readQuestion(name string, b json.RawMessage) (tool.Question, bool) {
	members, ok := rawjson.Map(b)
	q := tool.Question{Name: name, Params: json.RawMessage("{}")}
	expected := 1
	if params, there := members["params"]; there {
		q.Params = params
		expected++
	}
	params, isObject := rawjson.Map(q.Params)
	var mode string
	if !ok || !isObject || len(members) != expected || !optionalString(members["method"], &q.Method) || q.Method == "" ||
		name == "" || len(name) > maxQuestionName || strings.ContainsFunc(name, unicode.IsControl) {
		return q, false
	}
	switch q.Method {
	case wire.MethodSampling:
		q.Kind = tool.QuestionSampling
	case wire.MethodRoots:
		q.Kind = tool.QuestionRoots
	case wire.MethodElicitation:
		if !optionalString(params["mode"], &mode) {
			return q, false
		}
		switch _, stated := params["mode"]; {
		case mode == tool.QuestionURL:
			q.Kind = tool.QuestionURL
		case mode == tool.QuestionForm, !stated:
			q.Kind = tool.QuestionForm
		}
	}
	return q, true
}

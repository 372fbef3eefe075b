package mcp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// dialogue returns the notifications and questions that the client accepts while its call
// runs, and the answers in the call; nil if there are none.
func (f *Face) dialogue(r request) (*elicit.Dialogue, *rpcError) {
	d := &elicit.Dialogue{}
	f.subscribeLogs(r, d)
	if fault := r.readProgressToken(d); fault != nil {
		return nil, fault
	}
	if r.modern {
		var fault *rpcError
		capabilities, _ := r.meta()[wire.MetaCapabilities].(map[string]any)
		if d.QuestionKinds, fault = questionKinds(capabilities); fault != nil {
			return nil, fault
		}
		if fault := r.readAnswers(d); fault != nil {
			return nil, fault
		}
	} else if r.elicitor != nil {
		d.QuestionKinds = r.elicitor.kinds
	}
	if d.Progress == nil && d.Log == nil && d.QuestionKinds == nil && d.RequestState == "" && d.Answers == nil {
		return nil, nil
	}
	return d, nil
}

// readProgressToken sends progress to the client if the call has a token and its connection can
// carry notifications. Malformed tokens from clients older than 2026-07-28 are ignored.
func (r request) readProgressToken(d *elicit.Dialogue) *rpcError {
	token, has := r.meta()[wire.MetaProgress]
	switch {
	case !has:
	case !validID(token):
		if r.modern {
			return newError(jsonrpc.CodeParams, "%q must be a string or a whole number, of at most %d bytes.", wire.MetaProgress, maxID)
		}
	case r.notifier != nil:
		r.notifier.progressToken = token
		d.Progress = r.notifier.progress
	}
	return nil
}

// questionKinds are the kinds of questions that a client declares to answer by its
// capabilities. Elicitation without a mode is by forms.
func questionKinds(capabilities map[string]any) (kinds []string, _ *rpcError) {
	wrong := func(names ...string) *rpcError {
		return newError(jsonrpc.CodeParams, "The capability %q must be an object.", strings.Join(names, "."))
	}
	dropNulls(capabilities)
	if value, has := capabilities["elicitation"]; has {
		modes, ok := value.(map[string]any)
		if !ok {
			return nil, wrong("elicitation")
		}
		for _, mode := range []string{tool.QuestionForm, tool.QuestionURL} {
			declared, has := modes[mode]
			if _, ok := declared.(map[string]any); has && !ok {
				return nil, wrong("elicitation", mode)
			}
			if has || mode == tool.QuestionForm && len(modes) == 0 {
				kinds = append(kinds, mode)
			}
		}
	}
	for _, kind := range []string{tool.QuestionSampling, tool.QuestionRoots} {
		declared, has := capabilities[kind]
		if _, ok := declared.(map[string]any); has && !ok {
			return nil, wrong(kind)
		}
		if has {
			kinds = append(kinds, kind)
		}
	}
	return kinds, nil
}

// readAnswers reads the client's answers to earlier questions of a tool. The kernel
// judges whether they fit the questions.
func (r request) readAnswers(d *elicit.Dialogue) *rpcError {
	if value, has := r.params[wire.ParamState]; has {
		most := maxState
		if d.RequestState = stringOf(value); strings.HasPrefix(d.RequestState, approvalStatePrefix) {
			most = maxApprovalState
		}
		if d.RequestState == "" || len(d.RequestState) > most {
			return invalidParams(violation{"/" + wire.ParamState,
				fmt.Sprintf("%q must be a string of 1 to %d bytes, as it was given.", wire.ParamState, most)})
		}
	}
	value, has := r.params[wire.ParamResponses]
	if !has {
		return nil
	}
	object, ok := value.(map[string]any)
	switch {
	case !ok:
		return invalidParams(violation{"/" + wire.ParamResponses, fmt.Sprintf("%q must be an object.", wire.ParamResponses)})
	case len(object) > maxResponses, len(r.inputResponses) > maxResponsesBytes:
		return invalidParams(violation{"/" + wire.ParamResponses,
			fmt.Sprintf("%q must hold at most %d answers, of at most %d bytes together.", wire.ParamResponses, maxResponses,
				maxResponsesBytes)})
	}
	var wrong []violation
	for name, response := range object {
		if _, ok := response.(map[string]any); !ok {
			wrong = append(wrong, violation{"/" + wire.ParamResponses + "/" + refusal.EscapePointer(name),
				fmt.Sprintf("The answer to %s must be an object.", parser.Quote(name))})
		}
	}
	if len(wrong) > 0 {
		return invalidParams(wrong...)
	}
	// They were read strictly; each is kept byte for byte.
	if err := json.Unmarshal(r.inputResponses, &d.Answers); err != nil {
		return refusalError(refusal.From(refusal.Request, err))
	}
	return nil
}

// violation is a fault at a place of the parameters.
type violation struct{ path, message string }

// invalidParams is the error of parameters that no call can have.
func invalidParams(wrong ...violation) *rpcError {
	slices.SortFunc(wrong, func(a, b violation) int { return strings.Compare(a.path, b.path) })
	f := newError(jsonrpc.CodeParams, "%s", wrong[0].message)
	for _, w := range wrong {
		f.refused.Violations = append(f.refused.Violations,
			refusal.Violation{Code: refusal.BadRequest, Path: w.path, Offset: -1, Message: w.message})
	}
	return f
}

// concernsAnswersOnly reports whether a call was refused for nothing but its answers to the
// questions of its tool: the client can correct them, and the model cannot.
func concernsAnswersOnly(refused *refusal.Error) bool {
	for _, v := range refused.Violations {
		if v.Path != "/"+wire.ParamState && v.Path != "/"+wire.ParamResponses && !strings.HasPrefix(v.Path, "/"+wire.ParamResponses+"/") {
			return false
		}
	}
	return len(refused.Violations) > 0
}

// inputRequired is the result of a call whose tool asks for input. The client has declared
// that it can answer; the kernel shows the questions to no other client.
func inputRequired(o calls.Outcome) object {
	result := object{wire.MemberResultType: wire.ResultInputRequired,
		"_meta": object{metaCallID: o.CallID}, wire.ParamState: o.RequestState}
	requests := object{}
	for _, q := range o.InputRequest.Questions {
		request := object{"method": q.Method}
		if len(q.Params) > 0 {
			request["params"] = q.Params
		}
		requests[q.Name] = request
	}
	if len(requests) > 0 {
		result[wire.MemberRequests] = requests
	}
	return result
}

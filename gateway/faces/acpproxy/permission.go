package acpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// permissionArguments are the arguments of acp.permission.KIND.
type permissionArguments struct {
	Title string   `json:"title"`
	Paths []string `json:"paths"`
	Input any      `json:"input,omitempty"`
}

// permission answers session/request_permission: by the policy, and by a person only where the
// policy asks the caller.
func (p *Proxy) permission(ctx context.Context, r wire.RequestPermissionRequest) (any, *jsonrpc.Error) {
	s := p.sessions.get(r.SessionID)
	if s == nil {
		return nil, refusedAgent(unknownSession())
	}
	ctx, leave, refused := s.enter(ctx, wire.MethodRequestPermission)
	if refused != nil {
		if refused.Code == refusal.Canceled {
			return permissionResponse(wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}, refused), nil
		}
		return nil, refusedAgent(refused)
	}
	defer leave()
	title := ""
	if r.ToolCall.Title != nil {
		title = *r.ToolCall.Title
	}
	described, fault := s.described(reportOf(r.ToolCall.ToolCallID, title, r.ToolCall.ToolDetails))
	if fault != nil {
		p.found(s, *fault)
		return nil, refusedAgent(refuseUnjudged(*fault))
	}
	var given []approvedEdit
	outcome := answerPermission(r.Options, true)
	if refused = p.judgePermission(ctx, s, described, r.ToolCall, outcome.Outcome == wire.OutcomeSelected, &given); refused != nil {
		outcome = answerPermission(r.Options, false)
	}
	if ctx.Err() != nil { // the turn was cancelled, or the agent has withdrawn the request
		outcome, refused = wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}, cancelledTurn()
	}
	s.permissionAnswered(described, refused == nil)
	if refused == nil {
		s.approved(given)
	}
	return permissionResponse(outcome, refused), nil
}

// permissionResponse is an answer, whose _meta has the reason of a denial.
func permissionResponse(outcome wire.PermissionOutcome, refused *refusal.Error) wire.RequestPermissionResponse {
	r := wire.RequestPermissionResponse{Outcome: outcome}
	if refused != nil {
		r.Meta, _ = wrapper.Marshal(map[string]any{"callgate": refused}) // text and numbers
	}
	return r
}

// answerPermission chooses an option by its kind: allow_once or reject_once, and never one that
// stands. Without such an option the outcome is cancelled, which no agent may take for a yes.
func answerPermission(options []wire.PermissionOption, allowed bool) wire.PermissionOutcome {
	kind := wire.RejectOnce
	if allowed {
		kind = wire.AllowOnce
	}
	for _, o := range options {
		if o.Kind == kind {
			return wire.PermissionOutcome{Outcome: wire.OutcomeSelected, OptionID: o.OptionID}
		}
	}
	return wire.PermissionOutcome{Outcome: wire.OutcomeCancelled}
}

// judgePermission judges a tool call that the agent will run itself, and hands it over. It returns
// nil where it may run. One whose agent cannot be told that it may is called off, and nobody is asked.
func (p *Proxy) judgePermission(ctx context.Context, s *session, described attribution.Report, update wire.ToolCallUpdate, offered bool,
	given *[]approvedEdit) (refused *refusal.Error) {
	defer safe.Catch(func(panicked error) { refused = refusal.From(refusal.Execute, panicked) })
	if p.options.Executor == nil {
		return refusal.From(refusal.Identity, errors.New("there is no executor"))
	}
	if described.Crowded {
		return refusal.New(refusal.RequestTooLarge, "This tool call is too large to be judged. Nothing was allowed.")
	}
	if err := checkPaths("/toolCall", described.Paths()...); err != nil {
		return refusal.New(refusal.BadRequest, fmt.Sprintf("This tool call cannot be judged: %v. Nothing was allowed.", err))
	}
	admission, err := p.admit(ctx, s)
	if err != nil {
		return refusal.From(refusal.Identity, err)
	}
	native, err := permissionCall(admission, described)
	if err != nil {
		return refusal.From(refusal.Parse, err)
	}
	d := admission.Judge(ctx, gateway.ModeEnforce, gateway.Input{Native: native, Dialogue: answersRules()})
	if !offered {
		unoffered := refusal.New(refusal.PermissionDenied,
			"The policy allows this once, and the agent offers no such option. Nothing was allowed.")
		if refused = p.options.Executor.CallOff(d, gateway.ModeEnforce, unoffered)[0].Refusal; refused == unoffered {
			p.options.Log.Warn("the agent offers no option to allow an allowed tool call once; the gateway denied it",
				"kind", string(described.Kind))
		}
		return refused
	}
	shown := p.shownCall(s, described, update)
	ask := p.asker(s, always(shown))
	p.options.Executor.AwaitApproval(ctx, calls.Wait{Caller: func(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
		answer := ask(ctx, q)
		if answer.Ballot != nil && answer.Ballot.Yes && !q.Secret {
			*given = append(*given, approvedEdits(shown.Content, q.Rules, answer.Ballot.Remember.For)...)
		}
		return answer
	}}, d)
	return p.options.Executor.HandOver(ctx, d)[0].Refusal
}

// standsFor reports whether the judgement of a registered tool of a kind is one of the call: it is of
// that kind, or one of both says none, and the files that it changes are among its arguments.
func standsFor(kind wire.ToolKind, described attribution.Report, input json.RawMessage) bool {
	if described.Changes() {
		return kind == described.Kind && statesAll(input, described.Paths())
	}
	return kind == described.Kind || kind == wire.KindOther || described.Kind == wire.KindOther
}

// statesAll reports whether each path is a text of an input: only then was it judged with it.
func statesAll(input json.RawMessage, paths []string) bool {
	missing := map[string]bool{}
	for _, path := range paths {
		missing[path] = true
	}
	return len(missing) == 0 || rawjson.EveryString(input, func(text []byte) bool {
		delete(missing, string(text))
		return true
	}) && len(missing) == 0
}

// permissionCall is the call that stands for a tool call of the agent: of the tool that it names,
// if that is registered and the input its arguments; else of acp.permission.KIND. The names of this
// package are no names of an agent's tools. A permission covers the kind and the changed files that
// the agent states, so a registered tool does not stand for every call that bears its name.
func permissionCall(admission *gateway.Admission, described attribution.Report) (*gateway.NativeCall, error) {
	input := bytes.TrimSpace(described.Input)
	if described.Name != "" && !strings.HasPrefix(described.Name, ownTools) && len(input) > 0 && input[0] == '{' {
		// Also a tool that the agent may not use, whose denial stands for the call.
		if kind, registered := admission.ToolKind(described.Name); registered {
			if !standsFor(wire.ToolKind(kind), described, input) {
				return nil, refusal.New(refusal.PermissionDenied, "The tool call names a registered tool, and is of another kind or changes other files than that tool's arguments say. Nothing was allowed.")
			}
			return &gateway.NativeCall{Name: described.Name, Arguments: input}, nil
		}
	}
	arguments := permissionArguments{Title: described.Title, Paths: append([]string{}, described.Paths()...)}
	if len(input) > 0 {
		arguments.Input = described.Input
	}
	encoded, err := wrapper.Marshal(arguments)
	return &gateway.NativeCall{Name: toolPermission + string(described.Kind), Arguments: encoded}, err
}

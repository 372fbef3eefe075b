package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/elicitation"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// The names of what a client is asked where a call waits for people: a form by which its user
// decides, for rules that callers answer, and the page where approvers decide.
const (
	formName = "approval"
	linkName = "approval_page"
)

// The decisions of a user. A yes that stands is "allow for …", with its time.
const (
	allowOnce      = "allow once"
	allowForPrefix = "allow for "
	deny           = "deny"
)

// approvalAsker asks the client of one call what the call waits for. A client of 2026-07-28 is
// asked by the response, and answers with the same call; an older one is asked in the middle.
type approvalAsker struct {
	face  *Face
	r     request
	input *elicit.Dialogue // of the call; nil if there is none
	kinds []string         // of the questions that the client answers

	replies map[string]json.RawMessage // of a call of 2026-07-28, to what input.Approval asks
	rounds  int                        // how often an older client was asked
	offered string                     // the approval that the response asks for,
	offer   []tool.Question            // and how; empty: it does not
	fault   *refusal.Error             // of the replies, or why the call ends
}

// newApprovalAsker takes the answers to an approval out of the dialogue of a call. The rest is
// the call's own.
func (f *Face) newApprovalAsker(r request, d *elicit.Dialogue) *approvalAsker {
	a := &approvalAsker{face: f, r: r, input: d}
	if d == nil {
		return a
	}
	a.kinds = d.QuestionKinds
	if strings.HasPrefix(d.RequestState, approvalStatePrefix) {
		a.replies = d.Answers
		readApprovalState(d)
	}
	return a
}

// handle makes a call, which waits for people if the policy asks them.
func (a *approvalAsker) handle(ctx context.Context, input gateway.Input, key string) calls.Outcome {
	a.offer, a.fault = nil, nil
	if o, ended := a.declined(ctx, input.Native); ended {
		return o
	}
	o := a.face.options.Executor.HandleAdmittedWaiting(ctx, a.r.admission, input, key, calls.Wait{Caller: a.ask, Park: a.r.pause})
	if o.ApprovalRequest != nil && a.fault != nil && !(a.r.modern && concernsAnswersOnly(a.fault)) {
		return failedOutcome(o, input.Native.Name, a.fault)
	}
	return o
}

// declined takes a no to what an earlier response asked, before the call is judged: by now it may
// wait for nobody, and would run against what its user has decided. A reply of which it cannot be told
// whether it is a no ends the call, too.
func (a *approvalAsker) declined(ctx context.Context, native *gateway.NativeCall) (o calls.Outcome, ended bool) {
	if a.replies[formName] == nil || !elicit.ValidState(a.input.Approval) {
		return o, false
	}
	said, fault := readReply(tool.Question{
		Name: formName, Kind: tool.QuestionForm, Method: wire.MethodElicitation,
		Params: json.RawMessage(`{"mode":"form","message":"Decide.","requestedSchema":{"type":"object","required":["decision"],` +
			`"properties":{"decision":{"type":"string"}}}}`),
	}, a.replies)
	switch {
	case fault != nil:
	case said.isNo():
		var err error
		o, err = a.face.options.Executor.Confirm(ctx, a.r.admission, calls.Confirmation{ID: a.input.Approval, Tool: native.Name}, calls.Wait{})
		if err == nil {
			return o, true
		}
		switch fault = refusal.From(refusal.Approval, err); fault.Code {
		case refusal.NotFound:
			fault = elicit.UnknownState()
		case refusal.ApprovalConflict:
			fault = refusal.At(refusal.Approval, fault.Code, fault.Message)
		}
	case said.Action == accept && said.Content.Decision != allowOnce && !strings.HasPrefix(said.Content.Decision, allowForPrefix):
		fault = invalidReply(refusal.Violation{
			Code: refusal.InvalidValue, Path: "/" + wire.ParamResponses + "/" + formName + "/content/decision", Offset: -1,
			Message: "The decision must be one of those that the form offers.",
		})
	default:
		return o, false
	}
	return failedOutcome(calls.Outcome{CallID: a.input.Approval}, native.Name, fault), true
}

// ask returns what the client says of a call, and how long its request waits.
func (a *approvalAsker) ask(ctx context.Context, q approvals.Question) approvals.CallerAnswer {
	form := a.form(q)
	link := a.link(q, form != nil)
	wait := a.face.options.Executor.Kernel.ApprovalWait()
	switch {
	case form == nil && link == nil:
		return approvals.CallerAnswer{Wait: wait}
	case a.r.modern:
		return a.askByResponse(q, form, link, wait)
	}
	if a.rounds++; a.rounds > maxRounds {
		return approvals.CallerAnswer{}
	}
	question := form
	if form == nil {
		question = link
	}
	trip := a.face.askClient(ctx, a.r, []tool.Question{*question})
	switch {
	case trip.refused != nil:
		a.fault = trip.refused
		return approvals.CallerAnswer{}
	case trip.full:
		return approvals.CallerAnswer{Wait: wait}
	case trip.reason != "":
		return approvals.CallerAnswer{}
	case form == nil:
		if action, _ := actionOf(trip.answers[linkName]); action == accept {
			return approvals.CallerAnswer{Wait: a.face.options.AnswerTimeout}
		}
		return approvals.CallerAnswer{}
	}
	ballot, _ := readBallot(q, *form, trip.answers)
	return approvals.CallerAnswer{Ballot: ballot}
}

// askByResponse takes the replies to what an earlier response asked, for the very approval that
// it named, and puts what is open into the response.
func (a *approvalAsker) askByResponse(q approvals.Question, form, link *tool.Question, wait time.Duration) approvals.CallerAnswer {
	a.offered, a.offer = q.ID, nil
	if a.input.Approval == q.ID && form != nil && a.replies[formName] != nil {
		ballot, fault := readBallot(q, *form, a.replies)
		a.fault = fault
		return approvals.CallerAnswer{Ballot: ballot} // nil: the user has not decided
	}
	within := time.Duration(0)
	if a.input.Approval == q.ID && link != nil && a.replies[linkName] != nil {
		action, fault := actionOf(a.replies[linkName])
		if action != accept {
			a.fault = fault
			return approvals.CallerAnswer{} // the user has not opened the page
		}
		within = wait
	}
	for _, question := range []*tool.Question{form, link} {
		if question != nil {
			a.offer = append(a.offer, *question)
		}
	}
	return approvals.CallerAnswer{Wait: within}
}

// form is the form by which the client's user decides; nil if there is nothing for it to
// decide, or if it cannot be shown what.
func (a *approvalAsker) form(q approvals.Question) *tool.Question {
	if len(q.Rules) == 0 || len(q.Arguments) == 0 || !slices.Contains(a.kinds, tool.QuestionForm) || !a.canName(q.ID) {
		return nil
	}
	var arguments bytes.Buffer
	if json.Compact(&arguments, q.Arguments) != nil {
		return nil
	}
	message := fmt.Sprintf("May %s run? It waits for your decision; nothing was executed.", q.Tool)
	for _, hint := range q.Hints {
		message += "\n" + hint
	}
	params, err := wrapper.Marshal(object{
		"mode": "form", "message": message + "\nArguments: " + arguments.String(),
		"requestedSchema": object{
			"type": "object", "required": []string{"decision"},
			"properties": object{"decision": object{"type": "string", "title": "Decision", "enum": decisions(q)}},
		},
	})
	if err != nil {
		return nil
	}
	read, err := elicitation.Read(formName, tool.QuestionForm, wire.MethodElicitation, params)
	if err != nil { // too long to be shown whole
		return nil
	}
	return &tool.Question{Name: formName, Kind: tool.QuestionForm, Method: wire.MethodElicitation, Params: read.Params()}
}

// link is the page where approvers decide; nil if the call waits for none of them beside the
// form, or there is no page that the client could open. It is the operator's own page, and need
// not be public.
func (a *approvalAsker) link(q approvals.Question, form bool) *tool.Question {
	page := a.face.options.Executor.Kernel.ApprovalURL(q.ID)
	if page == "" || form && len(q.Others) == 0 || !slices.Contains(a.kinds, tool.QuestionURL) || !a.canName(q.ID) {
		return nil
	}
	params, err := wrapper.Marshal(object{
		"mode": "url", "url": page,
		"message": wrapper.EscapeText(fmt.Sprintf("%s needs the approval of a person, who decides on this page; nothing was executed.",
			q.Tool)),
	})
	if err != nil {
		return nil
	}
	return &tool.Question{Name: linkName, Kind: tool.QuestionURL, Method: wire.MethodElicitation, Params: params}
}

// canName reports whether a response can name the approval together with what the call itself
// answers.
func (a *approvalAsker) canName(id string) bool {
	if !a.r.modern {
		return true
	}
	_, ok := approvalState(id, a.input)
	return ok
}

// decisions are what a user can decide.
func decisions(q approvals.Question) []string {
	if q.Remember <= 0 {
		return []string{allowOnce, deny}
	}
	return []string{allowOnce, allowFor(q), deny}
}

// allowFor is a yes that stands, as a user reads it.
func allowFor(q approvals.Question) string { return allowForPrefix + duration.Words(q.Remember, 2) }

// The actions of a user.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// reply is what a user has answered by a form.
type reply struct {
	Action  string
	Content struct{ Decision string }
}

func (r *reply) isNo() bool {
	return r.Action == decline || r.Action == accept && r.Content.Decision == deny
}

// readReply reads what a user has answered by a form. The fault says what is wrong with the answer.
func readReply(form tool.Question, answers map[string]json.RawMessage) (said reply, fault *refusal.Error) {
	read, violations, err := elicit.ReadAnswers(&tool.InputRequired{Questions: []tool.Question{form}}, answers)
	switch {
	case err != nil:
		return said, refusal.From(refusal.Approval, err)
	case len(violations) > 0:
		return said, invalidReply(violations...)
	}
	if err := json.Unmarshal(read.ByName[formName], &said); err != nil {
		return said, refusal.From(refusal.Approval, err)
	}
	return said, nil
}

// readBallot reads what a user has decided by a form. Without a ballot the user has not; the
// fault says what is wrong with the answer.
func readBallot(q approvals.Question, form tool.Question, answers map[string]json.RawMessage) (*approvals.Ballot, *refusal.Error) {
	said, fault := readReply(form, answers)
	switch decision := said.Content.Decision; {
	case fault != nil:
		return nil, fault
	case said.isNo():
		return q.No(), nil
	case said.Action == accept && decision == allowOnce:
		return q.Yes(0), nil
	case said.Action == accept && q.Remember > 0 && decision == allowFor(q):
		return q.Yes(q.Remember), nil
	}
	return nil, nil
}

// actionOf reads what a user did with a page: it opened it, or did not.
func actionOf(answer json.RawMessage) (string, *refusal.Error) {
	value, err := parser.ReadValue(answer, maxDepth)
	members, _ := value.(map[string]any)
	action := stringOf(members["action"])
	if err != nil || !slices.Contains([]string{accept, decline, cancel}, action) {
		return "", invalidReply(refusal.Violation{
			Code: refusal.InvalidValue, Path: "/" + wire.ParamResponses + "/" + linkName + "/action", Offset: -1,
			Message: "The action must be accept, decline or cancel.",
		})
	}
	return action, nil
}

// invalidReply is the refusal of a call for what its client replied.
func invalidReply(violations ...refusal.Violation) *refusal.Error {
	refused := refusal.At(refusal.Approval, violations[0].Code, violations[0].Message+" Nothing was executed.")
	refused.Violations = violations
	return refused
}

// respond is the response to a call that waits for people, where that asks its client; nil
// for others.
func (a *approvalAsker) respond(o calls.Outcome) *response {
	switch {
	case o.ApprovalRequest == nil:
		return nil
	case a.fault != nil && a.r.modern && concernsAnswersOnly(a.fault):
		return &response{fault: answersError(a.fault)}
	case len(a.offer) == 0 || a.offered != o.ApprovalRequest.ID:
		return nil
	}
	state, ok := approvalState(o.ApprovalRequest.ID, a.input)
	if !ok {
		return &response{fault: refusalError(refusal.From(refusal.Approval, errors.New("a state that was short is too long")))}
	}
	o.InputRequest, o.RequestState = &tool.InputRequired{Questions: a.offer}, state
	return &response{result: inputRequired(o), failed: o.Refusal}
}

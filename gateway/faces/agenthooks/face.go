// Package agenthooks is the face for the hooks of coding agents: before an agent runs a tool of its own, its hook asks
// here, and the kernel judges the call as one that the application runs (gateway.ModeEnforce).
//
//	POST /v1/hooks/claude-code
//	POST /v1/hooks/codex
//
// The body is what the agent gives its hook; the events PreToolUse, PermissionRequest and PreSkillShellCommand are judged, PostToolUse
// and PostToolUseFailure are compared with what was judged. The bytes of tool_input are the arguments. They are the agent's,
// which has read the model's call already: a hook proves nothing of what the model wrote.
//
// What passes is answered with {}, no decision, so that the agent's own rules still hold. A refusal is status 200 with a
// denial, because agents run the tool at any other status; others are for callers without a credential, bodies that are too
// long, and what is no hook. Rules that the caller answers are asked in Claude Code; Codex has no such answer.
package agenthooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
)

// Face answers requests. It is safe for concurrent use.
type Face struct {
	executor *calls.Executor
	kept     *verdicts
}

// New returns the face of a kernel.
func New(executor *calls.Executor) *Face { return &Face{executor: executor, kept: newVerdicts()} }

// Mount mounts the routes of the face.
func (f *Face) Mount(d *server.Server) {
	for _, a := range []agent{claudeCode, codex} {
		d.Mount(server.Route{
			Method: http.MethodPost, Path: "/v1/hooks/" + a.path, APIKey: true, AnyScheme: true, Refuse: refuse,
			MaxBody: func() int { return f.executor.Kernel.ParserOptions().MaxBytes + maxResult },
			Serve:   func(c *gin.Context, r server.Request) { f.serve(c, r, a) },
		})
	}
}

// agent is what differs between agents.
type agent struct {
	path string
	asks bool // it has an answer by which it asks its user
	name func(string) gateway.NativeCall
}

var (
	claudeCode = agent{path: "claude-code", asks: true,
		name: func(tool string) gateway.NativeCall { return gateway.NativeCall{Name: tool} }}
	codex = agent{path: "codex", name: func(tool string) gateway.NativeCall {
		// The name of a tool of an MCP server on its model's wire has the server for its namespace.
		if server, name, ok := strings.Cut(strings.TrimPrefix(tool, mcpPrefix), "__"); ok && strings.HasPrefix(tool, mcpPrefix) {
			tool = mcpPrefix + server + "." + name
		}
		return gateway.NativeCall{Name: tool}
	}}
)

const (
	mcpPrefix = "mcp__"
	// maxResult is how much longer a body may be than the arguments of a call: PostToolUse has the result of the tool.
	maxResult = 8 << 20
	// maxReason bounds the reason of a denial, which agents cut at 10,000 characters.
	maxReason = 4 << 10
)

// serve answers the hook of an agent.
func (f *Face) serve(c *gin.Context, received server.Request, a agent) {
	h, err := read(received.Body)
	if err != nil {
		refuseAs(c, h.event, refusal.New(refusal.BadRequest, fmt.Sprintf("The hook's input is not valid: %v.", err)))
		return
	}
	a.asks = a.asks && h.event != preSkillShellCommand // which has no user to ask
	request := received.Request
	request.ID, request.Thread, request.Ancestors, request.Folder, request.AsksCaller = h.toolUseID, h.session, nil, h.cwd, a.asks
	request.Hook = &audit.AgentHook{HookAgent: a.path, HookEvent: h.event, Session: h.session, Prompt: h.prompt,
		PermissionMode: h.permissionMode}
	if h.agentID != "" {
		request.Thread, request.Ancestors = h.agentID, []string{h.session}
	}
	if request.Workspace == "" && request.Project == "" {
		request.Workspace, request.Project = f.executor.Kernel.PlaceOf(h.cwd)
	}
	admission, err := f.executor.Kernel.Admit(c.Request.Context(), request)
	if err != nil {
		refuseAs(c, h.event, refusal.From(refusal.Identity, err))
		return
	}
	native := a.name(h.tool)
	// The name of one server's tool may be the wire name of another's: mcp__a_b__c of the server a_b is that of mcp__a.b__c.
	if name, known := admission.ToolName(h.tool); known && (name == h.tool || native.Name == h.tool) {
		native = gateway.NativeCall{Name: name, Wire: h.tool}
	}
	native.ID, native.Arguments = h.toolUseID, h.input
	of := hooked{face: f, agent: a, hook: h, record: request.Hook, admission: admission, call: native, slot: received.Slot}
	of.digest = sha256.Sum256([]byte(h.tool + "\x00" + string(h.input)))
	answer, refused := of.answer(c.Request.Context())
	if refused != nil {
		refuseAs(c, h.event, refused)
		return
	}
	server.SetHeader(c, server.HeaderCallID, of.callID)
	server.LogRefusal(c, of.refused)
	c.JSON(http.StatusOK, answer)
}

// hooked is a call about which a hook asks.
type hooked struct {
	face      *Face
	agent     agent
	hook      hook
	record    *audit.AgentHook
	admission *gateway.Admission
	call      gateway.NativeCall
	digest    [sha256.Size]byte
	slot      server.Slot

	callID  string
	refused *refusal.Error
}

// answer is the answer to the hook. A refusal is for what cannot be judged.
func (h *hooked) answer(ctx context.Context) (any, *refusal.Error) {
	byID, byCall := h.keys()
	key := byID
	switch {
	case h.hook.event == permissionRequest: // which has no id
		key = byCall
	case h.hook.toolUseID == "":
		return nil, refusal.New(refusal.BadRequest, `The hook's input is not valid: "tool_use_id" is missing.`)
	}
	leave, err := h.face.kept.enter(ctx, key)
	if err != nil {
		return nil, refusal.From(refusal.Request, refusal.AsCanceled(ctx, refusal.Request, err))
	}
	defer leave()
	v, _ := h.face.kept.Get(key)
	if h.hook.event == postToolUse || h.hook.event == postToolUseFailure {
		return h.compare(ctx, v), nil
	}
	if !h.holds(v) {
		v = h.judgeOnce(ctx, v)
		h.face.kept.put(v, key, byCall)
	}
	h.callID, h.refused = v.callID, v.refused
	if h.hook.event == permissionRequest {
		return h.permission(v), nil
	}
	return h.verdict(v), nil
}

// holds reports whether a verdict stands for the call when its hook asks again. A refusal does not: people may have approved
// the call since. Nor does that of a call which has run: agents of some models give two calls one id.
func (h *hooked) holds(v *verdict) bool {
	return v != nil && v.digest == h.digest && v.under == h.under() && !v.ran && v.passed() && (v.question == nil || h.agent.asks) &&
		v.config == h.face.executor.Kernel.Config().Digest && !h.admission.StopsTool(h.call.Name)
}

// under is for whom, and where, the call is judged.
func (h *hooked) under() [sha256.Size]byte {
	of := h.admission.Subject()
	return sha256.Sum256([]byte(strings.Join([]string{h.agent.path, of.Agent, of.Workspace, of.Project, h.hook.agentID, h.hook.cwd},
		"\x00")))
}

// judgeOnce judges the call, unless it stands as it was judged in front of the model. before is the verdict on the call of its id.
func (h *hooked) judgeOnce(ctx context.Context, before *verdict) *verdict {
	given, stands, changed := h.face.executor.TakeGiven(ctx, h.admission, h.call)
	switch {
	case stands:
		return &verdict{digest: h.digest, under: h.under(), config: given.Digest, callID: given.CallID}
	case before != nil && before.digest != h.digest:
		h.record.ChangedAfterVerdict = before.callID
	case changed:
		h.record.ChangedAfterVerdict = given.CallID
	}
	return h.judge(ctx)
}

// keys are the names under which the verdict is kept: that of the call's id, and that of its bytes.
func (h *hooked) keys() (byID, byCall string) {
	of := h.admission.Principal() + "\x00" + h.hook.session + "\x00"
	return of + "id\x00" + h.hook.toolUseID, of + "call\x00" + string(h.digest[:])
}

// judge judges the call, and hands it over where it passes.
func (h *hooked) judge(ctx context.Context) *verdict {
	v := &verdict{digest: h.digest, under: h.under()}
	d := h.admission.Judge(ctx, gateway.ModeEnforce, gateway.Input{Native: &h.call})
	wait := calls.Wait{For: h.face.executor.Kernel.ApprovalWait(), Park: h.slot.Park}
	if h.agent.asks {
		wait.Caller = func(_ context.Context, q approvals.Question) approvals.CallerAnswer {
			if len(q.Rules) == 0 || len(q.Others) > 0 {
				return approvals.CallerAnswer{Wait: wait.For}
			}
			v.question = &q
			return approvals.CallerAnswer{}
		}
	}
	h.face.executor.AwaitApproval(ctx, wait, d)
	o := h.face.executor.HandOver(ctx, d)[0]
	v.config, v.callID, v.refused = d.Digest, o.CallID, o.Refusal
	if v.refused == nil || v.refused.Code != refusal.ApprovalRequired {
		v.question = nil
	}
	return v
}

// verdict is the answer to PreToolUse and PreSkillShellCommand.
func (h *hooked) verdict(v *verdict) any {
	switch {
	case v.question != nil:
		return toolUseAnswer(h.hook.event, "ask",
			strings.Join(append([]string{"Callgate asks you to decide this call."}, v.question.Hints...), " "))
	case v.refused != nil:
		return toolUseAnswer(h.hook.event, "deny", reasonOf(v.refused))
	}
	return struct{}{}
}

// permission is the answer to PermissionRequest. A call that passes, or about which the user is asked, is left to the user,
// whom the agent is about to ask.
func (h *hooked) permission(v *verdict) any {
	if v.refused == nil || v.question != nil {
		return struct{}{}
	}
	return permissionAnswer(reasonOf(v.refused))
}

// compare compares a call that has run with the verdict on it, which is nil where there is none.
func (h *hooked) compare(ctx context.Context, v *verdict) any {
	byID, byCall := h.keys()
	switch {
	case v == nil:
		return h.ran(ctx, refusal.New(refusal.Unjudged, "This call ran, and this gateway has no verdict on it: it was not asked, or was restarted since. Do not rely on what it did, and say that it ran unjudged."))
	case v.digest != h.digest:
		h.record.ChangedAfterVerdict = v.callID
		return h.ran(ctx, refusal.New(refusal.ExecutedDiffers, "This call ran with other arguments than were judged: something changed them afterwards. Do not rely on what it did, and say so."))
	case v.question != nil:
		// The agent has run it, so its user has said yes.
		if _, err := h.face.executor.Desk().Confirm(ctx, h.admission.Principal(), v.question.ID, *v.question.Yes(0)); err != nil {
			return h.ran(ctx, refusal.From(refusal.Approval, err))
		}
		again := h.judge(ctx)
		again.ran = true
		h.face.kept.put(again, byID, byCall)
		h.callID, h.refused = again.callID, again.refused
		if again.refused != nil {
			return blocked(again.refused)
		}
	case v.refused != nil:
		return h.ran(ctx, refusal.New(refusal.Unjudged,
			"This call was refused, and ran all the same. Do not rely on what it did, and say so."))
	default:
		h.callID = v.callID
		h.face.kept.end(v, byID, byCall)
	}
	return struct{}{}
}

// ran records a call that has run as it was not judged.
func (h *hooked) ran(ctx context.Context, refused *refusal.Error) any {
	d := h.admission.WithConstraints(gateway.Constraints{RefuseAll: refused}).Judge(ctx, gateway.ModeEnforce,
		gateway.Input{Native: &h.call})
	d.Release()
	h.refused = d.Refusal()
	return blocked(h.refused)
}

// reasonOf is what the model reads of a refusal.
func reasonOf(refused *refusal.Error) string {
	return text.Cut(string(refused.Code)+": "+refused.Message, maxReason)
}

type decision struct {
	Event      string             `json:"hookEventName"`
	Permission string             `json:"permissionDecision,omitempty"`
	Reason     string             `json:"permissionDecisionReason,omitempty"`
	Decision   *permissionOutcome `json:"decision,omitempty"`
}

type permissionOutcome struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message"`
}

func toolUseAnswer(event, permission, reason string) any {
	return map[string]decision{"hookSpecificOutput": {Event: event, Permission: permission, Reason: reason}}
}

func permissionAnswer(reason string) any {
	return map[string]decision{"hookSpecificOutput": {Event: permissionRequest, Decision: &permissionOutcome{"deny", reason}}}
}

func blocked(refused *refusal.Error) any {
	return map[string]string{"decision": "block", "reason": reasonOf(refused)}
}

// refuse answers a request that did not get as far as this face. What the hook asks is not known then: mostly, and where it
// matters most, it is whether a tool may run.
func refuse(c *gin.Context, refused *refusal.Error) { refuseAs(c, preToolUse, refused) }

// refuseAs answers that the hook of an event could not be judged: by a denial, which an agent heeds, but for what says that
// the hook is set up wrongly.
func refuseAs(c *gin.Context, event string, refused *refusal.Error) {
	server.LogRefusal(c, refused)
	status := refused.Status()
	var answer any
	switch {
	case status == http.StatusUnauthorized || status == http.StatusNotFound || status == http.StatusMethodNotAllowed ||
		status == http.StatusRequestEntityTooLarge || event == "":
		answer = map[string]*refusal.Error{"error": refused}
	case event == permissionRequest:
		status, answer = http.StatusOK, permissionAnswer(reasonOf(refused))
	case event == preToolUse || event == preSkillShellCommand:
		status, answer = http.StatusOK, toolUseAnswer(event, "deny", reasonOf(refused))
	default:
		status, answer = http.StatusOK, blocked(refused)
	}
	server.RefusalHeaders(c, refused)
	c.Abort()
	body, err := json.Marshal(answer)
	if err != nil {
		body, status = []byte("{}"), http.StatusInternalServerError
	}
	c.Data(status, "application/json; charset=utf-8", body)
}

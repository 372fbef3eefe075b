package refusal

import "net/http"

// Stage is one step of the pipeline that can refuse. The names are on the wire.
type Stage string

// The stages, in the order of the pipeline. Request belongs to the face, before the
// pipeline; Any is for codes of no single stage.
const (
	Request    Stage = "request"
	Identity   Stage = "identity"
	Parse      Stage = "parse"
	Schema     Stage = "schema"
	Permission Stage = "permission"
	Rate       Stage = "rate"
	Workspace  Stage = "workspace"
	Project    Stage = "project"
	Approval   Stage = "approval"
	Log        Stage = "log"
	Execute    Stage = "execute"
	Wrap       Stage = "wrap"
	Any        Stage = "any"
)

// Code names one reason for a refusal. The names are on the wire.
type Code string

// The codes, grouped by the stage that gives them. WrongType is given by two
// stages: by Parse for the envelope, by Schema for an argument.
const (
	BadRequest           Code = "bad_request"
	NotFound             Code = "not_found"
	MethodNotAllowed     Code = "method_not_allowed"
	RequestTooLarge      Code = "request_too_large"
	UnsupportedMediaType Code = "unsupported_media_type"
	// ApprovalConflict refuses a vote, or another act on an approval, that its state does not
	// allow: it has ended, its call has run, or the vote is for another call than it shows.
	ApprovalConflict Code = "approval_conflict"

	Unauthenticated   Code = "unauthenticated"
	AgentUnknown      Code = "agent_unknown"
	AgentMismatch     Code = "agent_mismatch"
	AgentRequired     Code = "agent_required"
	CallerRateLimited Code = "caller_rate_limited"

	OutputTooLarge    Code = "output_too_large"
	InvalidUTF8       Code = "invalid_utf8"
	EmptyOutput       Code = "empty_output"
	MalformedJSON     Code = "malformed_json"
	DuplicateKey      Code = "duplicate_key"
	TooDeep           Code = "too_deep"
	InvalidNumber     Code = "invalid_number"
	MixedOutput       Code = "mixed_output"
	MultipleCalls     Code = "multiple_calls"
	NotAToolCall      Code = "not_a_tool_call"
	ForeignCallSyntax Code = "foreign_call_syntax"
	TruncatedOutput   Code = "truncated_output"
	UnexpectedField   Code = "unexpected_field"
	MissingField      Code = "missing_field"
	WrongType         Code = "wrong_type"

	UnknownTool        Code = "unknown_tool"
	UnexpectedArgument Code = "unexpected_argument"
	MissingArgument    Code = "missing_argument"
	InvalidValue       Code = "invalid_value"
	// InvalidOutput means that an answer is strict JSON, and not what the schema of the request asks for.
	InvalidOutput Code = "invalid_output"
	// ToolStarting means that the server of an accepted tool has not listed its tools since the gateway
	// started, or since it announced a change, so that it is not known whether it still defines the tool as it was accepted.
	ToolStarting Code = "tool_starting"

	PermissionDenied Code = "permission_denied"
	ToolQuarantined  Code = "tool_quarantined"
	// Stopped means that an operator has stopped the call, or the request to a model: see package
	// gateway/stops.
	Stopped Code = "stopped"
	// ThreadRequired refuses a call of a tool that uses threads, in no thread. Of the stage request it refuses a
	// request to a model that offers such a tool.
	ThreadRequired Code = "thread_required"
	ThreadClosed   Code = "thread_closed"
	ThreadsFull    Code = "threads_full"
	// ThreadsUnavailable means that it cannot be read, or not be kept, what a thread has done.
	ThreadsUnavailable Code = "threads_unavailable"

	RateLimited        Code = "rate_limited"
	ConcurrencyLimited Code = "concurrency_limited"
	LimiterUnavailable Code = "limiter_unavailable"
	// ThreadLimit means that the thread has had as many calls, or its caller has begun as many threads, as the limits allow.
	ThreadLimit Code = "thread_limit"

	// ProjectRequired means that the caller has several projects and the request names none.
	ProjectRequired   Code = "project_required"
	WorkspaceMismatch Code = "workspace_mismatch"
	ProjectMismatch   Code = "project_mismatch"
	BoundaryViolation Code = "boundary_violation"

	// ApprovalRequired means that people have not approved the call yet, ApprovalDenied that one
	// of them has denied it, and ApprovalExpired that nobody decided in time.
	ApprovalRequired Code = "approval_required"
	ApprovalDenied   Code = "approval_denied"
	ApprovalExpired  Code = "approval_expired"
	// HookDenied means that a hook of the operator does not let the arguments of a call pass, a text, or what
	// its tool has answered, or that the hook could not be asked.
	HookDenied Code = "hook_denied"

	AuditUnavailable Code = "audit_unavailable"

	// Unjudged and ExecutedDiffers are for a call that an agent has run itself: without a verdict, or otherwise than
	// was judged.
	Unjudged            Code = "unjudged"
	ExecutedDiffers     Code = "executed_differs"
	ToolFailed          Code = "tool_failed"
	ToolUnavailable     Code = "tool_unavailable"
	AddressBlocked      Code = "address_blocked"
	OutcomeUnknown      Code = "outcome_unknown"
	ToolTimeout         Code = "tool_timeout"
	StoreUnavailable    Code = "store_unavailable"
	CallInProgress      Code = "call_in_progress"
	IdempotencyConflict Code = "idempotency_conflict"
	// CredentialUnavailable means that the tool is called as its caller, and that the caller has no token, or one for
	// which none is issued. CredentialExpired means that its token has ended or is about to, and StepUpRequired that
	// the user must sign in again or consent to more.
	CredentialUnavailable Code = "credential_unavailable"
	CredentialExpired     Code = "credential_expired"
	StepUpRequired        Code = "step_up_required"

	InvalidResult  Code = "invalid_result"
	ResultTooLarge Code = "result_too_large"

	Overloaded          Code = "overloaded"
	LoopDetected        Code = "loop_detected"
	BoundReached        Code = "bound_reached"
	ToolChoiceViolated  Code = "tool_choice_violated"
	UpstreamUnavailable Code = "upstream_unavailable"
	UpstreamTimeout     Code = "upstream_timeout"
	// Canceled means that the client disconnected before the request was done. It has the
	// stage in progress at that moment.
	Canceled Code = "canceled"
	Internal Code = "internal"
)

// row has all that is fixed about a code.
type row struct {
	status int    // of HTTP
	stage  Stage  // unless the caller names another
	means  string // for operators; one sentence, without its full stop
	next   string // what an operator does; one sentence, without its full stop
}

// statusClientLeft is a status that no client reads: it is used in logs and metrics, as
// proxies do.
const statusClientLeft = 499

// Advice for operators about faults of completions, and about whole groups of codes.
const (
	modelCorrects = "nothing: the model was told, and can try again; if it continues, show it the form of a call in its prompt"
	schemaChecks  = "compare the call with the tool's schema (`callgate tools grammar --tool TOOL`); the model was told, and can try again"
	callerMends   = "correct the application that sent the request"
	lookAtTool    = "look at the tool's server; the log and `callgate_breakers_open` say since when it fails"
	lookAtStore   = "look at the store: the admin listener's `/readyz` says why, docs/redis.md what to do"
)

// codes is the one table of codes: the reference, the advice of commands, the metrics and the pages
// come from it. It is read only.
var codes = map[Code]row{
	BadRequest:           {http.StatusBadRequest, Request, "the HTTP request, not the completion, has a fault", callerMends},
	NotFound:             {http.StatusNotFound, Request, "nothing is at this path, or no such call of this caller", callerMends},
	MethodNotAllowed:     {http.StatusMethodNotAllowed, Request, "the path takes another HTTP method", callerMends},
	RequestTooLarge:      {http.StatusRequestEntityTooLarge, Request, "body or head is too long", callerMends},
	UnsupportedMediaType: {http.StatusUnsupportedMediaType, Request, "the body has another Content-Type than this path takes", callerMends},
	ApprovalConflict: {http.StatusConflict, Request, "the approval has ended, or is not of the call that was shown",
		"look at the approval again before deciding"},

	Unauthenticated: {http.StatusUnauthorized, Identity, "the credential is missing, unknown or expired",
		"compare the caller's key or token with principals.yaml or `auth.jwt`"},
	AgentUnknown: {http.StatusForbidden, Identity, "no project names the agent",
		"add the agent to workspaces.yaml, or correct its name in the application"},
	AgentMismatch: {http.StatusForbidden, Identity,
		"the caller may not act for this agent, or completion and request state different agents",
		"add the agent to the principal, or correct the application"},
	AgentRequired: {http.StatusForbidden, Identity, "it is not clear which agent calls",
		"have the application name the agent: in the header `Callgate-Agent`, in the member `agent` of the JSON body of `/v1/check` or `/v1/calls`, or with the `--agent` flag of a command"},
	CallerRateLimited: {http.StatusTooManyRequests, Identity, "the caller exceeds its rate",
		"raise the rate of callers in limits.yaml, or have the application obey `Retry-After`"},

	OutputTooLarge:    {http.StatusUnprocessableEntity, Parse, "the completion is longer than `output.max_bytes`", modelCorrects},
	InvalidUTF8:       {http.StatusUnprocessableEntity, Parse, "the completion is not UTF-8", modelCorrects},
	EmptyOutput:       {http.StatusUnprocessableEntity, Parse, "the completion is empty", modelCorrects},
	MalformedJSON:     {http.StatusUnprocessableEntity, Parse, "the completion is not valid JSON from some byte on", modelCorrects},
	DuplicateKey:      {http.StatusUnprocessableEntity, Parse, "an object has two members of one name", modelCorrects},
	TooDeep:           {http.StatusUnprocessableEntity, Parse, "the completion is nested deeper than `output.max_depth`", modelCorrects},
	InvalidNumber:     {http.StatusUnprocessableEntity, Parse, "a number is too long or too large", modelCorrects},
	MixedOutput:       {http.StatusUnprocessableEntity, Parse, "there is text before or behind the call", modelCorrects},
	MultipleCalls:     {http.StatusUnprocessableEntity, Parse, "there is more than one call", modelCorrects},
	NotAToolCall:      {http.StatusUnprocessableEntity, Parse, "the completion is JSON, and no call", modelCorrects},
	ForeignCallSyntax: {http.StatusUnprocessableEntity, Parse, "the completion is a call in another product's form", modelCorrects},
	TruncatedOutput: {http.StatusUnprocessableEntity, Parse, "the completion was cut off",
		"raise the model's token limit in the application"},
	UnexpectedField: {http.StatusUnprocessableEntity, Parse, "the call's envelope has an extra member", modelCorrects},
	MissingField:    {http.StatusUnprocessableEntity, Parse, "the call's envelope lacks a member", modelCorrects},
	WrongType:       {http.StatusUnprocessableEntity, Schema, "a member of the call has the wrong type", schemaChecks},

	UnknownTool: {http.StatusUnprocessableEntity, Schema, "no tool has this name",
		"nothing if the model made it up; else add the tool to the registry"},
	UnexpectedArgument: {http.StatusUnprocessableEntity, Schema, "the tool has no such argument", schemaChecks},
	MissingArgument:    {http.StatusUnprocessableEntity, Schema, "an argument that the tool needs is missing", schemaChecks},
	InvalidValue:       {http.StatusUnprocessableEntity, Schema, "the tool's schema does not allow the value of an argument", schemaChecks},
	InvalidOutput:      {http.StatusUnprocessableEntity, Schema, "the answer is JSON, but does not fit the request's schema", "compare the violations with the schema; the model was told, and can try again; the upstream's `structured_output: pass` lets such answers pass"},
	ToolStarting:       {http.StatusServiceUnavailable, Schema, "the tool's server has not listed its tools since the gateway started, or since it announced a change", "nothing if it passes; else `callgate servers list` and the log say why the server does not answer; `start_timeout` gives a slow program more time"},

	PermissionDenied: {http.StatusForbidden, Permission, "no row of the policy allows the call, or one denies it",
		"see which row decides with `callgate policy explain`; change the policy if the call should pass"},
	ToolQuarantined: {http.StatusForbidden, Permission, "the server's definition differs from the accepted one",
		"see the difference with `callgate servers list`; if it is right, `callgate servers accept`"},
	ThreadRequired: {http.StatusForbidden, Permission, "the policy, or a label of the tool, is about the thread, and the request names none; a request that offers such a tool to a model is refused first, with 400", "have the application name it (`Callgate-Thread`, or the member `thread`), or set `threads.unnamed: shared`"},
	ThreadClosed:   {http.StatusForbidden, Permission, "the thread was closed", "have the application begin another thread"},
	ThreadsFull: {http.StatusServiceUnavailable, Permission,
		"there is no room for a new thread, in all or of this caller, without forgetting others",
		"see who begins so many; they go `threads.idle` after their last call"},
	ThreadsUnavailable: {http.StatusServiceUnavailable, Permission, "what the thread has done cannot be read or kept", lookAtStore},
	Stopped: {http.StatusForbidden, Permission,
		"an operator has stopped the agent, tool, principal, project, thread, or everything",
		"see who and why with `callgate stops`; end it with `callgate resume`"},

	RateLimited: {http.StatusTooManyRequests, Rate, "the rate of agent, tool or project is used up, or a budget is spent",
		"raise it in limits.yaml, or leave it: the caller was told when to try again"},
	ConcurrencyLimited: {http.StatusTooManyRequests, Rate, "too many calls of the agent, tool or project run at once",
		"raise the limit in limits.yaml, or see why calls take so long"},
	LimiterUnavailable: {http.StatusServiceUnavailable, Rate, "the shared limits cannot be reached, and `on_store_loss` is `refuse`",
		lookAtStore},
	ThreadLimit: {http.StatusForbidden, Rate,
		"the thread has had as many calls, or its caller has begun as many threads, as limits.yaml allows",
		"see what they do; if it is right, raise `threads.calls` or `threads.new`"},

	ProjectRequired: {http.StatusForbidden, Workspace, "the caller has several projects, and the request names none",
		"have the application name one (`Callgate-Project`, or the member `project`)"},
	WorkspaceMismatch: {http.StatusForbidden, Workspace, "the workspace is unknown, or not the caller's",
		"correct the application, or add the workspace to the principal"},
	ProjectMismatch: {http.StatusForbidden, Project, "the project is unknown, not the caller's, or does not list the agent",
		"add the agent to the project, or correct the application"},
	BoundaryViolation: {http.StatusForbidden, Project, "an argument leads out of the project's boundary",
		"if the call is right, widen the project's boundaries in workspaces.yaml"},

	ApprovalRequired: {http.StatusForbidden, Approval, "people must approve first, and were asked",
		"decide; the approval has the id of the call that asked"},
	ApprovalDenied: {http.StatusForbidden, Approval, "a person has said no", "nothing: the same call is refused while the denial stands"},
	ApprovalExpired: {http.StatusForbidden, Approval, "nobody decided in time",
		"decide sooner, or give the rule more time in approvals.yaml; the call can be sent again"},
	HookDenied: {http.StatusForbidden, Approval, "a hook denied the arguments, the text or the result, or could not be asked",
		"the log's line says which hook and why; look at hooks.yaml"},

	AuditUnavailable: {http.StatusServiceUnavailable, Log, "the decision could not be logged in time",
		"look at the disk of `data_dir`; nothing is executed until then"},

	Unjudged: {http.StatusForbidden, Execute, "a coding agent ran a call that its hook had no permission for: the hook was not asked, or was not heeded, or the gateway was restarted in between", "see that the agent's hooks are those that `callgate hook install` prints, and that nobody can change them"},
	ExecutedDiffers: {http.StatusForbidden, Execute, "a coding agent ran a call with other arguments than its hook was permitted",
		"look for another hook of the agent that changes arguments, or for edits of its user"},
	ToolFailed: {http.StatusOK, Execute, "the tool ran and reported a failure",
		"look at what the tool said; the model has read it"},
	ToolUnavailable: {http.StatusBadGateway, Execute, "the tool's server could not be reached, or its circuit breaker is open, or its credential cannot be read",
		"look at the tool's server, or at its credential: the log has the cause"},
	AddressBlocked: {http.StatusBadGateway, Execute, "calls may not go to the tool's address",
		"correct the tool's URL, or allow its address range"},
	OutcomeUnknown: {http.StatusBadGateway, Execute, "the call was sent, and may have had its effect",
		"ask the tool's own records before the call is sent again"},
	ToolTimeout:         {http.StatusGatewayTimeout, Execute, "the tool did not answer in time", lookAtTool},
	StoreUnavailable:    {http.StatusServiceUnavailable, Execute, "calls cannot be stored, so none is executed", lookAtStore},
	CallInProgress:      {http.StatusConflict, Execute, "the same call is being executed", "nothing: its answer is fetched by its id"},
	IdempotencyConflict: {http.StatusConflict, Execute, "the key was used for another call", callerMends},

	CredentialUnavailable: {http.StatusForbidden, Execute, "the tool is called as its caller, who has no token, or one for which the token endpoint issues none", "see the cause in the log: the caller must authenticate with a token of the issuer, and that must be accepted at the token endpoint of the tool's credential"},
	CredentialExpired: {http.StatusUnauthorized, Execute, "the tool is called as its caller, whose token has ended or is about to",
		"nothing: the application sends the call again with a new token"},
	StepUpRequired: {http.StatusForbidden, Execute,
		"the tool is called as its caller, and the user must sign in again or consent to more first",
		"see the cause in the log, and have the application sign the user in again with what that asks for"},

	InvalidResult: {http.StatusBadGateway, Wrap, "the tool's answer is not JSON of its schema", lookAtTool},
	ResultTooLarge: {http.StatusBadGateway, Wrap, "the tool's answer is too long",
		"raise the limit of the tool or its server, or have the tool answer in parts"},

	Overloaded: {http.StatusServiceUnavailable, Any,
		"no room for more requests, streams, records that wait for the disk, or stored calls",
		"the log's line says which bound: raise it (`server.max_in_flight`, `store`), add a replica, or see why calls take so long"},
	LoopDetected: {http.StatusUnprocessableEntity, Any, "the model repeated the same call endlessly: in a run, or (stage `rate`) in a thread whose equal calls limits.yaml bounds", "look at its calls: the prompt or the tool's answers keep it going; a tool that is polled can have its own bound, `threads.equal.tools`"},
	BoundReached: {http.StatusUnprocessableEntity, Any, "a run has used up its turns, time or tokens",
		"look at the run's calls, or raise `max_turns`, `run_timeout` or `token_budget` of the upstream"},
	ToolChoiceViolated: {http.StatusUnprocessableEntity, Any,
		"the model called a tool that the request forbids, or none where one was required", modelCorrects},
	UpstreamUnavailable: {http.StatusBadGateway, Any, "the model's provider could not be reached, or failed",
		"look at the provider and the log's line of this request"},
	UpstreamTimeout: {http.StatusGatewayTimeout, Any, "the model's provider did not answer in time",
		"look at the provider, or raise the upstream's timeouts"},
	Canceled: {statusClientLeft, Any, "the client left before the request was done",
		"nothing, unless the application gives up too early"},
	Internal: {http.StatusInternalServerError, Any, "Callgate could not judge this, and refused",
		"look at the log's line of this request, and report it"},
}

// Status returns the HTTP status of a code; an unknown code is 500.
func (c Code) Status() int {
	if r, ok := codes[c]; ok {
		return r.status
	}
	return http.StatusInternalServerError
}

// Codes returns every code, in no particular order.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Means says what a code means, for an operator: one sentence, without its full stop.
func (c Code) Means() string { return codes[c].means }

// Next says what an operator does about a code: one sentence, without its full stop.
func (c Code) Next() string { return codes[c].next }

// Stages returns the stages in the order of the pipeline.
func Stages() []Stage {
	return []Stage{Request, Identity, Parse, Schema, Permission, Rate, Workspace, Project, Approval, Log, Execute, Wrap, Any}
}

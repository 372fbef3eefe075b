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
	// ToolStarting means that the server of an accepted tool has not listed its tools since the gateway
	// started, so that it is not known whether it still defines the tool as it was accepted.
	ToolStarting Code = "tool_starting"

	PermissionDenied Code = "permission_denied"
	ToolQuarantined  Code = "tool_quarantined"

	RateLimited        Code = "rate_limited"
	ConcurrencyLimited Code = "concurrency_limited"
	LimiterUnavailable Code = "limiter_unavailable"

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

	ToolFailed          Code = "tool_failed"
	ToolUnavailable     Code = "tool_unavailable"
	AddressBlocked      Code = "address_blocked"
	OutcomeUnknown      Code = "outcome_unknown"
	ToolTimeout         Code = "tool_timeout"
	StoreUnavailable    Code = "store_unavailable"
	CallInProgress      Code = "call_in_progress"
	IdempotencyConflict Code = "idempotency_conflict"

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

// kind holds the fixed properties of a code: its HTTP status and its stage, unless the
// caller names another.
type kind struct {
	status int
	stage  Stage
}

// statusClientLeft is a status that no client reads: it is used in logs and metrics, as
// proxies do.
const statusClientLeft = 499

// kinds is the one table from codes to HTTP. It is read only.
var kinds = map[Code]kind{
	BadRequest:           {http.StatusBadRequest, Request},
	NotFound:             {http.StatusNotFound, Request},
	MethodNotAllowed:     {http.StatusMethodNotAllowed, Request},
	RequestTooLarge:      {http.StatusRequestEntityTooLarge, Request},
	UnsupportedMediaType: {http.StatusUnsupportedMediaType, Request},
	ApprovalConflict:     {http.StatusConflict, Request},

	Unauthenticated:   {http.StatusUnauthorized, Identity},
	AgentUnknown:      {http.StatusForbidden, Identity},
	AgentMismatch:     {http.StatusForbidden, Identity},
	AgentRequired:     {http.StatusForbidden, Identity},
	CallerRateLimited: {http.StatusTooManyRequests, Identity},

	OutputTooLarge:    {http.StatusUnprocessableEntity, Parse},
	InvalidUTF8:       {http.StatusUnprocessableEntity, Parse},
	EmptyOutput:       {http.StatusUnprocessableEntity, Parse},
	MalformedJSON:     {http.StatusUnprocessableEntity, Parse},
	DuplicateKey:      {http.StatusUnprocessableEntity, Parse},
	TooDeep:           {http.StatusUnprocessableEntity, Parse},
	InvalidNumber:     {http.StatusUnprocessableEntity, Parse},
	MixedOutput:       {http.StatusUnprocessableEntity, Parse},
	MultipleCalls:     {http.StatusUnprocessableEntity, Parse},
	NotAToolCall:      {http.StatusUnprocessableEntity, Parse},
	ForeignCallSyntax: {http.StatusUnprocessableEntity, Parse},
	TruncatedOutput:   {http.StatusUnprocessableEntity, Parse},
	UnexpectedField:   {http.StatusUnprocessableEntity, Parse},
	MissingField:      {http.StatusUnprocessableEntity, Parse},
	WrongType:         {http.StatusUnprocessableEntity, Schema},

	UnknownTool:        {http.StatusUnprocessableEntity, Schema},
	UnexpectedArgument: {http.StatusUnprocessableEntity, Schema},
	MissingArgument:    {http.StatusUnprocessableEntity, Schema},
	InvalidValue:       {http.StatusUnprocessableEntity, Schema},
	ToolStarting:       {http.StatusServiceUnavailable, Schema},

	PermissionDenied: {http.StatusForbidden, Permission},
	ToolQuarantined:  {http.StatusForbidden, Permission},

	RateLimited:        {http.StatusTooManyRequests, Rate},
	ConcurrencyLimited: {http.StatusTooManyRequests, Rate},
	LimiterUnavailable: {http.StatusServiceUnavailable, Rate},

	ProjectRequired:   {http.StatusForbidden, Workspace},
	WorkspaceMismatch: {http.StatusForbidden, Workspace},
	ProjectMismatch:   {http.StatusForbidden, Project},
	BoundaryViolation: {http.StatusForbidden, Project},

	ApprovalRequired: {http.StatusForbidden, Approval},
	ApprovalDenied:   {http.StatusForbidden, Approval},
	ApprovalExpired:  {http.StatusForbidden, Approval},
	HookDenied:       {http.StatusForbidden, Approval},

	AuditUnavailable: {http.StatusServiceUnavailable, Log},

	ToolFailed:          {http.StatusOK, Execute},
	ToolUnavailable:     {http.StatusBadGateway, Execute},
	AddressBlocked:      {http.StatusBadGateway, Execute},
	OutcomeUnknown:      {http.StatusBadGateway, Execute},
	ToolTimeout:         {http.StatusGatewayTimeout, Execute},
	StoreUnavailable:    {http.StatusServiceUnavailable, Execute},
	CallInProgress:      {http.StatusConflict, Execute},
	IdempotencyConflict: {http.StatusConflict, Execute},

	InvalidResult:  {http.StatusBadGateway, Wrap},
	ResultTooLarge: {http.StatusBadGateway, Wrap},

	Overloaded:          {http.StatusServiceUnavailable, Any},
	LoopDetected:        {http.StatusUnprocessableEntity, Any},
	BoundReached:        {http.StatusUnprocessableEntity, Any},
	ToolChoiceViolated:  {http.StatusUnprocessableEntity, Any},
	UpstreamUnavailable: {http.StatusBadGateway, Any},
	UpstreamTimeout:     {http.StatusGatewayTimeout, Any},
	Canceled:            {statusClientLeft, Any},
	Internal:            {http.StatusInternalServerError, Any},
}

// Status returns the HTTP status of a code; an unknown code is 500.
func (c Code) Status() int {
	if k, ok := kinds[c]; ok {
		return k.status
	}
	return http.StatusInternalServerError
}

// Codes returns every code, in no particular order.
func Codes() []Code {
	all := make([]Code, 0, len(kinds))
	for c := range kinds {
		all = append(all, c)
	}
	return all
}

package refusal

// Advice explains a code to an operator.
type Advice struct {
	Meaning string // one sentence, without its full stop
	Next    string // what an operator does; one sentence, without its full stop
}

// Advice returns the advice for a code; the zero value for one that has none.
func (c Code) Advice() Advice { return advice[c] }

// Stages returns the stages in the order of the pipeline.
func Stages() []Stage {
	return []Stage{Request, Identity, Parse, Schema, Permission, Rate, Workspace, Project, Approval, Log, Execute, Wrap, Any}
}

// Advice for operators about faults of completions, and about whole groups of codes.
const (
	modelCorrects = "nothing: the model was told, and can send the call again; if it continues, show the model the form of a call in its prompt"
	schemaChecks  = "compare the call with the tool's schema (`callgate tools list`); the model was told, and can send the call again"
	callerMends   = "correct the application that sent the request"
	lookAtTool    = "look at the tool's server; `callgate_breakers_open` and the log say since when it fails"
	lookAtStore   = "look at the store: `/readyz` on the admin listener says why, docs/operations.md what to do"
)

// advice has an entry for every code.
var advice = map[Code]Advice{
	BadRequest:           {"the HTTP request, not the completion, has a fault", callerMends},
	NotFound:             {"there is nothing at this path, or no such call of this caller", callerMends},
	MethodNotAllowed:     {"the path takes another HTTP method", callerMends},
	RequestTooLarge:      {"the body or the head is longer than is allowed", callerMends},
	UnsupportedMediaType: {"the body has another Content-Type than this path takes", callerMends},

	Unauthenticated:   {"the credential is missing, unknown or expired", "compare the caller's key or token with principals.yaml or `auth.jwt`"},
	AgentUnknown:      {"no project names the agent", "add the agent to its project in workspaces.yaml, or correct the name in the application"},
	AgentMismatch:     {"the caller may not act for this agent, or the completion states another agent than the request", "add the agent to the principal, or correct the application"},
	AgentRequired:     {"it is not clear which agent calls", "have the application name the agent"},
	CallerRateLimited: {"the caller sends more requests than its rate allows", "raise the rate of callers in limits.yaml, or have the application wait as `Retry-After` says"},

	OutputTooLarge:    {"the completion is longer than `output.max_bytes`", modelCorrects},
	InvalidUTF8:       {"the completion is not UTF-8", modelCorrects},
	EmptyOutput:       {"the completion is empty", modelCorrects},
	MalformedJSON:     {"the completion is no valid JSON from some byte on", modelCorrects},
	DuplicateKey:      {"an object has two members of one name", modelCorrects},
	TooDeep:           {"the completion is nested deeper than `output.max_depth`", modelCorrects},
	InvalidNumber:     {"a number is too long or too large", modelCorrects},
	MixedOutput:       {"there is text before or behind the call", modelCorrects},
	MultipleCalls:     {"there is more than one call", modelCorrects},
	NotAToolCall:      {"the completion is JSON, and no call", modelCorrects},
	ForeignCallSyntax: {"the completion is a call in the form of another product", modelCorrects},
	TruncatedOutput:   {"the completion was cut off", "raise the model's token limit in the application"},
	UnexpectedField:   {"the envelope of the call has a member that it must not have", modelCorrects},
	MissingField:      {"the envelope of the call lacks a member", modelCorrects},
	WrongType:         {"a member of the call has another type than is asked for", schemaChecks},

	UnknownTool:        {"no tool has this name", "nothing if the model made the name up; else add the tool to the registry"},
	UnexpectedArgument: {"the tool has no such argument", schemaChecks},
	MissingArgument:    {"an argument that the tool needs is missing", schemaChecks},
	InvalidValue:       {"the value of an argument is not allowed by the tool's schema", schemaChecks},
	ToolStarting:       {"the tool's server has not listed its tools since the gateway started", "nothing if it passes; else look at the server: `callgate servers list` and the log say why it does not answer, and `start_timeout` gives a slow program more time"},

	PermissionDenied: {"no row of the policy allows the call, or one denies it", "ask `callgate policy explain` which row decides, and change the policy if the call should pass"},
	ToolQuarantined:  {"its server defines the tool otherwise than it was accepted", "see the difference with `callgate servers list`, and accept it with `callgate servers accept` if it is right"},

	RateLimited:        {"the agent, the tool or the project has used up its rate, or a budget of tokens or money is spent", "raise the limit or the budget in limits.yaml, or leave it: the caller was told when to try again"},
	ConcurrencyLimited: {"too many calls of the agent, the tool or the project run at once", "raise the limit in limits.yaml, or see why calls take so long"},
	LimiterUnavailable: {"the shared limits cannot be reached, and `on_store_loss` is `refuse`", lookAtStore},

	ProjectRequired:   {"the caller has several projects, and the request names none", "have the application name one: `project` in the body, or the header `Callgate-Project`"},
	WorkspaceMismatch: {"the workspace is unknown, or not the caller's", "correct the application, or add the workspace to the principal"},
	ProjectMismatch:   {"the project is unknown, not the caller's, or does not list the agent", "add the agent to the project in workspaces.yaml, or correct the application"},
	BoundaryViolation: {"an argument names something outside of the project's boundary", "look at the project's boundaries in workspaces.yaml; if the call is right, widen them"},

	ApprovalRequired: {"a person must say yes first, and has been asked", "decide about it; the approval has the id of the call that asked"},
	ApprovalDenied:   {"a person has said no", "nothing: the same call is refused while the denial stands"},
	ApprovalExpired:  {"nobody decided in time", "have somebody decide sooner, or give the rule more time in approvals.yaml; the call can be sent again"},
	HookDenied:       {"a hook does not let the arguments or the result pass, or could not be asked", "look at the log's line, which says which hook and why, and at hooks.yaml"},
	ApprovalConflict: {"the approval has ended, or is of another call than was shown", "look at the approval again before deciding"},

	AuditUnavailable: {"the decision could not be written to the audit log in time", "look at the disk of `data_dir`; nothing is executed until the log can be written"},

	ToolFailed:          {"the tool ran and reported a failure", "look at what the tool said; the model has read it"},
	ToolUnavailable:     {"the tool's server could not be reached, or its circuit breaker is open", lookAtTool},
	AddressBlocked:      {"the tool's address is not one that calls may go to", "correct the tool's URL, or allow its address range"},
	OutcomeUnknown:      {"the call was sent, and it is not known whether it had its effect", "ask the tool's own records before the call is sent again"},
	ToolTimeout:         {"the tool did not answer in time", lookAtTool},
	StoreUnavailable:    {"calls cannot be stored, so none is executed", lookAtStore},
	CallInProgress:      {"the same call is being executed", "nothing: its answer can be fetched by its id"},
	IdempotencyConflict: {"the key was used for another call", callerMends},

	InvalidResult:  {"the tool's answer is not what its schema promises, or no JSON", lookAtTool},
	ResultTooLarge: {"the tool's answer is longer than is allowed", "raise the limit of the tool or its server, or have the tool answer in parts"},

	Overloaded:          {"more requests wait than `server.max_in_flight` lets", "raise the limit or add a replica; the caller was told when to try again"},
	LoopDetected:        {"the model repeated the same call without an end", "look at the run's calls; the model's prompt or the tool's answers keep it going"},
	BoundReached:        {"a run has used up its turns, time or tokens", "raise `max_turns`, `run_timeout` or `token_budget` of the upstream, or look at the run's calls"},
	ToolChoiceViolated:  {"the model called a tool that the request did not let it call, or none where one was required", modelCorrects},
	UpstreamUnavailable: {"the model's provider could not be reached, or failed", "look at the provider, and at the log's line of this request"},
	UpstreamTimeout:     {"the model's provider did not answer in time", "look at the provider, or raise the upstream's timeouts"},
	Canceled:            {"the client left before the request was done", "nothing, unless the application gives up too early"},
	Internal:            {"Callgate could not judge this, and refused", "look at the log's line of this request, and report it"},
}

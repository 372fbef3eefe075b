package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
)

// Event is the kind of a record.
type Event string

// A Decision is written before a call is executed or handed over, an Ending
// when an executed call has ended, an Approval when a person is asked or has acted, a Stop when an
// operator has stopped calls, or resumes them, a Thread when a thread was closed.
const (
	Decision Event = "decision"
	Ending   Event = "outcome"
	Approval Event = "approval"
	Stop     Event = "stop"
	Thread   Event = "thread"
)

// Mode says who executes the call: Callgate (Call) or the application (Enforce).
// Only records of mode Call are ever recovered after a crash.
type Mode string

// The two modes.
const (
	Call    Mode = "call"
	Enforce Mode = "enforce"
)

// Verdict is the kind that the completion was judged to be.
type Verdict string

// The three verdicts.
const (
	ToolCall Verdict = "tool_call"
	Text     Verdict = "text"
	Refused  Verdict = "refused"
)

// Outcome is how a call ended.
type Outcome string

// The outcomes. Unknown is a call that may or may not have had its effect.
const (
	Result     Outcome = "result"
	Failed     Outcome = "error"
	Timeout    Outcome = "timeout"
	Expired    Outcome = "expired"
	Unknown    Outcome = "unknown"
	HandedOver Outcome = "handed_over"
)

// The codes of an approval event: what happened to the approval or grant.
const (
	Requested refusal.Code = "requested" // a call asked; principal is its caller
	Yes       refusal.Code = "yes"       // an approver's vote
	No        refusal.Code = "no"        // an approver's vote
	Lapsed    refusal.Code = "expired"   // nobody said enough in time
	Withdrawn refusal.Code = "withdrawn" // by the caller
	Revoked   refusal.Code = "revoked"   // by an operator: an approval or a grant
	Granted   refusal.Code = "granted"   // the votes let more than the one call pass
)

var approvalCodes = []refusal.Code{Requested, Yes, No, Lapsed, Withdrawn, Revoked, Granted}

// The codes of a stop event. The call id is that of the stop.
const (
	Stopped refusal.Code = refusal.Stopped
	Resumed refusal.Code = "resumed"
)

// Closed is the code of a thread event. The call id is the Ledger, its Turn is the closing, and its Time that of the turn.
const Closed refusal.Code = "closed"

// byCaller stands for the number of people where the caller itself may say yes.
const byCaller = "caller"

// RuleVotes writes a rule with the number of people who must say yes, "refunds=2", or, where
// caller says so, with the caller as the one: "edits=caller".
func RuleVotes(rule string, approve int, caller bool) string {
	if caller {
		return rule + "=" + byCaller
	}
	return rule + "=" + strconv.Itoa(approve)
}

// ReadRuleVotes reads what RuleVotes wrote. Where ok is false it was not that.
func ReadRuleVotes(text string) (rule string, approve int, caller, ok bool) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return "", 0, false, false
	}
	if text[i+1:] == byCaller {
		return text[:i], 1, true, true
	}
	approve, err := strconv.Atoi(text[i+1:])
	return text[:i], approve, false, err == nil && approve > 0
}

// MaxReason is the most characters of a reason.
const MaxReason = 500

// Content says how much of a completion is written, in the words of the configuration
// key audit.record. The zero value is Digest.
type Content string

// Digest writes SHA-256 digests only, Arguments the arguments too, Completion
// both the arguments and the completion.
const (
	Digest     Content = "digest"
	Arguments  Content = "arguments"
	Completion Content = "completion"
)

// Record is one line of the log. The order of the members is the order on
// disk; every member is always written, but for those behind micros. Seq, Prev
// and Hash are set by the log: what a caller puts there is ignored.
type Record struct {
	Seq             uint64        `json:"seq"`  // from 1, without a gap
	Time            time.Time     `json:"time"` // written in UTC, RFC 3339 with fractions
	Event           Event         `json:"event"`
	Mode            Mode          `json:"mode"`
	CallID          string        `json:"call_id"`
	RequestID       string        `json:"request_id"`
	TraceID         string        `json:"trace_id"`
	Attempt         int           `json:"attempt"`
	Principal       string        `json:"principal"`
	Agent           string        `json:"agent"`
	Workspace       string        `json:"workspace"`
	Project         string        `json:"project"`
	Thread          string        `json:"thread"`
	Tool            string        `json:"tool"`
	ToolVersion     string        `json:"tool_version"`
	Verdict         Verdict       `json:"verdict"`
	Stage           refusal.Stage `json:"stage"`
	Code            refusal.Code  `json:"code"`
	Outcome         Outcome       `json:"outcome"`
	InputSHA256     string        `json:"input_sha256"`     // lower-case hex
	ArgumentsSHA256 string        `json:"arguments_sha256"` // lower-case hex
	ConfigDigest    string        `json:"config_digest"`
	Replica         string        `json:"replica"`
	Micros          int64         `json:"micros"` // microseconds

	// Arguments are JSON, already redacted (see Redact). They are written
	// without the white space between tokens.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Completion holds any bytes, already redacted. Where they are not UTF-8,
	// the member on disk is completion_b64, the last one before prev, in standard base64.
	Completion string `json:"completion,omitempty"`

	// Approvals names, in a decision, the approvals and grants that it uses. In an approval
	// event it is the digest of what is asked for; where the event is about a grant, the
	// grant's id and its scope follow.
	Approvals []string `json:"approval,omitempty"`
	// Spends names, in a decision, the approvals that the call uses up and does not pass by: those
	// whose votes made the grants in Approvals, and the one that it takes up.
	Spends []string `json:"spends,omitempty"`
	// Rules are, in a decision and in the event requested, the rules that were asked, each
	// with the number of people who must say yes, as RuleVotes writes it. In the other
	// approval events they are the names of the rules that it is about: a yes counts for those.
	Rules []string `json:"rules,omitempty"`
	// Until is when the approval or the grant of an approval event ends, as it is then, or the stop of a stop event.
	Until time.Time `json:"until,omitzero"` // written as Time
	// Reason is a text that a person wrote: at most MaxReason characters.
	Reason string `json:"reason,omitempty"`
	// Rows are the policy rows that decided, as file:line.
	Rows []string `json:"rows,omitempty"`
	// Hooks are the hooks that denied, redacted or labelled: in a decision the arguments, in an outcome what
	// the tool said.
	Hooks []string `json:"hooks,omitempty"`
	// Limit is, in a decision that a limit refused, its key in limits.yaml and what it grants.
	Limit string `json:"limit,omitempty"`
	// KeySHA256 names, in the decision and the outcome of an executed call, the idempotency key
	// that it holds, within its scope. RequestSHA256 is then the digest of the request that a
	// repeated key is compared with.
	KeySHA256     string `json:"key_sha256,omitempty"`     // lower-case hex
	RequestSHA256 string `json:"request_sha256,omitempty"` // lower-case hex
	// OfPrincipal is, in a stop event, whose calls it is about, and in a thread event whose thread; Principal is who has acted.
	OfPrincipal string `json:"of_principal,omitempty"`
	// Ledger names the thread of a call of which a policy asks what was done before, or which adds to that: a digest. Turn and
	// CallerTurn are the turns of the thread and of the caller that have made Adds or Undo.
	Ledger     string `json:"ledger,omitempty"` // lower-case hex
	Turn       uint64 `json:"turn,omitempty"`
	CallerTurn uint64 `json:"caller_turn,omitempty"`
	// Adds are what the call has added, in a decision, or its result, in an outcome; Undo is, in an outcome, what was taken away
	// of a call that did not run. Both are as package history writes them. Saw are, in a decision, the values that its
	// conditions have read.
	Adds []string `json:"adds,omitempty"`
	Saw  []string `json:"saw,omitempty"`
	Undo []string `json:"undo,omitempty"`
	// AgentHook is, in a decision about which the hook of a coding agent asked, what it said; else nil.
	*AgentHook

	Prev string `json:"-"` // hash of the record before, 64 zeros before the first
	Hash string `json:"-"` // SHA-256 of the line up to `,"hash"`, lower-case hex
}

// AgentHook is what the hook of a coding agent says of a call.
type AgentHook struct {
	// HookAgent is the agent, and HookEvent the event at which its hook asks, in the agent's words.
	HookAgent string `json:"hook_agent,omitempty"`
	HookEvent string `json:"hook_event,omitempty"`
	// Session is that of the agent, whose subagents have a thread of their own; Prompt is what the agent calls the turn.
	Session        string `json:"session,omitempty"`
	Prompt         string `json:"prompt,omitempty"`
	PermissionMode string `json:"permission_mode,omitempty"`
	// ChangedAfterVerdict is the id of the call that was judged under the same id of the agent, with other arguments.
	ChangedAfterVerdict string `json:"changed_after_verdict,omitempty"`
}

// agentHookMembers are the members of an AgentHook in the order on disk, each with what precedes it.
var agentHookMembers = []struct {
	before string
	of     func(*AgentHook) *string
}{
	{`,"hook_agent":"`, func(h *AgentHook) *string { return &h.HookAgent }},
	{`,"hook_event":"`, func(h *AgentHook) *string { return &h.HookEvent }},
	{`,"session":"`, func(h *AgentHook) *string { return &h.Session }},
	{`,"prompt":"`, func(h *AgentHook) *string { return &h.Prompt }},
	{`,"permission_mode":"`, func(h *AgentHook) *string { return &h.PermissionMode }},
	{`,"changed_after_verdict":"`, func(h *AgentHook) *string { return &h.ChangedAfterVerdict }},
}

// wire is the object that Decode reads: Record with the members that end a line.
type wire struct {
	Record
	CompletionB64 []byte `json:"completion_b64,omitempty"`
	Prev          string `json:"prev"`
	Hash          string `json:"hash"`
}

// validate refuses records that only a bug can produce.
func (r *Record) validate() error {
	switch {
	case !slices.Contains([]Event{Decision, Ending, Approval, Stop, Thread}, r.Event):
		return fmt.Errorf("event %q, expected %q, %q, %q, %q or %q", r.Event, Decision, Ending, Approval, Stop, Thread)
	case r.Mode != Call && r.Mode != Enforce:
		return fmt.Errorf("mode %q, expected %q or %q", r.Mode, Call, Enforce)
	case r.Time.IsZero():
		return errors.New("no time")
	case r.Event == Decision && r.Verdict == "":
		return errors.New("a decision without a verdict")
	case r.Event == Ending && r.Outcome == "":
		return errors.New("an outcome record without an outcome")
	case r.Event == Approval && !slices.Contains(approvalCodes, r.Code):
		return fmt.Errorf("code %q is none of an approval event", r.Code)
	case r.Event == Stop && r.Code != Stopped && r.Code != Resumed:
		return fmt.Errorf("code %q is none of a stop event", r.Code)
	case r.Event == Thread && (r.Code != Closed || r.Ledger == "" || r.Turn == 0):
		return fmt.Errorf("a thread event of the code %q, expected %q with a thread and its turn", r.Code, Closed)
	case r.Event == Thread && (r.CallerTurn > 0 || len(r.Adds)+len(r.Undo) > 0):
		return errors.New("a closing adds nothing, and takes nothing away")
	case slices.Contains([]Event{Approval, Stop, Thread}, r.Event) && (r.Verdict != "" || r.Outcome != ""):
		return fmt.Errorf("an event %q with a verdict or an outcome", r.Event)
	case len(r.Adds) > 0 && len(r.Undo) > 0, (r.Turn > 0 || r.CallerTurn > 0) && len(r.Adds)+len(r.Undo) == 0 && r.Event != Thread:
		return errors.New("a turn says either what it adds or what it takes away")
	case len(r.Adds) > 0 && r.Turn == 0 && r.CallerTurn == 0:
		return errors.New("what is added has no turn")
	case r.Turn > 0 && r.Ledger == "":
		return errors.New("a turn of a thread that is not named")
	case utf8.RuneCountInString(r.Reason) > MaxReason:
		return fmt.Errorf("a reason of more than %d characters", MaxReason)
	case !slices.Contains([]Verdict{"", ToolCall, Text, Refused}, r.Verdict):
		return fmt.Errorf("verdict %q is not one of the three", r.Verdict)
	case !slices.Contains([]Outcome{"", Result, Failed, Timeout, Expired, Unknown, HandedOver}, r.Outcome):
		return fmt.Errorf("outcome %q is not one of the six", r.Outcome)
	}
	return nil
}

// Decode reads a line of the log, which it does not verify. It passes over members that it does not know, as
// every reader must: later versions may write more.
func Decode(line []byte) (Record, error) {
	var w wire
	if err := json.Unmarshal(line, &w); err != nil {
		return Record{}, err
	}
	r := w.Record
	r.Prev, r.Hash = w.Prev, w.Hash
	if len(w.CompletionB64) > 0 {
		r.Completion = string(w.CompletionB64)
	}
	return r, nil
}

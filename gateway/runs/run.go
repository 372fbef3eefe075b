package runs

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Head has the facts of a run that are known when it begins.
type Head struct {
	Face      string       `json:"face"` // chat, messages or responses
	Mode      gateway.Mode `json:"mode"`
	Model     string       `json:"model"` // as the application named it
	Upstream  string       `json:"upstream"`
	Agent     string       `json:"agent"`
	Workspace string       `json:"workspace"`
	Project   string       `json:"project"`
	// RequestID is the id that the application gave the request; it may be empty.
	RequestID string `json:"request_id,omitempty"`
}

// State says how far a run has got.
type State string

// The states.
const (
	Running  State = "running"
	Answered State = "answered" // the application got an answer of the model
	Failed   State = "failed"   // it got the error, or a message of it (refusals: message)
)

// Run is one run as it is kept, and as GET /v1/runs/{id} answers.
type Run struct {
	ID string `json:"run_id"`
	Head
	State   State      `json:"state"`
	Started time.Time  `json:"started"`
	Ended   *time.Time `json:"ended,omitempty"`
	Turns   []Turn     `json:"turns"`
	// Charged has the charges of the run until now; absent: no budget covers it.
	Charged *Charged `json:"charged,omitempty"`
	// LeftOut is how many turns and calls were not kept, because of the bounds.
	LeftOut int    `json:"left_out,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// Charged has the charges of a run in budgets of tokens and money: each that covers the run, with all of
// it. Attempts and turns that failed are in it.
type Charged struct {
	Tokens int64 `json:"tokens"`
	// Money is an amount in units of the currency; absent: there are no prices.
	Money    string `json:"money,omitempty"`
	Currency string `json:"currency,omitempty"`
	// AsReserved says that of some request it is not known what it took.
	AsReserved bool `json:"as_reserved,omitempty"`
}

// Turn is one answer of the model.
type Turn struct {
	// Repair counts refused turns in a row before this one, which the model was asked to
	// correct: 0 is a turn that corrects none.
	Repair  int       `json:"repair"`
	Started time.Time `json:"started"` // when the model was asked
	Micros  int64     `json:"micros"`  // until it was judged
	Calls   []Call    `json:"calls"`
	// Usage is the provider's object, where it is small; absent: it is not known.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// Call is one judgement: of a call, or of text. It has no arguments and no result: these are in
// the audit log, as far as audit.record says.
type Call struct {
	CallID  string          `json:"call_id"`
	Verdict gateway.Verdict `json:"verdict"`
	Tool    string          `json:"tool,omitempty"` // as the model wrote it
	// Error is why the call was refused; nil with the verdict refused: another call of the
	// turn was refused.
	Error *Error `json:"error,omitempty"`
	// Outcome is what became of a call that passed.
	Outcome Outcome `json:"outcome,omitempty"`
	// OutcomeCode is the code of an outcome that is an error.
	OutcomeCode refusal.Code `json:"outcome_code,omitempty"`
}

// Outcome is what became of a call that passed.
type Outcome string

// The outcomes. A call without one has not ended, or its turn was refused.
const (
	HandedOver Outcome = "handed_over" // to the application
	Result     Outcome = "result"
	ErrorEnd   Outcome = "error"
	Pending    Outcome = "pending" // its tool answers later; GET /v1/calls/{call_id}
)

// Error is a refusal, without its violations.
type Error struct {
	Code    refusal.Code  `json:"code"`
	Stage   refusal.Stage `json:"stage,omitempty"`
	Message string        `json:"message"`
}

// The bounds of the parts of a run.
const (
	maxNameBytes    = 256 // of a name that the model or the application chose
	maxMessageBytes = 1 << 10
	maxUsageBytes   = 1 << 10
	maxRunBytes     = 64 << 10
)

// The memory that parts take beside their text.
const (
	runCost  = 768
	turnCost = 192
	callCost = 256
)

// ErrorOf is a refusal as a run keeps it; nil for nil.
func ErrorOf(refused *refusal.Error) *Error {
	if refused == nil {
		return nil
	}
	return &Error{Code: refused.Code, Stage: refused.Stage, Message: cut(refused.Message, maxMessageBytes)}
}

// CallsOf are the reports of a decision as a run keeps them.
func CallsOf(d *gateway.Decision) []Call {
	calls := make([]Call, len(d.Reports))
	for i := range d.Reports {
		r := &d.Reports[i]
		calls[i] = Call{CallID: r.CallID, Verdict: r.Verdict, Tool: cut(r.Tool, maxNameBytes), Error: ErrorOf(r.Refusal)}
	}
	return calls
}

// bound returns a head whose members are bounded, in memory of their own: the application's
// names point into its request.
func (h Head) bound() Head {
	var all [5 * maxNameBytes]byte
	names := [...]*string{&h.Model, &h.Agent, &h.Workspace, &h.Project, &h.RequestID}
	joined := all[:0]
	for _, s := range names {
		*s = first(*s, maxNameBytes)
		joined = append(joined, *s...)
	}
	text := string(joined)
	for _, s := range names {
		*s, text = text[:len(*s)], text[len(*s):]
	}
	return h
}

func (h *Head) size() int {
	return len(h.Model) + len(h.Upstream) + len(h.Agent) + len(h.Workspace) + len(h.Project) + len(h.RequestID)
}

func (t *Turn) size() int {
	n := turnCost + len(t.Usage)
	for i := range t.Calls {
		n += t.Calls[i].size()
	}
	return n
}

func (c *Call) size() int {
	n := callCost + len(c.CallID) + len(c.Tool)
	if c.Error != nil {
		n += len(c.Error.Message)
	}
	return n
}

// cut returns at most n bytes of a text, of whole characters, in memory of their own.
func cut(s string, n int) string { return strings.Clone(first(s, n)) }

// first returns at most n bytes of a text, of whole characters.
func first(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// clone returns a copy that shares nothing that changes.
func (r *Run) clone() *Run {
	c := *r
	c.Turns = slices.Clone(r.Turns)
	for i := range c.Turns {
		c.Turns[i].Calls = slices.Clone(c.Turns[i].Calls)
	}
	return &c
}

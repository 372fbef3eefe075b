// Package elicit checks the messages between a tool and its caller beside a call and its
// result: the questions of a tool before the caller sees them (ReadQuestions), and the
// caller's answers before the tool does (ReadAnswers). Package elicitation checks the form
// of a single question, and its answer. Package elicit stores and sends nothing.
package elicit

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// Dialogue is the exchange between a caller and a tool beside a call and its result. It is
// nil for a caller that only waits for the result.
type Dialogue struct {
	// Progress receives the tool's progress reports; it may be nil. It is called by one
	// goroutine at a time, never after the outcome was returned, and must be quick.
	Progress func(tool.Progress)
	// Log receives the tool's logs of LogLevel (one of events.LogLevels) and above; if
	// either is empty, no log is passed on. It is called as Progress is, and never at the
	// same time.
	Log      func(tool.Log)
	LogLevel string
	// QuestionKinds are the kinds of questions that the caller can answer: form, url, sampling
	// and roots. A tool asks only what its definition lets it ask, too.
	QuestionKinds []string
	// RequestState names the call that has asked, and Answers are the caller's answers to
	// its questions, by their names. Answers without a state are for questions that the
	// tool has yet to ask.
	RequestState string
	Answers      map[string]json.RawMessage
	// Approval names the approval that the caller was told this very call waits for; empty:
	// none. The call is refused unless it is the same.
	Approval string
}

// Unanswered holds questions that a call was to answer and does not.
type Unanswered struct {
	Questions *tool.InputRequired
	Dialogue  *Dialogue
}

// AllowedKinds are the kinds of questions that a tool may put: those that its definition
// lets it ask, of those that the caller can answer.
func (d *Dialogue) AllowedKinds(may []string) (kinds []string) {
	if d == nil || len(d.QuestionKinds) == 0 {
		return nil
	}
	for _, kind := range tool.QuestionKinds() {
		if slices.Contains(may, kind) && slices.Contains(d.QuestionKinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// CanAnswer reports whether the caller can answer all questions.
func (d *Dialogue) CanAnswer(a *tool.InputRequired) bool {
	return d != nil && a != nil && len(d.QuestionKinds) > 0 && onlyKinds(a, d.QuestionKinds)
}

// TakesForms reports whether the caller can be shown a form.
func (d *Dialogue) TakesForms() bool {
	return d != nil && slices.Contains(d.QuestionKinds, tool.QuestionForm)
}

// ApprovalState is the approval that the call names; empty if it names none.
func (d *Dialogue) ApprovalState() string {
	if d == nil {
		return ""
	}
	return d.Approval
}

// BringsAnswers reports whether the call has a state or answers.
func (d *Dialogue) BringsAnswers() bool {
	return d != nil && (d.RequestState != "" || len(d.Answers) > 0)
}

// AnswersDigest is the digest of the state and the answers, in hex; empty if there are
// none. White space and the order of members do not change it.
func (d *Dialogue) AnswersDigest() string {
	if !d.BringsAnswers() {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", d.RequestState)
	for _, name := range slices.Sorted(maps.Keys(d.Answers)) {
		fmt.Fprintf(sum, " %q %x", name, sha256.Sum256(canonical(d.Answers[name])))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// maxAnswerDepth bounds the nesting of answers that are compared by their values.
const maxAnswerDepth = 64

// canonical returns the canonical form of a JSON value, or the bytes themselves if they
// cannot be read.
func canonical(raw []byte) []byte {
	value, err := parser.ReadValue(raw, maxAnswerDepth)
	if err != nil {
		return raw
	}
	b, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return b
}

// Notifier is nil where the caller wants neither progress nor logs.
func (d *Dialogue) Notifier() *events.Notifier {
	if d == nil {
		return nil
	}
	return events.NewNotifier(d.Progress, d.Log, d.LogLevel)
}

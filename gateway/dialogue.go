package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// allowedQuestions are the kinds of questions that the tool of a call may put: those that its
// definition lets it ask, of those that its caller can answer.
func (c *call) allowedQuestions() (kinds []string) {
	d := c.input.Dialogue
	if d == nil || len(d.QuestionKinds) == 0 || c.tool == nil {
		return nil
	}
	may := c.tool.Run().Asks
	for _, kind := range elicitation.Kinds() {
		if slices.Contains(may, kind) && slices.Contains(d.QuestionKinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// canAnswer tells whether a caller can answer all that is asked.
func (d *Dialogue) canAnswer(a *tool.InputRequired) bool {
	return d != nil && a != nil && len(d.QuestionKinds) > 0 &&
		!slices.ContainsFunc(a.Questions, func(q tool.Question) bool { return !slices.Contains(d.QuestionKinds, q.Kind) })
}

// bringsAnswers tells whether a call brings a state or answers.
func (d *Dialogue) bringsAnswers() bool {
	return d != nil && (d.RequestState != "" || len(d.Answers) > 0)
}

// answersDigest is the digest of a state and answers; empty where there are none. How an answer
// is spaced, and in which order its members stand, does not matter.
func (c *call) answersDigest() string {
	d := c.input.Dialogue
	if c.answersSHA256 == "" && d.bringsAnswers() {
		sum := sha256.New()
		fmt.Fprintf(sum, "%q", d.RequestState)
		for _, name := range slices.Sorted(maps.Keys(d.Answers)) {
			fmt.Fprintf(sum, " %q %s", name, digest(canonical(d.Answers[name])))
		}
		c.answersSHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return c.answersSHA256
}

// maxAnswerDepth bounds how deep answers nest that are told apart by their values.
const maxAnswerDepth = 64

// canonical is the one form of a JSON value; what cannot be read stays as it is.
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

// notifier is nil where the caller wants neither progress nor logs.
func (d *Dialogue) notifier() *events.Notifier {
	if d == nil {
		return nil
	}
	return events.NewNotifier(d.Progress, d.Log, d.LogLevel)
}

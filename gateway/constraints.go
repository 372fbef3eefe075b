package gateway

import (
	"context"
	"slices"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Constraints restrict the answers to one request beyond the configuration. The zero value
// restricts nothing. Their refusals are recorded as all others are.
type Constraints struct {
	// RefuseAll is what is wrong with an answer as a whole, beside what its parts say:
	// each of its inputs is refused with it.
	RefuseAll *refusal.Error
	// RefuseText refuses a text, and Call a call, once it was read and is one.
	RefuseText, RefuseCall *refusal.Error
	// OnlyTools are the tools that alone may be called, by their names in the registry,
	// and Other refuses a call of any other; nil names none.
	OnlyTools   []string
	RefuseOther *refusal.Error
	// OfferedTools are the tools that the model was told of, by their names in the
	// registry; nil are all. One that is not among them is unknown.
	OfferedTools []string
}

// WithConstraints returns the admission with terms that its judgements hold under.
func (a *Admission) WithConstraints(terms Constraints) *Admission {
	b := *a
	b.constraints = terms
	return &b
}

// constraints are those that a call is judged under.
func (c *judgement) constraints() *Constraints {
	if c.admission == nil {
		return &Constraints{}
	}
	return &c.admission.constraints
}

// refusedByConstraints refuses an input that was read, because of its kind or because of
// the whole answer. A refused text loses its kind, so that it is not released as text.
func (c *Call) refusedByConstraints() *refusal.Error {
	refused := c.constraints().RefuseAll
	if refused == nil && c.parsed.Kind == parser.Text {
		refused = c.constraints().RefuseText
	}
	if refused != nil {
		c.parsed.Kind, c.parsed.Text = parser.Refused, nil
	}
	return refused
}

// checkConstraints is the last step of the stage parse: the answer may be a call, and one of
// this tool.
func checkConstraints(_ context.Context, c *Call) error {
	t := c.constraints()
	switch {
	case t.RefuseCall != nil:
		return t.RefuseCall
	case t.OnlyTools != nil && !slices.Contains(t.OnlyTools, c.parsed.Name):
		if t.RefuseOther == nil {
			return refusal.New(refusal.ToolChoiceViolated, "The request does not allow a call of this tool.")
		}
		return t.RefuseOther
	}
	return nil
}

// offers tells whether the model was told of a tool.
func (t *Constraints) offers(name string) bool {
	return t.OfferedTools == nil || slices.Contains(t.OfferedTools, name)
}

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
	// RefuseAll is a fault of the answer as a whole: each of its inputs is refused with it.
	RefuseAll *refusal.Error
	// RefuseText refuses a text, and Call a call, once it was read and is one.
	RefuseText, RefuseCall *refusal.Error
	// OnlyTools are the tools that alone may be called, by their names in the registry,
	// and Other refuses a call of any other; nil names none.
	OnlyTools   []string
	RefuseOther *refusal.Error
	// OfferedTools are the tools that were offered to the model, by their names in the
	// registry; nil means all. Any other tool is unknown.
	OfferedTools []string
}

// WithConstraints returns the admission with terms that its judgements hold under.
func (a *Admission) WithConstraints(constraints Constraints) *Admission {
	b := *a
	b.constraints = constraints
	return &b
}

var unconstrained Constraints // read only

// constraints are those that a call is judged under.
func (c *judgement) constraints() *Constraints {
	if c.admission == nil {
		return &unconstrained
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

// offers reports whether a tool was offered to the model.
func (t *Constraints) offers(name string) bool {
	return t.OfferedTools == nil || slices.Contains(t.OfferedTools, name)
}

package turns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// ToolChoice is tool_choice of a request: what the answer must and must not be. Its zero value
// leaves that to the model.
type ToolChoice struct {
	None     bool
	Required bool
	Names    []string // tools that alone may be called, by their names on the wire; nil: any
	Forced   bool     // Names is one tool, named as such
	Single   bool     // the model may make one call in a turn
}

// satisfied means that the required call was made: afterwards the choice is the model's
// again.
func (c *ToolChoice) satisfied() {
	c.Required = false
	if c.Forced {
		c.Names = nil
	}
}

// paramChoice is the member of the choice, on every wire.
const paramChoice = "tool_choice"

// NarrowChoice sets the choice of the run: that of the request, narrowed to the offered tools.
// A choice that could never be met is refused now. tools are those that the request names; nil:
// it says nothing of them.
func (r *Run) NarrowChoice(requested ToolChoice, tools []string) error {
	c := &r.Choice
	*c = requested
	if !c.Required && c.Names == nil {
		return nil
	}
	if len(tools) == 0 && (tools != nil || r.Mode == gateway.ModeEnforce) {
		return Bad(paramChoice, "\"tool_choice\" asks for a call, but there are no \"tools\".")
	}
	c.Names = slices.DeleteFunc(slices.Clone(c.Names), func(name string) bool { return !r.Offer.has(name) })
	if len(r.Offer.Tools) == 0 || requested.Names != nil && len(c.Names) == 0 {
		asked := requested.Names
		if asked == nil {
			asked = r.leftOutNames
		}
		if i := slices.IndexFunc(asked, func(wire string) bool { return r.leftOut[wire] != "" }); i >= 0 {
			return Bad(paramChoice, "\"tool_choice\" asks for a call of the tool %s, which is left out of the offer, since it cannot be judged strictly: %s. Correct the tool, or leave \"tool_choice\" out.",
				parser.Quote(asked[i]), r.leftOut[asked[i]])
		}
		refused := refusal.New(refusal.PermissionDenied, "\"tool_choice\" asks for a call of a tool that this agent may not use here.")
		return &Failure{Refused: refused, Param: paramChoice}
	}
	return nil
}

// Constraints returns the request's constraints on the next answer.
func (r *Run) Constraints() gateway.Constraints {
	t := gateway.Constraints{OfferedTools: r.Offer.listed}
	if t.OfferedTools == nil && r.Mode == gateway.ModeEnforce && !r.CallsAreText() {
		t.OfferedTools = []string{}
	}
	if r.Mode == gateway.ModeCall && r.steps >= r.Route.Rules.MaxTurns {
		t.RefuseCall = refusal.New(refusal.BoundReached,
			fmt.Sprintf("The run has called tools in %d turns, and may not go on. Nothing of the last call was executed.", r.steps))
	}
	c := &r.Choice
	if c.None {
		t.RefuseCall = choiceViolated("The request rules calls out. Answer in text.")
	}
	if c.Required {
		t.RefuseText = choiceViolated("The request asks for a call, not for text. Send a call of a tool.")
	}
	if c.Names != nil {
		t.RefuseOther = RefuseOtherTools(r.AllowedTools(maxNamedTools))
		for _, wire := range c.Names {
			name, _ := r.Admission.ToolName(wire)
			t.OnlyTools = append(t.OnlyTools, name)
		}
		if c.Required {
			t.RefuseText = choiceViolated("The request asks for a call of " + r.AllowedTools(maxNamedTools) + ", not for text. Send it.")
		}
	}
	return t
}

// AnswerConstraints returns the constraints on an answer that is whole. Text is refused only where it
// stands in the place of the call that the request asks for: not beside a native call, and not where
// stopped says that the answer has none since it was cut off or filtered. To ask again would not help.
func (r *Run) AnswerConstraints(called, stopped bool) gateway.Constraints {
	t := r.Constraints()
	if called || stopped {
		t.RefuseText = nil
	}
	return t
}

// NoText is judged and recorded for an answer without a text that is passed on all the same: the
// provider has cut it off or filtered it, or the model has only thought. Only an answer of nothing at
// all is refused as empty.
const NoText = "(no text)"

// RefuseOtherTools is the refusal of a call of a tool that tool_choice does not name.
func RefuseOtherTools(named string) *refusal.Error {
	return choiceViolated("The request asks for a call of " + named + ". Call no other tool.")
}

// choiceViolated is the refusal of an answer that tool_choice rules out.
func choiceViolated(message string) *refusal.Error {
	return refusal.New(refusal.ToolChoiceViolated, message)
}

// maxNamedTools is how many names a refusal says.
const maxNamedTools = 16

// AllowedTools says which tools the choice names, as the model knows them, at most so many of
// them.
func (r *Run) AllowedTools(most int) string {
	names := slices.Clone(r.Choice.Names[:min(most, len(r.Choice.Names))])
	if r.CallsAreText() {
		for i, wire := range names {
			names[i], _ = r.Admission.ToolName(wire)
		}
	}
	if more := len(r.Choice.Names) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d others that it names", more))
	}
	return strings.Join(names, " or ")
}

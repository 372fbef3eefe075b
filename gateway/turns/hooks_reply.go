package turns

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/hooks"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// Hooks at texts. A judged text passes them in the kernel, whole or in pieces; takeHooked shows the
// rest that they left of it. Thoughts, and members beside a text, are shown unjudged, and pass the
// hooks here.

// hookThought is what hooks let out of a piece of a thought. Members that are no texts wait for the end.
func (x *exchange) hookThought(w *relay, d *Delta) (out rawjson.Object) {
	if w.thoughts == nil {
		w.thoughts = map[string]*hook.Texts{}
	}
	for _, name := range d.Part.Hooked {
		text, ok := rawjson.String(d.Beside.Get(name))
		if !ok {
			continue
		}
		if w.thoughts[name] == nil {
			w.thoughts[name] = x.Admission.Hooks().ModelText()
		}
		if text := window.Join(w.thoughts[name].Write([]byte(text))); len(text) > 0 {
			out = append(out, rawjson.Field(name, rawjson.Quote(text)))
		}
	}
	return out
}

// hookBeside has the hooks see what a reply has beside the texts that are judged, and shows the rest of
// the thoughts of a stream. It returns the refusal of a reply that they deny.
func (x *exchange) hookBeside(ctx context.Context, reply *Reply) *refusal.Error {
	if !x.Admission.Hooks().AtTexts() {
		return nil
	}
	var err error
	reply.Head, err = x.hookMembers(ctx, reply.Head, x.spec.Hooked)
	for _, a := range reply.Answers {
		for _, p := range a.Parts {
			switch {
			case err != nil:
				return refusal.From(refusal.Approval, err)
			case x.hides(p):
			case p.Kind == Thought && a.relay.thoughts != nil:
				err = x.endThought(ctx, a, p)
			default:
				err = x.hookPart(ctx, p)
			}
		}
	}
	if err != nil {
		return refusal.From(refusal.Approval, err)
	}
	return nil
}

// hides reports whether a part is not shown, whatever it says.
func (x *exchange) hides(p *Part) bool {
	return p.Kind == Thought && (x.Route.Rules.Reasoning == upstream.Drop || x.spec.HidesThoughtsInRuns && x.Mode == gateway.ModeCall)
}

// hookPart has the hooks see what a part has beside a judged text.
func (x *exchange) hookPart(ctx context.Context, p *Part) error {
	switch {
	case p.Kind == Summary, p.Kind == Unknown:
		left, err := x.Admission.Hooks().ModelValue(ctx, p.Raw)
		if err == nil {
			p.Raw = left
		}
		return err
	case p.Kind == Thought && len(p.Text) > 0:
		said := rawjson.Quote(p.Text)
		left, err := x.Admission.Hooks().ModelValue(ctx, said)
		if err != nil {
			return err
		}
		thought, ok := rawjson.String(left)
		switch {
		case !ok:
			return errors.New("a text that is none any more")
		case bytes.Equal(left, said):
		case p.Sealed:
			return refusal.New(refusal.HookDenied, "A hook of this gateway removes a part of the thinking of this answer, which cannot be done, since the model's provider has signed it. Answer without what must not be in it.")
		default:
			p.setText([]byte(thought))
		}
	}
	for _, m := range p.Beside {
		if !slices.Contains(p.Hooked, m.Name) {
			continue
		}
		left, err := x.Admission.Hooks().ModelValue(ctx, m.Value)
		if err != nil {
			return err
		}
		if !bytes.Equal(left, m.Value) {
			p.set(m.Name, left)
		}
	}
	return nil
}

// endThought shows what hooks leave of the rest of a thought that came in pieces.
func (x *exchange) endThought(ctx context.Context, a *Answer, p *Part) error {
	var rest rawjson.Object
	for _, m := range p.Beside {
		value := m.Value
		var err error
		if texts := a.relay.thoughts[m.Name]; texts != nil {
			var text []byte
			text, err = hooks.EndModelText(ctx, texts)
			value = rawjson.Quote(text)
		} else {
			value, err = x.Admission.Hooks().ModelValue(ctx, value)
		}
		if err != nil {
			return err
		}
		if string(value) != `""` {
			rest = append(rest, rawjson.Field(m.Name, value))
		}
	}
	if len(rest) > 0 && !a.relay.refused() {
		x.write(&Delta{Is: Grown, Answer: a, Part: p, Beside: rest}, nil)
	}
	return nil
}

// hookMembers has the hooks see some members.
func (x *exchange) hookMembers(ctx context.Context, o rawjson.Object, names []string) (rawjson.Object, error) {
	for _, m := range o {
		if !slices.Contains(names, m.Name) {
			continue
		}
		left, err := x.Admission.Hooks().ModelValue(ctx, m.Value)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(left, m.Value) {
			o = o.Set(m.Name, left)
		}
	}
	return o, nil
}

// takeHooked replaces the texts of an answer that passed by those that the hooks have left. The part
// of a text that was sent already is not in its report.
func (a *Answer) takeHooked(relayed bool) {
	if a.refused() {
		return
	}
	reports := a.decision.Reports
	if a.hasText {
		if left := reports[0].Pieces; left != nil && !relayed {
			a.setText(Text, left)
		}
		reports = reports[1:]
	}
	for _, kind := range []Kind{Refusal, Speech} {
		text := a.text(kind)
		if len(text) == 0 || kind == Speech && (IsBlank(text) || a.dropped) {
			continue
		}
		if left := reports[0].Pieces; left != nil {
			a.setText(kind, left)
		}
		reports = reports[1:]
	}
}

// setText gives each text of a kind what hooks have left of it.
func (a *Answer) setText(kind Kind, left []window.Piece) {
	var parts []*Part
	var lengths []int
	for _, p := range a.Parts {
		if p.Kind == kind {
			parts, lengths = append(parts, p), append(lengths, len(p.Text))
		}
	}
	for i, text := range window.Divide(left, lengths) {
		parts[i].setText(text)
	}
}

package turns

import (
	"bytes"
	"context"
	"slices"

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
			case p.Kind == Thought && x.Route.Rules.Reasoning == upstream.Drop:
			case p.Kind == Thought && a.relay.thoughts != nil:
				err = x.endThought(ctx, a, p)
			default:
				p.Beside, err = x.hookMembers(ctx, p.Beside, p.Hooked)
			}
		}
	}
	if err != nil {
		return refusal.From(refusal.Approval, err)
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
	if a.decision.Refusal() != nil {
		return
	}
	reports := a.decision.Reports
	if a.hasText {
		if left := reports[0].Pieces; left != nil && !relayed {
			a.setText(left)
		}
		reports = reports[1:]
	}
	for _, kind := range []Kind{Refusal, Speech} {
		p := a.part(kind)
		if p == nil || IsBlank(p.Text) && (kind == Speech || len(p.Text) == 0) || a.dropped && kind == Speech {
			continue
		}
		if left := reports[0].Pieces; left != nil {
			p.Text, p.Beside = append([]byte{}, window.Join(left)...), p.Beside.Without(p.Spoken...)
		}
		reports = reports[1:]
	}
}

// setText gives each text what hooks have left of it.
func (a *Answer) setText(left []window.Piece) {
	var parts []*Part
	var lengths []int
	for _, p := range a.Parts {
		if p.Kind == Text {
			parts, lengths = append(parts, p), append(lengths, len(p.Text))
		}
	}
	for i, text := range window.Divide(left, lengths) {
		parts[i].Text = append([]byte{}, text...)
	}
}

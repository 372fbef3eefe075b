package chat

import (
	"bytes"
	"context"
	"slices"

	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/hooks"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// Hooks at texts. A judged text passes them in the kernel, whole or in pieces; takeHooked shows the
// rest that they left of it. Reasoning, and members beside a text, are shown unjudged, and pass the
// hooks here.

// hookedBeside are the members beside a text that hooks see.
var hookedBeside = []string{"annotations"}

// hookThoughts is what hooks let out of what a piece of a stream says of the model's thoughts. Members
// that are no texts wait for the end.
func (r *run) hookThoughts(w *relay, x chat.Extra) chat.Extra {
	var out chat.Extra
	for _, name := range reasoningMembers {
		text, ok := rawjson.String(x.Lookup(name))
		if !ok {
			continue
		}
		if w.thoughts[name] == nil {
			w.thoughts[name] = r.Admission.Hooks().ModelText()
		}
		if text := window.Join(w.thoughts[name].Write([]byte(text))); len(text) > 0 {
			out = append(out, chat.Member{Name: name, Value: rawjson.Quote(text)})
		}
	}
	return out
}

// hookBeside has the hooks see what an answer has beside the texts that are judged, and shows the rest of
// the thoughts of a stream. It returns the refusal of an answer that they deny.
func (r *run) hookBeside(ctx context.Context, c *chat.Completion, relays map[int]*relay) *refusal.Error {
	if !r.Admission.Hooks().AtTexts() {
		return nil
	}
	var err error
	if c.Extra, err = r.hookMembers(ctx, c.Extra, []string{"citations"}); err != nil {
		return refusal.From(refusal.Approval, err)
	}
	seen := hookedBeside
	if r.Route.Rules.Reasoning != upstream.Drop {
		seen = slices.Concat(reasoningMembers, hookedBeside)
	}
	for i := range c.Choices {
		m := &c.Choices[i].Message
		w := relays[c.Choices[i].Index]
		if w == nil || w.thoughts == nil {
			if m.Extra, err = r.hookMembers(ctx, m.Extra, seen); err != nil {
				return refusal.From(refusal.Approval, err)
			}
			continue
		}
		var rest chat.Extra
		for _, x := range m.Extra {
			switch thought := w.thoughts[x.Name]; {
			case thought != nil:
				var text []byte
				if text, err = hooks.EndModelText(ctx, thought); len(text) > 0 {
					rest = append(rest, chat.Member{Name: x.Name, Value: rawjson.Quote(text)})
				}
			case slices.Contains(seen, x.Name):
				if x.Value, err = r.Admission.Hooks().ModelValue(ctx, x.Value); err == nil && slices.Contains(reasoningMembers, x.Name) {
					rest = append(rest, x)
				}
			}
			if err != nil {
				return refusal.From(refusal.Approval, err)
			}
		}
		r.stream.writeReasoning(completionHead{c.ID, c.Model, c.Created, c.Extra}, c.Choices[i].Index, rest)
		if m.Extra, err = r.hookMembers(ctx, m.Extra, hookedBeside); err != nil {
			return refusal.From(refusal.Approval, err)
		}
	}
	return nil
}

// hookMembers has the hooks see some members.
func (r *run) hookMembers(ctx context.Context, x chat.Extra, names []string) (chat.Extra, error) {
	left := x
	for i := range x {
		if !slices.Contains(names, x[i].Name) {
			continue
		}
		value, err := r.Admission.Hooks().ModelValue(ctx, x[i].Value)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(value, x[i].Value) {
			left = slices.Clone(left)
			left[i].Value = value
		}
	}
	return left, nil
}

// takeHooked replaces the texts of a choice that passed by those that the hooks have left. The part
// of a content that was sent already is not in its report.
func (j *judgedChoice) takeHooked(relayed bool) {
	if j.decision.Refusal() != nil {
		return
	}
	reports := j.decision.Reports
	if j.text {
		if left := reports[0].Pieces; left != nil && !relayed {
			content := string(window.Join(left))
			j.Message.Content = &content
		}
		reports = reports[1:]
	}
	if m := &j.Message; m.Refusal != nil && *m.Refusal != "" {
		if left := reports[0].Pieces; left != nil {
			text := string(window.Join(left))
			m.Refusal = &text
		}
		reports = reports[1:]
	}
	if j.audio.hasTranscript() && reports[0].Pieces != nil {
		j.audio.transcript, j.audio.data = string(window.Join(reports[0].Pieces)), "" // the speech says the rest, too
	}
}

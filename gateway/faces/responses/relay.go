package responses

import (
	"context"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/responses"
)

// relay passes a reply on while it arrives: the texts of its messages through the parser, and
// the model's reasoning and items of the provider's own as they come. From the first call on
// it holds everything back (RS-50).
type relay struct {
	run     *run
	ctx     context.Context //nolint:containedctx // of the application's request, for judgements
	from    *responses.Stream
	stream  *gateway.Stream // of the texts; nil: none came
	message *responses.Item // that is being written
	fed     int             // bytes of its current part that went through the parser
	all     int             // bytes of the texts of all messages that did
	holds   bool
	sent    bool            // some text was sent
	taken   map[string]bool // approvals that calls at the provider were made by
}

// begin begins with the events of a stream.
func (w *relay) begin(from *responses.Stream) {
	w.from, w.holds = from, w.run.buffersWhole()
	w.run.stream.BeginTurn(from.Reply())
}

// close judges the texts together with the calls beside them. The rest of the texts, which came
// while everything was held, goes through the parser first.
func (w *relay) close(ctx context.Context, texts []byte, cut bool, beside ...gateway.Input) *gateway.Decision {
	w.stream.Write(texts[w.all:])
	d := w.stream.Close(ctx, cut, beside...)
	w.stream = nil
	return d
}

// abandon records the text that was sent of a reply that broke off.
func (w *relay) abandon(ctx context.Context) {
	if w.stream != nil {
		w.stream.Close(context.WithoutCancel(ctx), true).Release()
		w.stream = nil
	}
}

// pass passes an event on, if it may be.
func (w *relay) pass(event responses.Event) error {
	item := event.Item
	if w.holds || event.Kind == responses.Nothing || event.Kind == responses.Begun {
		return nil
	}
	s := w.run.stream
	switch {
	case item == nil:
		s.PassOther(w.from, nil)
		return nil
	case item.Class == responses.Call, item.Class == responses.Approval:
		w.holds = true
		return nil
	case item.Class == responses.Message:
		return w.passMessage(event)
	case item.Class == responses.Reasoning && w.run.Route.Rules.Reasoning == upstream.Drop:
		return nil
	}
	switch event.Kind {
	case responses.Added:
		switch item.Type {
		case "tool_search_call": // whose call_id may change until it has ended
		case "mcp_call", "mcp_list_tools": // which are compared once they have
		default:
			s.AddItem(item)
		}
	case responses.Ended:
		if w.holds = w.run.refuseRemote(item, w.taken) != nil; w.holds {
			return nil
		}
		s.EndItem(item)
	case responses.Other:
		s.PassOther(w.from, item)
	}
	return nil
}

// passMessage sends what an event has released of a message.
func (w *relay) passMessage(event responses.Event) error {
	item, s := event.Item, w.run.stream
	if w.message != item {
		if w.message != nil && !w.message.Done || event.Kind != responses.Added {
			w.holds = true // two messages at once
			return nil
		}
		w.message, w.fed = item, 0
	}
	if event.Kind == responses.Other {
		s.PassAnnotation(w.from, item)
		return nil
	}
	for {
		at := s.PartOf(item)
		if at == len(item.Parts) {
			break
		}
		part := item.Parts[at]
		if part.Refusal {
			w.holds = true // it is short, and judged apart
			return nil
		}
		if err := w.feed(item, part); err != nil || w.holds {
			return err
		}
		if !part.Closed || at == len(item.Parts)-1 && !item.Done {
			return nil // its annotations may follow
		}
		s.EndPart(item)
		w.fed = 0
	}
	if item.Done {
		s.EndItem(item)
	}
	return nil
}

// feed sends what the parser releases of the new text of a part. Where a text has ended and the
// parser still holds some of it, nothing more is sent before the verdict.
func (w *relay) feed(item *responses.Item, part *responses.Part) error {
	if len(part.Text) > w.fed {
		if w.stream == nil {
			stream, err := w.run.Admission.WithConstraints(w.run.Constraints()).Stream(w.ctx, w.run.Mode, true)
			if err != nil {
				return err
			}
			w.stream = stream
		}
		out := w.stream.Write(part.Text[w.fed:])
		w.all += len(part.Text) - w.fed
		w.fed = len(part.Text)
		if len(out) > 0 {
			w.sent = true
			w.run.stream.WriteText(item, out)
		}
	}
	w.holds = w.stream != nil && w.stream.Refused() || part.Closed && w.run.stream.TextOf(item) < len(part.Text)
	return nil
}

// buffersWhole reports whether a stream is sent only once it has been judged: if that is
// configured, if a later part decides on an earlier one, or if hooks are to see it.
func (r *run) buffersWhole() bool {
	rules := &r.Route.Rules
	return rules.StreamBuffer == upstream.Whole || r.Choice.Required || rules.NativeProse == upstream.Drop || r.Admission.Hooks().AtTexts()
}

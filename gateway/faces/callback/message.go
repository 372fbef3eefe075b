package callback

import (
	"context"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// message is a message that was read: its call, and its effect.
type message struct {
	id, group string
	digest    string
	post      func(context.Context, *calls.Executor, calls.CallbackMessage) error
}

// read reads a message by the rules of its type. It masks the token of the callback address
// in every text that is passed on.
func read(body []byte, token string) (message, *refusal.Error) {
	value, err := parser.ReadValue(body, maxDepth)
	if err != nil {
		return message{}, malformed("%v", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return message{}, malformed("found no object")
	}
	digest := digest(object)
	mask(object, token)
	r := reader{object: object, token: token}
	m := message{digest: digest, group: r.text("group_id", true)}
	switch kind := r.text("type", true); kind {
	case "tool_result":
		m.id = r.text("id", true)
		m.post = posting((*calls.Executor).Complete, r.answer())
	case "oauth":
		m.id = r.text("id", true)
		m.post = posting((*calls.Executor).SaveAuthURL, r.authorization())
	case "subscription_event":
		m.id = r.text("tool_call_id", true)
		m.post = posting((*calls.Executor).PublishEvent, r.event())
	case "view_update":
		view := r.view()
		m.post = func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
			p.ID = p.CallID // the message names the thread alone, and its address the call
			return k.PutView(ctx, p, view)
		}
	case "user_choice":
		m.id = r.text("id", true)
		m.post = posting((*calls.Executor).SaveChoice, r.choice(digest))
	default:
		r.fail("found the type %s; expected tool_result, oauth, subscription_event, user_choice or view_update", parser.Quote(kind))
	}
	r.text("call_id", false)
	return m, r.refused
}

// posting hands what was read of a message to the method that takes it.
func posting[T any](take func(*calls.Executor, context.Context, calls.CallbackMessage, T) error,
	read T) func(context.Context, *calls.Executor, calls.CallbackMessage) error {
	return func(ctx context.Context, k *calls.Executor, p calls.CallbackMessage) error {
		return take(k, ctx, p, read)
	}
}

// event reads a subscription_event.
func (r *reader) event() events.Event {
	text, isText := r.object["text"].(string)
	if !isText || len(text) > events.MaxEventBytes {
		r.fail("text is missing, no string, or longer than %d bytes", events.MaxEventBytes)
	}
	return events.Event{Text: text, Associative: r.flag("associative"), Final: r.flag("final")}
}

// authorization reads where a person must go.
func (r *reader) authorization() string {
	text := r.text("auth_url", true)
	if !weburl.IsPublic(text) {
		r.fail("auth_url is no URL that people are sent to: https at a public name of the DNS, in plain ASCII, without user info")
	}
	return text
}

// view reads a view_update.
func (r *reader) view() events.View {
	kind := r.text("view_type", true)
	if len(kind) > events.MaxViewTypeBytes || !ascii.IsVisible(kind) {
		r.fail("view_type is not of at most %d visible characters of ASCII", events.MaxViewTypeBytes)
	}
	content, isObject := r.object["content"].(map[string]any)
	if !isObject {
		r.fail("content is missing, or no object")
	}
	view, ok := events.NewView(kind, content)
	if !ok {
		r.fail("content is longer than %d bytes, or has names that are equal once hidden characters are escaped", events.MaxViewBytes)
	}
	return view
}

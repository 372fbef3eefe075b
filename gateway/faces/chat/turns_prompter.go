package chat

import (
	"context"
	"strings"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/upstream/chat"
)

// Prompt makes the face a turns.Prompter.
func (f *Face) Prompt(ctx context.Context, p turns.Prompt, v *turns.Conversation) (turns.Ended, *turns.Failure) {
	r, err := f.newPrompt(ctx, p, v)
	if err != nil {
		return turns.Ended{}, turns.FailureOf(err)
	}
	if failed := r.Turns(ctx, r); failed != nil {
		refused := r.gaveUp(failed)
		if !refused {
			r.keep(v)
		}
		return turns.Ended{Refused: refused}, failed
	}
	m := &r.last.choices[0].Message
	if !r.Admission.Hooks().AtTexts() { // else what was shown is what the hooks have left
		if r.shown = nil; m.Content != nil {
			r.shown = []byte(*m.Content)
		} else if m.Refusal != nil {
			r.shown = []byte(*m.Refusal)
		}
	}
	r.keep(v)
	finish := r.last.choices[0].FinishReason
	return turns.Ended{Cut: parser.Truncates(finish), Filtered: finish == "content_filter"}, nil
}

// gaveUp reports whether a run failed because the model did not correct what was refused.
func (r *prompt) gaveUp(failed *turns.Failure) bool {
	refused := failed.Refused
	return refused != nil && failed.Result != nil && (refused.Code == refusal.LoopDetected || r.RepairableRefusal(refused))
}

// prompt is the run of a prompt.
type prompt struct {
	*run
	sink     turns.Sink
	observer turns.Observer
	before   int    // messages, before the user's
	shown    []byte // of the content of the last turn
	rest     bool   // the rest of that turn was shown
}

func (f *Face) newPrompt(ctx context.Context, p turns.Prompt, v *turns.Conversation) (*prompt, error) {
	admission, err := f.options.Executor.Admit(ctx, p.Request)
	if err != nil {
		return nil, err
	}
	opened, err := f.options.Open(server.Request{Request: p.Request}, admission, upstream.ChatWire, p.Model)
	if err != nil {
		return nil, err
	}
	members := rawjson.Object{rawjson.Field("model", rawjson.Quote(p.Model)), rawjson.Field("messages", []byte("[]")), rawjson.Field("stream", []byte("true"))}
	r := &run{Run: opened, request: &request{members: members, model: p.Model, stream: true, n: 1}, repairsShown: true}
	if err := r.checkMembers(); err != nil {
		return nil, err
	}
	if err := r.SetMode(string(upstream.Orchestrate)); err != nil {
		return nil, err
	}
	r.ClientRuns = p.ClientRuns
	if err := r.SetOffer(nil, nil); err != nil {
		return nil, err
	}
	message := rawjson.Object{rawjson.Field("role", rawjson.Quote("user")), rawjson.Field("content", p.Content)}.Bytes()
	if r.MaxAdded = maxBodyBytes - v.Size() - len(message); r.MaxAdded < 0 || len(v.Messages) >= maxMessages {
		return nil, refusal.New(refusal.BoundReached, "The conversation is as long as one may be. Begin another one.")
	}
	if err := r.writeSystem(p.System); err != nil {
		return nil, err
	}
	run := &prompt{run: r, sink: p.Sink, observer: p.Observer, before: len(r.conversation.messages) + len(v.Messages)}
	for _, m := range v.Messages {
		r.conversation.messages = append(r.conversation.messages, m)
	}
	r.conversation.add(message)
	r.stream, r.Observer, r.Asker = run, run, p.Asker
	return run, nil
}

// writeSystem begins the conversation with the system message, if there is something to say.
func (r *run) writeSystem(text string) error {
	if r.Route.Rules.Protocol == upstream.Text && len(r.Offer.Tools) > 0 {
		system, err := r.systemPrompt()
		if err != nil {
			return err
		}
		text = strings.TrimSuffix(system+"\n"+text, "\n")
	}
	if text != "" {
		r.conversation.add(chatMessage("system", text))
	}
	return nil
}

// keep takes the messages of a run that has ended into the conversation, and what was shown of the
// last turn. The user's message alone is not kept: nothing became of it.
func (r *prompt) keep(v *turns.Conversation) {
	if !isBlank(string(r.shown)) {
		r.conversation.add(chatMessage("assistant", string(r.shown)))
	}
	if added := r.conversation.messages[r.before:]; len(added) > 1 {
		for _, m := range added {
			v.Messages = append(v.Messages, m)
		}
	}
}

// Append adds the last turn to the conversation.
func (r *prompt) Append(outcomes []calls.Outcome) int {
	r.shown = nil // it is in the message
	return r.run.Append(outcomes)
}

func (r *prompt) beginTurn() {
	r.shown, r.rest = nil, false
	r.sink.BeginTurn()
}

func (r *prompt) writeText(_ completionHead, _ int, text, _ []byte) {
	r.shown = append(r.shown, text...)
	r.sink.Text(text)
}

// writeReasoning shows what the model thought: the first member that is a text. Others say the same.
func (r *prompt) writeReasoning(_ completionHead, _ int, x chat.Extra) {
	if r.Route.Rules.Reasoning == upstream.Drop {
		return
	}
	for _, name := range reasoningMembers {
		if text, ok := rawjson.String(x.Lookup(name)); ok && text != "" {
			r.sink.Reasoning(text)
			return
		}
	}
}

// Pace has nothing to hold back, and nothing keeps the client's connection alive.
func (r *prompt) Pace(bool) {}

func (r *prompt) shows() bool { return true }

// showRest shows the text of a turn that passed, as far as it was not released before.
func (r *prompt) showRest() {
	j := &r.last.choices[0]
	passed := j.decision.Refusal() == nil
	if !passed || r.rest {
		return
	}
	r.rest = true
	if j.buffered {
		r.writeReasoning(completionHead{}, j.Index, j.Message.Extra)
	}
	if j.released() && len(j.decision.Reports[0].Text) > 0 {
		r.writeText(completionHead{}, j.Index, j.decision.Reports[0].Text, nil)
	}
	if m := &j.Message; m.Refusal != nil && *m.Refusal != "" {
		r.writeText(completionHead{}, j.Index, []byte(*m.Refusal), nil)
	}
}

// Judged, Running and Ended make it the observer of its run: the rest of a turn is shown as soon as
// the turn has passed.
func (r *prompt) Judged(t *turns.Turn) {
	r.showRest()
	r.observer.Judged(t)
}

func (r *prompt) Running(t *turns.Turn) {
	r.showRest()
	r.observer.Running(t)
}

func (r *prompt) Ended(t *turns.Turn, outcomes []calls.Outcome) { r.observer.Ended(t, outcomes) }

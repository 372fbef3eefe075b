package openai

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// Sink takes what a prompt shows during its run. Its methods are called by the goroutine of
// the run, and must not keep what they are given.
type Sink interface {
	// BeginTurn says that what follows is of another turn of the model.
	BeginTurn()
	// Text is a piece of the content that was judged and released.
	Text(text []byte)
	// Reasoning is a piece of what the model thought, which is not judged.
	Reasoning(text string)
}

// Conversation is a conversation that a face leads itself, over any number of prompts: its
// messages as the model gets them, without the system message, which each prompt makes anew. The
// zero value is empty. It is for one prompt at a time.
type Conversation struct {
	// Messages are written in the protocol of the model, and only grow.
	Messages []json.RawMessage
}

// size is how long the messages are.
func (v *Conversation) size() (size int) {
	for _, m := range v.Messages {
		size += len(m)
	}
	return size
}

// Prompt is what a user says in a Conversation, and who follows the run.
type Prompt struct {
	Request gateway.Request // its inputs are ignored
	Model   string
	// System is what the system message tells the model beside its tools; it may be empty.
	System string
	// Content is that of the user's message: a string, or a list of parts, as JSON.
	Content []byte
	Sink    Sink
	// ClientRuns, Observer and Asker are those of turns.Run.
	ClientRuns func(gateway.Tool) bool
	Observer   turns.Observer
	Asker      turns.Asker
}

// Ended says how a prompt has ended.
type Ended struct {
	Cut      bool // the answer is cut: a bound of tokens was reached
	Filtered bool // the provider's filter of contents has ended it
	// Refused means that turns of the model were refused and it did not correct them. The
	// conversation is as it was before the prompt.
	Refused bool
}

// Prompt runs the loop for one message of a user, until the model answers in text: what is judged
// goes to the sink while it comes, and Callgate runs the tools. A refused turn is repaired also
// where some of its text was shown, since each turn is shown apart. A prompt that fails before
// anything was shown or executed leaves the conversation as it was.
func (f *Face) Prompt(ctx context.Context, p Prompt, v *Conversation) (Ended, *turns.Failure) {
	r, err := f.newPrompt(ctx, p, v)
	if err != nil {
		return Ended{}, turns.FailureOf(err)
	}
	if failed := r.Turns(ctx, r); failed != nil {
		refused := r.gaveUp(failed)
		if !refused {
			r.keep(v)
		}
		return Ended{Refused: refused}, failed
	}
	m := &r.last.choices[0].Message
	if !r.Admission.HooksText() { // else what was shown is what the hooks have left
		if r.shown = nil; m.Content != nil {
			r.shown = []byte(*m.Content)
		} else if m.Refusal != nil {
			r.shown = []byte(*m.Refusal)
		}
	}
	r.keep(v)
	finish := r.last.choices[0].FinishReason
	return Ended{Cut: parser.Truncates(finish), Filtered: finish == "content_filter"}, nil
}

// gaveUp reports whether a run failed because the model did not correct what was refused.
func (r *prompt) gaveUp(failed *turns.Failure) bool {
	refused := failed.Refused
	return refused != nil && failed.Result != nil && (refused.Code == refusal.LoopDetected || r.RepairableRefusal(refused))
}

// prompt is the run of a prompt.
type prompt struct {
	*run
	sink     Sink
	observer turns.Observer
	before   int    // messages, before the user's
	shown    []byte // of the content of the last turn
	rest     bool   // the rest of that turn was shown
}

func (f *Face) newPrompt(ctx context.Context, p Prompt, v *Conversation) (*prompt, error) {
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
	if r.MaxAdded = maxBodyBytes - v.size() - len(message); r.MaxAdded < 0 || len(v.Messages) >= maxMessages {
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
func (r *prompt) keep(v *Conversation) {
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
func (r *prompt) writeReasoning(_ completionHead, _ int, x upstream.Extra) {
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

// Pace has nothing to hold back.
func (r *prompt) Pace(bool) {}

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

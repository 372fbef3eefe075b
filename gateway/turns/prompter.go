package turns

import (
	"context"
	"encoding/json"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
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

// Size is how long the messages are.
func (v *Conversation) Size() (size int) {
	for _, m := range v.Messages {
		size += len(m)
	}
	return size
}

// Prompt is a message of a user in a Conversation, and the observer of the run.
type Prompt struct {
	Request gateway.Request // its inputs are ignored
	Model   string
	// System is the text of the system message beside its tools; it may be empty.
	System string
	// Content is that of the user's message: a string, or a list of parts, as JSON.
	Content []byte
	Sink    Sink
	// ClientRuns, Observer and Asker are those of Run.
	ClientRuns func(gateway.Tool) bool
	Observer   Observer
	Asker      Asker
}

// PromptEnd says how a prompt has ended.
type PromptEnd struct {
	Cut bool // the answer is cut: a bound of tokens was reached
	// Refused means that turns of the model were refused and it did not correct them. The
	// conversation is as it was before the prompt.
	Refused bool
}

// Prompt runs the loop for one message of a user, until the model answers in text: what is
// judged goes to the sink while it comes, and Callgate runs the tools. A refused turn is
// repaired also where some of its text was shown, since each turn is shown apart. A prompt
// that fails before anything was shown or executed leaves the conversation as it was.
func (o Options) Prompt(ctx context.Context, wire Leader, p Prompt, v *Conversation) (PromptEnd, *Failure) {
	w := &sinkWriter{sink: p.Sink}
	x, led, err := o.lead(ctx, wire, p, v, w)
	if err != nil {
		return PromptEnd{}, FailureOf(err)
	}
	keep := func() {
		if !IsBlank(w.shown) {
			led.Say(w.shown)
		}
		if added := led.Messages(); len(added) > 1 { // of the user's message alone nothing became
			v.Messages = append(v.Messages, added...)
		}
	}
	if failed := x.Turns(ctx, x); failed != nil {
		refused := x.gaveUp(failed)
		if !refused {
			keep()
		}
		return PromptEnd{Refused: refused}, failed
	}
	a := x.last.Answers[0]
	if !x.Admission.Hooks().AtTexts() { // else what was shown is what the hooks have left
		if w.shown = a.text(Text); IsBlank(w.shown) {
			if refused := a.part(Refusal); refused != nil {
				w.shown = refused.Text
			}
		}
	}
	keep()
	return PromptEnd{Cut: parser.Truncates(a.Reason)}, nil
}

// gaveUp reports whether a run failed because the model did not correct what was refused.
func (x *exchange) gaveUp(failed *Failure) bool {
	refused := failed.Refused
	return refused != nil && failed.Result != nil && (refused.Code == refusal.LoopDetected || x.RepairableRefusal(refused))
}

// lead begins the run of a prompt.
func (o Options) lead(ctx context.Context, wire Leader, p Prompt, v *Conversation, w *sinkWriter) (*exchange, Led, error) {
	admission, err := o.Executor.Kernel.Admit(ctx, p.Request)
	if err != nil {
		return nil, nil, err
	}
	opened, err := o.Open(server.Request{Request: p.Request}, admission, wire.Spec().Wire, p.Model)
	if err != nil {
		return nil, nil, err
	}
	led := wire.Lead(p.Model)
	x := &exchange{Run: opened, wire: wire, spec: wire.Spec(), dialogue: ledBy{led, w}, writer: w, streams: true, follower: p.Observer}
	if err := x.begin(string(upstream.Orchestrate), nil, nil); err != nil {
		return nil, nil, err
	}
	x.ClientRuns = p.ClientRuns
	if err := x.SetOffer(nil, nil); err != nil {
		return nil, nil, err
	}
	if err := x.requireThread(); err != nil {
		return nil, nil, err
	}
	added, err := led.Load(p.System, v.Messages, p.Content)
	if err != nil {
		return nil, nil, err
	}
	if x.MaxAdded = x.spec.MaxBody - v.Size() - added; x.MaxAdded < 0 {
		return nil, nil, TooLong()
	}
	x.Observer, x.Asker = x, p.Asker
	return x, led, nil
}

// ledBy is the dialogue of a prompt.
type ledBy struct {
	Led
	writer *sinkWriter
}

// Append adds a turn, and with it what was shown of it.
func (d ledBy) Append(a *Answer, told []Told) int {
	d.writer.shown = nil
	return d.Led.Append(a, told)
}

// TooLong is the refusal of a prompt in a conversation that is as long as one may be.
func TooLong() *refusal.Error {
	return refusal.New(refusal.BoundReached, "The conversation is as long as one may be. Begin another one.")
}

// sinkWriter is the Writer of a prompt. It writes no bytes.
type sinkWriter struct {
	sink  Sink
	shown []byte // of the last turn, until that is in the conversation
}

func (w *sinkWriter) Turn(*Reply) {
	w.shown = nil
	w.sink.BeginTurn()
}

func (w *sinkWriter) text(text []byte) {
	if len(text) > 0 {
		w.shown = append(w.shown, text...)
		w.sink.Text(text)
	}
}

// thought shows what the model thought: the first member that is a text. Others say the same.
func (w *sinkWriter) thought(p *Part, said rawjson.Object) {
	for _, name := range p.Hooked {
		if text, ok := rawjson.String(said.Get(name)); ok && text != "" {
			w.sink.Reasoning(text)
			return
		}
	}
}

// Delta is of Writer.
func (w *sinkWriter) Delta(b []byte, d *Delta, text []byte) []byte {
	if d.Part.Kind == Thought {
		w.thought(d.Part, d.Beside)
	}
	w.text(text)
	return b
}

// Rest is of Writer.
func (w *sinkWriter) Rest(b []byte, _ *Answer, shown []Shown, _, _ bool) []byte {
	for _, p := range shown {
		switch p.Kind {
		case Thought:
			w.thought(p.Part, p.Beside)
		case Text, Refusal:
			w.text(p.Text)
		}
	}
	return b
}

// Close is of Writer.
func (w *sinkWriter) Close(b, _ []byte) []byte { return b }

// Whole is of Writer.
func (w *sinkWriter) Whole(*Reply, [][]Shown, []byte) []byte { return nil }

// Fail is of Writer.
func (w *sinkWriter) Fail(b []byte, _ *Failure) []byte { return b }

// Alive is of Writer.
func (w *sinkWriter) Alive(b []byte, _ string) []byte { return b }

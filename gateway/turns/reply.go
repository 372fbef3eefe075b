package turns

import (
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// Kind says what a part of an answer is. It alone decides how the part is judged, held and shown.
type Kind uint8

// The kinds.
const (
	Text    Kind = iota + 1 // judged: all texts of an answer are one text, in their order
	Refusal                 // the model's own refusal, judged apart: no call may stand beside it
	Speech                  // judged by its transcript
	Thought                 // not judged: shown as it comes, until the text is refused
	Call                    // the application, or Callgate, acts: no text behind it is shown before the verdict
	Stray                   // a call in a place that is none: it refuses the answer
	Ask                     // the provider asks to be allowed a call: judged by itself, answered, never shown
	Hosted                  // the provider acts, or has acted: shown where Row.Allowed lets it pass
	Summary                 // of the conversation, whose beginning it becomes: judged apart, since it may hold no call
	Unknown                 // of a type that has no row, which a switch lets pass
)

// Row is a type of part of a wire.
type Row struct {
	Type string
	Kind Kind
	// Called says in words for the model what such a part is where it is no call that is taken: "the member x".
	Called string
	// Hooked are the members that hooks see beside a text that is judged. Those of a thought are its texts, each of
	// which says the same; the first that is a text is shown where one is.
	Hooked []string
	// Spoken are the members that say the text once more: they go where a hook has changed it.
	Spoken []string
	// Text is the member of Part.Raw with the text.
	Text string
	// NoRepair says that a refusal of such a call cannot be told to the model.
	NoRepair bool
	// Allowed returns "" where the rules of the upstream let a part pass, and else what was found, and what of the
	// upstream's entry would let it; nil: each passes.
	Allowed func(*upstream.Rules, *Part) (found, key string)
}

// Part is a part of an answer.
type Part struct {
	*Row
	// Text is the model's, as far as it has come; after the verdict it is what hooks have left of it. Nobody keeps
	// a part of it over the next event. Nil: the provider states none.
	Text []byte
	Call CallPart
	// Beside are members that belong to the part and are shown with it.
	Beside rawjson.Object
	// Raw is the whole part as strict JSON, as the model gets it back; nil: its wire writes it anew.
	Raw []byte
	// Sealed says that a signature binds the text: hooks may deny it, not change it.
	Sealed bool
	// Cut says that the part has not ended by itself.
	Cut bool
	// Wire is what the wire itself knows of it.
	Wire any

	// Of an ordered wire: whether its beginning and its end were shown, or wait for the text before them, and how many
	// bytes of its text.
	begun, ended bool
	shown        int

	checked bool // whether the upstream's entry allows it
	fed     int  // bytes of its text, of a stream, that the kernel has read before the verdict
}

// hasKind reports whether it is something: what is nothing would be neither judged nor shown.
func (p *Part) hasKind() bool { return p != nil && p.Row != nil && p.Kind >= Text && p.Kind <= Unknown }

// set sets a member that hooks have changed.
func (p *Part) set(name string, value []byte) {
	if p.Beside.Get(name) != nil {
		p.Beside = p.Beside.Set(name, value)
	}
	if p.Raw != nil {
		members, _ := rawjson.Members(p.Raw)
		p.Raw = members.Set(name, value).Bytes()
	}
}

// setText sets the text to what hooks have left of it.
func (p *Part) setText(text []byte) {
	p.Text = append([]byte{}, text...)
	p.Beside = p.Beside.Without(p.Spoken...)
	if p.Raw != nil {
		p.set(p.Row.Text, rawjson.Quote(text))
	}
}

// CallPart is what a call is for.
type CallPart struct {
	ID, Name, Group string // on the wire; each ID of an answer is another. Group is a toolset, a namespace, or a server
	// Arguments are the model's bytes. Nothing says that they are JSON.
	Arguments []byte
}

// End is why an answer ended.
type End uint8

// The ends.
const (
	Open   End = iota // it does not say so
	Done              // by itself
	Called            // by itself, to have its calls executed
	Cut               // for another reason, such as a bound or a filter: its calls may not be whole
	Paused            // for a reason that needs no text, such as a request to go on
)

// Answer is one answer of a reply.
type Answer struct {
	Index  int
	Parts  []*Part
	End    End
	Reason string         // the wire's word
	Beside rawjson.Object // members of the whole answer
	// Others says that it holds what a text is not needed beside, such as a picture. A part that the provider acts
	// on is such as well.
	Others bool
	// Partial says that the reason names why the text may be a part: it was cut or filtered, or is to go on.
	Partial bool
	// Fault refuses the answer where it has calls: they cannot be told apart.
	Fault *refusal.Error
	// RefuseCalls refuses its calls: the end does not say that they are whole.
	RefuseCalls *refusal.Error
	// Withheld names the reason where the answer ended for a filter of the provider, or since the model refuses: its calls are
	// refused by it, and nothing is asked for again. Empty: it did not.
	Withheld string

	relay relay
	judgement
}

// refused reports whether the answer was refused.
func (a *Answer) refused() bool { return a.decision.Refusal() != nil }

// part is the first part of a kind, or nil.
func (a *Answer) part(kind Kind) *Part {
	for _, p := range a.Parts {
		if p.Kind == kind {
			return p
		}
	}
	return nil
}

// calls are the calls of the answer.
func (a *Answer) calls() (calls []*Part) {
	for _, p := range a.Parts {
		if p.Kind == Call {
			calls = append(calls, p)
		}
	}
	return calls
}

// text is the text of all parts of a kind, which are one.
func (a *Answer) text(of Kind) (text []byte) {
	for _, p := range a.Parts {
		switch {
		case p.Kind != of:
		case text == nil:
			text = slices.Clip(p.Text) // most answers have no other
		default:
			text = append(text, p.Text...)
		}
	}
	return text
}

// isManyJSON reports whether the text of a part is JSON and others have text too: what an application reads depends on whether it
// takes each, the last, or all together.
func (a *Answer) isManyJSON() bool {
	texts, whole := 0, false
	for _, p := range a.Parts {
		if p.Kind == Text && !IsBlank(p.Text) {
			texts++
			whole = whole || json.Valid(p.Text)
		}
	}
	return texts > 1 && whole
}

// thinks reports whether the answer says what the model thought.
func (a *Answer) thinks() bool {
	p := a.part(Thought)
	if p == nil {
		return false
	}
	for _, m := range p.Beside {
		switch string(m.Value) {
		case "null", `""`, "[]", "{}":
		default:
			return true
		}
	}
	return len(p.Text) > 0 || p.Raw != nil
}

// unfinished reports whether the answer has ended before the model was done.
func (a *Answer) unfinished() bool { return a.End == Cut || a.End == Paused }

// needsText reports whether an answer without a text and a call is one of nothing.
func (a *Answer) needsText() bool {
	switch {
	case a.unfinished():
		return false
	case a.End == Open:
		return true
	}
	others := a.Others || a.part(Hosted) != nil || a.part(Summary) != nil || a.part(Unknown) != nil
	return !others && (a.End == Called || !a.thinks())
}

// Reply is what a provider answers to one request.
type Reply struct {
	ID, Model string
	Created   int64
	Head      rawjson.Object // members beside its answers
	Answers   []*Answer
	Usage     Taken
}

// Taken is what a reply has taken, by the words of its provider.
type Taken struct {
	Tokens int64  // 0: it does not say
	Raw    []byte // the provider's object, in which no call can be found; nil: none
	Spent  budget.Usage
}

// What says what a Delta has added.
type What uint8

// The deltas.
const (
	Grown What = iota + 1 // more of a text, or of a thought
	Start                 // a part begins; on a wire without order, one that holds back what comes behind it
	Mark                  // something of a part, or, without a part, between them
	Stop                  // a part ends
	Ping                  // nothing
)

// Delta is what one event has added. It is valid until the next one.
type Delta struct {
	Is     What
	Answer *Answer // of the reply: never nil
	Part   *Part   // nil: Ping, and a Mark between parts
	From   int     // Grown: Part.Text[From:] is new, and all before it was told of
	Name   string  // Mark: the type of an event between parts
	Raw    []byte  // Start: the part as it begins; Mark: what it has, as JSON
	// Beside are the members that came with it: of a thought the thought itself.
	Beside rawjson.Object
}

// Shown is a part of an answer that passed, as the application gets it.
type Shown struct {
	*Part
	// Text is what passed of a text, a refusal or a speech, and was not sent before; nil: none. A thought, which is not
	// judged, has what it says in its part.
	Text []byte
	// Begun says that its beginning was sent.
	Begun bool
	// Arguments are those of a call that passed.
	Arguments []byte
	// Question is what the caller is asked of a call.
	Question *calls.Question
}

// Told is what the model is told of a call of its last turn, or, where Call is nil, of the whole turn.
type Told struct {
	Call      *Part
	Arguments []byte // as the conversation may have them
	Result    []byte
	Failed    bool // the result is a refusal, or an error
}

// judgement is what was judged of an answer.
type judgement struct {
	decision  *gateway.Decision
	hasText   bool                      // the first report is on its text
	texts     int                       // the reports before those of native calls
	blank     bool                      // the text is none, and was not judged: it is shown as it came
	dropped   bool                      // text and speech go nowhere
	buffered  bool                      // nothing of a stream was sent before it was judged
	rested    bool                      // what passed of it was sent
	questions map[*Part]*calls.Question // that the caller is asked, where the turn ends the run for that
	rest      []byte                    // what was released and not sent
}

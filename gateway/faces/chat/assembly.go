package chat

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// firstContent is how many bytes the content of an answer has room for at first.
const firstContent = 512

// choice is one answer while its pieces arrive.
type choice struct {
	answer                turns.Answer
	onePart               [1]*turns.Part
	text, refusal, legacy *turns.Part
	thought               *turns.Part
	thoughts              mergedMembers // what the model thought
	message               mergedMembers // beside the content
	beside                mergedMembers // of the choice
	finish                finish
	calls                 []*call
	byIndex               map[int]*call // the call last started at each index
	byID                  map[string]*call
	other                 *piece // a message beside the deltas that is not like those before it
	lastIndex             int    // the highest index
	severalOpen           bool   // a call began before the arguments of the one before were complete
}

// call is one call while its pieces arrive.
type call struct {
	turns.Part
	index     int    // its place in the message
	kind      string // empty, if the provider wrote none, means function
	elsewhere turns.Elsewhere
	isObject  bool // its arguments came as an object
	extra     mergedMembers
}

func (r *reader) choiceAt(index int) *choice {
	if r.choices == nil {
		r.choices, r.reply.Answers = r.oneChoice[:0], r.oneAnswer[:0]
	}
	for len(r.choices) <= index { // which is bounded
		r.choices = append(r.choices, nil)
	}
	if r.choices[index] == nil {
		c := &r.first
		if index > 0 {
			c = &choice{answer: turns.Answer{Index: index}}
		}
		r.choices[index] = c
		r.reply.Answers = append(r.reply.Answers, &c.answer)
	}
	return r.choices[index]
}

// begin adds a part to the answer.
func (c *choice) begin(row *turns.Row) *turns.Part {
	p := &turns.Part{Row: row}
	if c.answer.Parts == nil {
		c.answer.Parts = c.onePart[:0]
	}
	c.answer.Parts = append(c.answer.Parts, p)
	return p
}

// add adds a piece to its answer, and notes what it has added.
func (r *reader) add(c *choice, p *piece) error {
	if len(p.thoughts) > 0 {
		if c.thought == nil {
			c.thought = c.begin(rowThought)
		}
		r.bytes += c.thoughts.add(p.thoughts, concatStrings)
		r.deltas = append(r.deltas, turns.Delta{Is: turns.Grown, Answer: &c.answer, Part: c.thought, Beside: p.thoughts})
	}
	if p.hasText {
		if c.text == nil {
			c.text = c.begin(rowText)
		}
		if c.text.Text == nil {
			c.text.Text = make([]byte, 0, max(firstContent, len(p.text)))
		}
		from := len(c.text.Text)
		c.text.Text = append(c.text.Text, p.text...)
		// Of a document that has two pieces of one answer, the first delta has the text of both.
		if !slices.ContainsFunc(r.deltas, func(d turns.Delta) bool { return d.Part == c.text }) {
			r.deltas = append(r.deltas, turns.Delta{Is: turns.Grown, Answer: &c.answer, Part: c.text, From: from, Beside: p.beside})
		}
	}
	if p.hasRefusal {
		if c.refusal == nil {
			c.refusal = c.begin(rowRefusal)
			c.refusal.Text = []byte{}
		}
		c.refusal.Text = append(c.refusal.Text, p.refusal...)
	}
	if p.legacy && c.legacy == nil {
		c.legacy = c.begin(rowLegacy)
		r.deltas = append(r.deltas, turns.Delta{Is: turns.Start, Answer: &c.answer, Part: c.legacy})
	}
	r.bytes += len(p.text) + len(p.refusal) + p.unknown + c.message.add(p.message, concatStrings) + c.beside.add(p.beside, replaceStrings)
	for i := range p.calls {
		if err := r.addCall(c, &p.calls[i]); err != nil {
			return &turns.Unfit{Fault: err, Cure: cureOfCalls}
		}
	}
	return nil
}

var errManyCalls = fmt.Errorf("more than %d calls", maxToolCalls)

// cureOfCalls is what helps where the calls of a provider do not fit together.
const cureOfCalls = "If this happens often, the operator can set `protocol: text` for the model: it then writes its calls as text."

// addCall adds a piece to its call, or starts a call with it.
func (r *reader) addCall(c *choice, p *callPiece) error {
	var known *call
	var err error
	if !r.whole { // else each is a call of its own
		if known, err = c.callOf(p); err != nil {
			return err
		}
	}
	if known == nil {
		if known, err = c.startCall(p, r.whole); err != nil {
			return err
		}
		r.bytes += memberCost
		r.deltas = append(r.deltas, turns.Delta{Is: turns.Start, Answer: &c.answer, Part: &known.Part})
	} else {
		r.bytes -= len(known.Call.ID) + len(known.Call.Name)
		if err := c.identify(known, p); err != nil {
			return err
		}
	}
	switch begun := !turns.IsBlank(known.Call.Arguments); {
	case begun && !turns.IsBlank(p.arguments) && (known.isObject || p.isObject):
		return fmt.Errorf("arguments that are an object, and not the only ones, in call %d", known.index)
	case begun && known.Row == rowCall: // in front of the arguments, servers have data of their own
		if err := p.elsewhere.CheckPiece(p.arguments); err != nil {
			return err
		}
	}
	known.Call.Arguments, known.isObject = append(known.Call.Arguments, p.arguments...), known.isObject || p.isObject
	known.elsewhere = cmp.Or(known.elsewhere, p.elsewhere)
	r.bytes += len(known.Call.ID) + len(known.Call.Name) + len(p.arguments) + known.extra.add(p.extra, concatStrings)
	return nil
}

// callOf returns the call that a piece continues; nil: the piece begins one.
func (c *choice) callOf(p *callPiece) (*call, error) {
	if p.index >= 0 {
		known := c.byIndex[p.index]
		if known != nil && known.Call.ID != "" && p.id != "" && p.id != known.Call.ID {
			return nil, nil // another call at the same index: one provider streams so
		}
		return known, nil
	}
	if len(c.calls) == 0 {
		if p.name == "" && p.id == "" {
			return nil, errors.New("a piece of a call without an index, before any call")
		}
		return nil, nil
	}
	last := c.calls[len(c.calls)-1]
	known := c.byID[p.id] // of no id, nil
	switch {
	case known != nil && p.name != "" && known.Call.Name != "":
		return nil, fmt.Errorf("two calls with one id and without an index, at call %d", known.index)
	case known != nil:
		return known, nil
	case p.name != "" && last.Call.Name != "", p.id != "" && last.Call.ID != "":
		return nil, nil
	case c.severalOpen:
		return nil, errors.New("a piece of a call without an index, where it may belong to several calls")
	}
	return last, nil
}

// identify takes over an id and a name that come late, each once. A call without an id may not
// repeat its name: that may be another call.
func (c *choice) identify(known *call, p *callPiece) error {
	switch {
	case p.name != "" && known.Call.Name != "" && p.name != known.Call.Name:
		return fmt.Errorf("a name that changes within call %d", known.index)
	case p.name != "" && known.Call.Name != "" && known.Call.ID == "":
		return fmt.Errorf("a name twice in a call without an id, in call %d", known.index)
	case p.kind != "" && p.kind != cmp.Or(known.kind, kindFunction):
		return fmt.Errorf("a type that changes within call %d", known.index)
	case p.id != "" && known.Call.ID == "":
		if c.byID[p.id] != nil {
			return fmt.Errorf("an id at two indexes, at call %d", known.index)
		}
		known.Call.ID, c.byID[p.id] = p.id, known
	}
	known.Call.Name = cmp.Or(known.Call.Name, p.name)
	return nil
}

// startCall starts a call with its first piece.
func (c *choice) startCall(p *callPiece, whole bool) (*call, error) {
	index := p.index
	if index < 0 {
		if index = 0; len(c.calls) > 0 {
			index = c.lastIndex + 1
		}
	}
	before := c.byIndex[index]
	switch {
	case len(c.calls) == maxToolCalls:
		return nil, errManyCalls
	case whole:
	case p.id != "" && c.byID[p.id] != nil:
		return nil, fmt.Errorf("an id at two indexes, at call %d", index)
	case before == nil && len(c.calls) > 0 && index < c.lastIndex:
		return nil, fmt.Errorf("an index below the one before, at call %d", index)
	case before == nil && len(c.calls) > 0 && index > c.lastIndex+1 && p.id == "" && p.name == "":
		return nil, fmt.Errorf("a gap in the indexes before a piece without an id and a name, at call %d", index)
	}
	row := rowCall
	if p.kind != "" && p.kind != kindFunction {
		row = rowOther
	}
	started := &call{Part: turns.Part{Row: row, Call: turns.CallPart{ID: p.id, Name: p.name}}, index: len(c.calls), kind: p.kind}
	c.answer.Parts = append(c.answer.Parts, &started.Part)
	if c.calls = append(c.calls, started); whole {
		return started, nil
	}
	if n := len(c.calls); n > 1 && !rawjson.Valid(c.calls[n-2].Call.Arguments) {
		c.severalOpen = true
	}
	if c.byIndex == nil {
		c.byIndex, c.byID = map[int]*call{}, map[string]*call{}
	}
	c.byIndex[index] = started
	if p.id != "" {
		c.byID[p.id] = started
	}
	c.lastIndex = max(c.lastIndex, index)
	return started, nil
}

// isLike reports whether two pieces say the same, white space around a text aside. One whose arguments may stand elsewhere
// is like none.
func (p *piece) isLike(q *piece) bool {
	return bytes.Equal(bytes.TrimSpace(p.text), bytes.TrimSpace(q.text)) && bytes.Equal(p.refusal, q.refusal) && p.legacy == q.legacy &&
		slices.EqualFunc(p.calls, q.calls, func(a, b callPiece) bool {
			return a.name == b.name && cmp.Or(a.kind, kindFunction) == cmp.Or(b.kind, kindFunction) &&
				turns.SameArguments(a.arguments, b.arguments) && a.elsewhere.Check(a.arguments) == nil
		})
}

// said is what the deltas have said so far.
func (c *choice) said() *piece {
	p := &piece{legacy: c.legacy != nil}
	if c.text != nil {
		p.text = c.text.Text
	}
	if c.refusal != nil {
		p.refusal = c.refusal.Text
	}
	for _, call := range c.calls {
		p.calls = append(p.calls, callPiece{name: call.Call.Name, kind: call.kind, arguments: call.Call.Arguments})
	}
	return p
}

// hold keeps a message beside the deltas, unless it says what they have said so far.
func (r *reader) hold(c *choice, p *piece) error {
	switch {
	case c.other != nil && p.isLike(c.other), p.isLike(c.said()):
		return nil
	case c.other != nil:
		return errors.New("messages beside the deltas that differ")
	}
	c.other = p
	r.bytes += p.unknown
	return nil
}

// check takes the message that stands in place of the deltas, and returns why the answer is not taken.
func (r *reader) check(c *choice) error {
	if said := c.said(); c.other != nil && !c.other.isLike(said) {
		if said.hasOutput() {
			return errors.New("a message that does not say what its deltas say")
		}
		c.other.thoughts = nil // they would come behind what a stream has shown
		r.whole = true         // as its calls are
		if err := r.add(c, c.other); err != nil {
			return err
		}
	}
	for _, call := range c.calls {
		if err := call.elsewhere.Check(call.Call.Arguments); err != nil && call.Row == rowCall {
			return err
		}
	}
	return nil
}

// settle gives the answer what was put together of its pieces.
func (r *reader) settle(c *choice) {
	a := &c.answer
	a.Reason, a.End, a.Partial = c.finish.reason, endOf(c.finish.reason), parser.Truncates(c.finish.reason)
	switch {
	case isFilter(a.Reason):
		a.Withheld = "the finish_reason " + a.Reason
	case a.End == turns.Cut && !parser.Truncates(a.Reason):
		a.RefuseCalls = refusal.New(refusal.TruncatedOutput, "The answer ended with the finish_reason "+a.Reason+", which does not say that its calls are complete; none of them was executed. Send the whole call again.")
	}
	if c.thought != nil {
		c.thought.Beside = c.thoughts.object()
	}
	a.Beside = c.beside.object()
	message := c.message.object()
	if beside := message.Without(memberAudio); len(beside) > 0 {
		if c.text == nil {
			c.text = c.begin(rowText)
		}
		c.text.Beside = beside
		images := message.Get("images")
		a.Others = images != nil && !turns.IsNothing(images)
	}
	if spoken := r.speech(message.Get(memberAudio)); spoken != nil {
		a.Parts = append(a.Parts, spoken)
	}
	ids := map[string]bool{}
	for _, call := range c.calls {
		call.Beside = call.extra.object()
		if call.Call.ID == "" { // the application and the model refer to it
			call.Call.ID = "call_" + rand.Text()
		}
		if id := call.Call.ID; a.Fault == nil && (!ascii.IsPlainID(id) || ids[id]) {
			a.Fault = refusal.New(refusal.UpstreamUnavailable,
				"The model's answer has a call whose id is not plain, or two calls with one id; none of its calls was used. "+cureOfCalls)
		}
		ids[call.Call.ID] = true
	}
}

package chat

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// Bounds of an answer: of indexes, of its id in bytes, and of how deep it nests.
const (
	maxToolCalls = 1024
	maxIDLength  = 256
	maxDepth     = 132
)

// reader reads one reply. Its faults say what was found, and never the text there.
type reader struct {
	asked      int  // how many answers were asked for; 0: one. It decides whether a choice may lack its index
	dropsAudio bool // speech goes nowhere
	whole      bool // the reply is no stream
	done       bool // [DONE] was read

	reply   turns.Reply
	choices []*choice // by index; nil: not started
	head    mergedMembers
	bytes   int
	deltas  []turns.Delta

	template sse.Template
	learned  piece // that of the document of the template
	pieces   []piece
	document []byte // that is read
	places   []sse.Place
	textAt   int    // where the content begins, and after learn its place; -1: there is none
	failed   bool   // a choice of this document finished for the reason error
	stated   error  // by the provider
	object   []byte // what the document says that it is

	first     choice // most replies have no other
	oneChoice [1]*choice
	oneAnswer [1]*turns.Answer
	oneDelta  [1]turns.Delta
	onePiece  [1]piece
	onePlace  [1]sse.Place
}

// piece is what a document has of one answer. Its values are parts of the document.
type piece struct {
	index         int    // -1: it states none
	reason        string // empty: none yet
	text, refusal []byte
	hasText       bool
	hasRefusal    bool
	legacy        bool // it has the legacy member function_call
	found         bool // it has the member with its message
	thoughts      rawjson.Object
	message       rawjson.Object // members beside the content
	beside        rawjson.Object // members of the choice
	calls         []callPiece
	other         *piece // what the member of the other form says: the whole message, beside or in place of deltas
	unknown       int    // bytes of members that go nowhere, and are a part of the answer all the same
}

// callPiece is what a document has of one call.
type callPiece struct {
	index          int // -1: it states none
	id, kind, name string
	arguments      []byte // as the model wrote them
	isObject       bool   // and not a piece of a text
	elsewhere      turns.Elsewhere
	extra          rawjson.Object
}

func (r *reader) Reply() *turns.Reply { return &r.reply }

// State is of turns.Reader.
func (r *reader) State() (held, size int, at turns.Progress) {
	switch {
	case r.done:
		return r.bytes, r.bytes, turns.Ended
	case len(r.reply.Answers) >= max(r.asked, 1) && r.unfinished(false) == nil:
		return r.bytes, r.bytes, turns.Settled // not each provider sends [DONE], or closes the connection
	}
	return r.bytes, r.bytes, turns.Coming
}

// AddsNothing is of turns.Reader.
func (*reader) AddsNothing(_, _ []byte) bool { return false }

// Event reads a chunk.
func (r *reader) Event(name, data []byte) ([]turns.Delta, error) {
	if r.deltas = r.deltas[:0]; r.deltas == nil {
		r.deltas = r.oneDelta[:0]
	}
	switch {
	case upstream.IsDone(data):
		if err := r.unfinished(true); err != nil {
			return nil, fmt.Errorf("%w: [DONE] came with %w", turns.ErrIncomplete, err)
		}
		r.done = true
		return nil, nil
	case string(name) == "error":
		return nil, &turns.ProviderError{Failure: upstream.ReadFailure(data)}
	case isPing(name) && !hasChoices(data):
		return nil, nil
	case r.template.Match(data):
		p := &r.learned
		var err error
		if p.text, err = rawjson.Unquote(r.template.Values[r.textAt]); err != nil {
			return nil, err
		}
		return r.deltas, r.addPiece(p)
	}
	if err := r.read(data, "delta", "message"); err != nil {
		return nil, err
	}
	for i := range r.pieces {
		if err := r.addPiece(&r.pieces[i]); err != nil {
			return nil, err
		}
	}
	r.learn(data)
	return r.deltas, nil
}

func (r *reader) addPiece(p *piece) error {
	c := r.choiceAt(p.index)
	if err := c.finish.observe(p); err != nil {
		return err
	}
	if err := r.add(c, p); err != nil || p.other == nil || p.other.isLike(p) {
		return err
	}
	return r.hold(c, p.other)
}

// learn keeps the form of a chunk that has one piece of text alone, of one answer.
func (r *reader) learn(data []byte) {
	r.template.Forget()
	if len(r.pieces) != 1 || r.textAt < 0 {
		return
	}
	p := r.pieces[0]
	if p.hasRefusal || p.legacy || p.reason != "" || len(p.calls) > 0 || p.other != nil {
		return
	}
	for _, members := range []*rawjson.Object{&p.thoughts, &p.message, &p.beside} {
		for i := range *members {
			(*members)[i].Value = slices.Clone((*members)[i].Value)
		}
	}
	slices.SortFunc(r.places, func(a, b sse.Place) int { return a.Start - b.Start })
	r.textAt = slices.IndexFunc(r.places, func(p sse.Place) bool { return p.Start == r.textAt })
	r.learned = p
	r.template.Learn(data, r.places)
}

// End is of turns.Reader.
func (r *reader) End() error {
	switch err := r.unfinished(r.whole); {
	case r.done || err == nil || len(r.choices) == 0 && r.whole:
	case r.whole: // nothing says that it was cut, and nothing that it was not
		return errors.New("calls in a choice without a finish_reason to say that they are complete")
	default:
		return fmt.Errorf("%w with %w", turns.ErrIncomplete, err)
	}
	if len(r.choices) == 0 {
		return errors.New("an answer without a choice")
	}
	if slices.Contains(r.choices, nil) { // what was sent of the others is still to be recorded
		return errors.New("choices whose indexes are not 0 and up")
	}
	for _, c := range r.choices {
		if err := r.check(c); err != nil {
			return err
		}
	}
	r.reply.Head = append(r.reply.Head, r.head.object()...)
	r.reply.Answers = r.reply.Answers[:0]
	for _, c := range r.choices {
		r.settle(c)
		r.reply.Answers = append(r.reply.Answers, &c.answer)
	}
	return nil
}

// Whole reads a completion.
func (r *reader) Whole(body []byte) error {
	r.whole = true
	if err := r.read(body, "message", "delta"); err != nil {
		return err
	}
	for i := range r.pieces {
		p := &r.pieces[i]
		switch {
		case !p.found && p.other == nil:
			return errors.New("a choice without a message")
		case p.index < len(r.choices) && r.choices[p.index] != nil:
			return errors.New("choices whose indexes are not 0 and up")
		}
		if err := r.addPiece(p); err != nil {
			return err
		}
	}
	return r.End()
}

// each calls take for each member of an object. The bytes of a value reach to the end of the document, which is how note
// finds their place.
func each(value []byte, take func(name, value []byte) error) error {
	return rawjson.EachMember(value, func(name []byte, start, end int) error { return take(name, value[start:end]) })
}

// isPing reports whether an event of such a name or type is a sign of life.
func isPing(name []byte) bool {
	return slices.Contains([]string{"ping", "heartbeat", "keepalive"}, ascii.Folded(string(name)))
}

// hasChoices reports whether an event has a piece of an answer.
func hasChoices(data []byte) bool {
	o, _ := rawjson.Members(data)
	return slices.ContainsFunc(o, func(m rawjson.Member) bool { return m.Name == "choices" })
}

// textOf is a string; null is none.
func textOf(value []byte) (text []byte, stated bool, err error) {
	switch {
	case rawjson.IsNull(value):
		return nil, false, nil
	case value[0] != '"':
		return nil, false, errors.New("a value that is not a string or null")
	}
	text, err = rawjson.Unquote(value)
	return text, true, err
}

// label is a string that decides nothing; any other value is an empty one.
func label(value []byte) string {
	text, _, _ := textOf(value)
	return string(text)
}

// read reads a completion or a chunk. inner is the member of a choice with its message or delta, and other the
// member of the other form.
func (r *reader) read(document []byte, inner, other string) error {
	if err := rawjson.Check(document, maxDepth); err != nil {
		return err
	}
	if r.document == nil {
		r.pieces, r.places = r.onePiece[:0], r.onePlace[:0]
	}
	r.document, r.pieces, r.places = document, r.pieces[:0], r.places[:0]
	r.textAt, r.failed, r.stated, r.object = -1, false, nil, nil
	chosen, used, more, unknown, ping, counted := false, false, false, false, false, false
	var choices []byte
	var notices []string
	err := each(bytes.TrimLeft(document, " \t\r\n"), func(name, value []byte) error {
		switch string(name) {
		case "choices":
			chosen, choices = true, value
		case "usage":
			used, counted = true, value[0] == '{'
			r.readUsage(value)
		case "error":
			r.readFailure(value)
		case "id":
			if r.reply.ID != "" {
				return nil
			}
			if id := label(value); len(id) <= maxIDLength && ascii.IsPlainID(id) {
				r.reply.ID = id
			}
		case "model":
			if r.reply.Model == "" {
				r.reply.Model = label(value)
			}
		case "object":
			r.object, _, _ = textOf(value)
		case "created":
			if f, err := strconv.ParseFloat(string(value), 64); err == nil && f >= 0 && f <= 1<<53 && r.reply.Created == 0 {
				r.reply.Created = int64(f)
			}
		case "type":
			more, ping = true, isPing(value)
		default:
			more = true
			switch member := string(name); {
			case slices.Contains(forwardedWords, member):
				if r.reply.Head.Get(member) == nil && isWord(value) {
					r.reply.Head = append(r.reply.Head, rawjson.Field(member, slices.Clone(value)))
				}
			case slices.Contains(forwardedOfAnswer, member):
				r.bytes += r.head.add(rawjson.Object{rawjson.Field(member, value)}, replaceRepeated)
			default:
				if isStray(name, value, "choices") {
					return errStray
				}
				if unknown = true; value[0] == '"' {
					r.note(value)
				}
				if slices.Contains(noticeMembers, member) {
					notices = append(notices, label(value))
				}
			}
		}
		return nil
	})
	if err == nil && chosen && !rawjson.IsNull(choices) {
		err = rawjson.EachOf(choices, func(value []byte) error { return r.readChoice(value, inner, other) })
	}
	switch {
	case r.stated != nil:
		return r.stated
	case err != nil && !errors.Is(err, rawjson.ErrNotObject):
		return err
	case ping && !chosen && !used && !r.whole:
		return nil
	case string(r.object) == "error" || err != nil || len(r.pieces) == 0 && (unknown || more && !chosen && !used):
		// Some servers send the failure itself in place of an answer, or beside choices that are none.
		failure := upstream.ReadFailure(document)
		// Beside an empty list of choices, what says so may also be a notice.
		notice := !r.whole && err == nil && chosen && !rawjson.IsNull(choices) &&
			(r.unfinished(false) == nil || failure.Code == "" && (counted || slices.Contains(notices, failure.Message)))
		if string(r.object) == "error" || failure.Message != "" && !notice {
			return &turns.ProviderError{Failure: failure}
		}
		if err != nil || !chosen && !used && string(r.object) != "chat.completion.chunk" {
			return cmp.Or(err, errors.New("an answer without choices"))
		}
	case r.failed: // the member error, which says why, may stand behind the choices
		return &turns.ProviderError{}
	}
	return r.settleIndexes()
}

// noticeMembers are members by which a provider says why it failed, or anything else.
var noticeMembers = []string{"title", "reason", "header", "status_msg"}

// note notes the place of a string that may be another one in the next chunk.
func (r *reader) note(literal []byte) (start int) {
	start = cap(r.document) - cap(literal) // it is a part of the document
	r.places = append(r.places, sse.Place{Start: start, End: start + len(literal)})
	return start
}

// isWord reports whether a JSON value is a short string that names something, in
// characters that stand for themselves.
func isWord(value []byte) bool {
	const most = 128
	n := len(value)
	return n > 2 && n <= most && value[0] == '"' && ascii.IsPlainID(string(value[1:n-1]))
}

// settleIndexes gives a choice without an index that of the only one.
func (r *reader) settleIndexes() error {
	for i := range r.pieces {
		if r.pieces[i].index >= 0 {
			continue
		}
		if len(r.pieces) > 1 || r.asked > 1 && !r.whole {
			return errors.New("a choice without an index, where it is not the only one")
		}
		r.pieces[i].index = 0
	}
	return nil
}

// readFailure reads the member error that a provider sends instead of an answer. Some servers
// write an empty one beside each answer.
func (r *reader) readFailure(value []byte) {
	if r.stated == nil && !turns.IsNothing(value) {
		r.stated = &turns.ProviderError{Failure: upstream.ReadFailure(slices.Concat([]byte(`{"error":`), value, []byte("}")))}
	}
}

// readUsage reads the usage. One that cannot be read is none: it decides nothing about the answer. Some providers
// count what the model thought in the total alone. Tokens that were read from a cache are part of the prompt's.
func (r *reader) readUsage(value []byte) {
	usage, ok := rawjson.Members(value)
	if !ok {
		return
	}
	var counts [3]int64
	for i, name := range []string{"prompt_tokens", "completion_tokens", "total_tokens"} {
		raw := usage.Get(name)
		if counts[i], ok = wholeNumber(raw); raw != nil && !ok {
			return
		}
	}
	prompt, completion, total := counts[0], counts[1], counts[2]
	raw := slices.Clone(rawjson.OneLine(value))
	if !rawjson.HoldsNoCall(raw) {
		raw = fmt.Appendf(nil, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, prompt, completion, total)
	}
	cached := min(turns.CachedTokens(raw, "prompt_tokens_details"), prompt)
	r.reply.Usage = turns.Taken{
		Tokens: max(total, turns.SaturatingAdd(prompt, completion)), Raw: raw,
		Spent: budget.Usage{Input: prompt - cached, CachedInput: cached, Output: max(completion, total-prompt)},
	}
}

// wholeNumber reads a whole number from 0, which some servers write as 12.0.
func wholeNumber(raw []byte) (n int64, ok bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return int64(f), err == nil && f >= 0 && f <= 1<<53 && f == math.Trunc(f)
}

// index reads an index below a bound; null is none.
func index(value []byte, bound int, of string) (int, error) {
	if rawjson.IsNull(value) {
		return -1, nil
	}
	n, ok := wholeNumber(bytes.Trim(value, `"`))
	switch {
	case !ok:
		return 0, errors.New("a value that is not a whole number from 0")
	case n >= int64(bound):
		return 0, fmt.Errorf("a %s beyond %d", of, bound)
	}
	return int(n), nil
}

func (r *reader) readChoice(value []byte, inner, other string) error {
	if len(r.pieces) == maxChoices {
		return fmt.Errorf("more than %d choices", maxChoices)
	}
	p := piece{index: -1}
	err := each(value, func(name, value []byte) (err error) {
		switch string(name) {
		case "index":
			p.index, err = index(value, maxChoices, "choice")
		case "finish_reason":
			var reason []byte
			reason, _, err = textOf(value)
			if p.reason = string(reason); err == nil && !isFinishReason(p.reason) {
				err = errors.New("a finish_reason that is not a plain word")
			}
		case "error":
			r.readFailure(value)
		case inner:
			if !rawjson.IsNull(value) {
				p.found = true
				err = r.readMessage(&p, value)
			}
		case other:
			switch {
			case value[0] == '{':
				p.other, err = r.readOther(value)
			case value[0] == '[' && !turns.IsNothing(value):
				err = errStray
			}
		default:
			if isStray(name, value, inner, other, kindFunction, "arguments") {
				return errStray
			}
			if member := string(name); slices.Contains(forwardedOfChoice, member) || member == memberLogprobs && !rawjson.IsNull(value) {
				p.beside = append(p.beside, rawjson.Field(member, value))
			}
		}
		return err
	})
	r.failed = r.failed || p.reason == "error"
	r.pieces = append(r.pieces, p)
	return err
}

// readOther reads a message where deltas are expected, or a delta in place of a message; nil: it says nothing. It is
// valid beyond the event.
func (r *reader) readOther(value []byte) (*piece, error) {
	places, textAt := len(r.places), r.textAt
	p := &piece{unknown: len(value)}
	err := r.readMessage(p, bytes.Clone(value))
	if r.places, r.textAt = r.places[:places], textAt; !p.hasOutput() {
		return nil, err
	}
	return p, err
}

// readMessage reads a message or a delta.
func (r *reader) readMessage(p *piece, value []byte) error {
	var thoughts []byte // those that stand in content
	err := each(value, func(name, value []byte) (err error) {
		switch string(name) {
		case "content":
			if value[0] == '[' {
				thoughts, err = p.readParts(value)
				return err
			}
			if p.text, p.hasText, err = textOf(value); p.hasText {
				r.textAt = r.note(value)
			}
		case "refusal":
			var text []byte
			var stated bool
			text, stated, err = textOf(value)
			p.refusal, p.hasRefusal = append(p.refusal, text...), p.hasRefusal || stated
		case "tool_calls":
			if value[0] == '[' {
				err = rawjson.EachOf(value, p.addCall)
			} else { // some servers write the only call
				err = p.addCall(value)
			}
		case "function_call":
			p.legacy, err = readLegacyCall(value)
		default:
			switch member := string(name); {
			case slices.Contains(reasoningMembers, member):
				p.thoughts = append(p.thoughts, rawjson.Field(member, rawjson.OneLine(value)))
			case slices.Contains(forwardedOfText, member) || member == memberAudio:
				p.message = append(p.message, rawjson.Field(member, value))
			case isStray(name, value, kindFunction, "arguments"):
				err = errStray
			default:
				p.unknown += len(value)
			}
		}
		return err
	})
	if len(thoughts) > 0 && p.thoughts.Get(thoughtMember) == nil {
		p.thoughts = append(p.thoughts.Without(thoughtMember), rawjson.Field(thoughtMember, rawjson.Quote(thoughts)))
	}
	return err
}

// isStray reports whether a member that is not read has calls: its name is nearly that of one that is read, or it stands in
// another place. others are more names of members that may have calls, or pieces of them, in this place.
func isStray(name, value []byte, others ...string) bool {
	return (turns.NamesCalls(name) || slices.Contains(others, ascii.Folded(string(name)))) && !turns.IsNothing(value)
}

var errStray = &turns.Unfit{Fault: errors.New("calls under a name, or in a place, where they are not read"), Cure: cureOfCalls}

// thoughtMember is the member in which most providers write what a model thought.
const thoughtMember = "reasoning_content"

// readParts reads content that is a list of parts, as Mistral writes it: the texts are one text, a
// refusal is that of the message, and what the model thought is returned.
func (p *piece) readParts(list []byte) (thoughts []byte, err error) {
	err = rawjson.EachOf(list, func(value []byte) error {
		var kind string
		var text, refusal, thought []byte
		var isText, isRefusal bool
		err := each(value, func(name, value []byte) (err error) {
			switch string(name) {
			case "type":
				var word []byte
				word, _, err = textOf(value)
				kind = string(word)
			case "text":
				text, isText, err = textOf(value)
			case "refusal":
				refusal, isRefusal, err = textOf(value)
			case "thinking", "summary":
				thought, err = readThinking(value)
			}
			return err
		})
		switch {
		case err != nil:
		case (kind == "text" || kind == "output_text") && isText:
			p.text, p.hasText = append(p.text, text...), true
		case kind == "refusal" && isRefusal:
			p.refusal, p.hasRefusal = append(p.refusal, refusal...), true
		case kind == "thinking", kind == "reasoning": // of which Databricks writes a summary
			thoughts = append(thoughts, thought...)
		case kind == "reference": // numbers of sources
		default:
			err = errors.New("a part of content of a type that is not known")
		}
		return err
	})
	return thoughts, err
}

// readThinking reads what the model thought: a text, or parts with one each.
func readThinking(value []byte) (thought []byte, err error) {
	if value[0] != '[' {
		thought, _, err = textOf(value)
		return thought, err
	}
	err = rawjson.EachOf(value, func(value []byte) error {
		return each(value, func(name, value []byte) error {
			if string(name) != "text" {
				return nil
			}
			text, _, err := textOf(value)
			thought = append(thought, text...)
			return err
		})
	})
	return thought, err
}

// readLegacyCall reads function_call, and reports whether it calls: some servers write it beside
// every text, with an empty name and no arguments.
func readLegacyCall(value []byte) (called bool, err error) {
	if value[0] != '{' {
		return !rawjson.IsNull(value) && string(value) != `""`, nil
	}
	err = each(value, func(name, value []byte) error {
		empty := (string(name) == "name" || string(name) == "arguments") && (rawjson.IsNull(value) || string(value) == `""`)
		called = called || !empty
		return nil
	})
	return called, err
}

// addCall reads one element of tool_calls. One in which no member says anything is none: some servers write it beside a
// text, or behind the calls.
func (p *piece) addCall(value []byte) error {
	if value[0] != '{' && turns.IsNothing(value) {
		return nil
	}
	c, err := readCall(value)
	switch {
	case err != nil:
		return err
	case len(c.arguments) == 0 && (c.kind == "" || c.kind == kindFunction) && turns.IsNothing(value, "index", "type"):
		return nil
	case len(p.calls) == maxToolCalls:
		return errManyCalls
	}
	p.calls = append(p.calls, c)
	return nil
}

// readCall reads one element of tool_calls. A name or an id where it is not read may begin another call.
func readCall(value []byte) (callPiece, error) {
	c := callPiece{index: -1}
	var name, id []byte // that stand elsewhere
	err := each(value, func(member, value []byte) (err error) {
		switch string(member) {
		case "index":
			c.index, err = index(value, maxToolCalls, "call")
		case "id":
			c.id, err = textOfCall(member, value)
		case "type":
			c.kind, err = textOfCall(member, value)
		case kindFunction:
			if !rawjson.IsNull(value) {
				err = c.readFunction(value)
			}
		default:
			switch c.elsewhere.Note(member, value); string(member) {
			case "name":
				name = value
			case "call_id", "tool_call_id":
				if !turns.IsNothing(value) {
					id = value
				}
			}
			if member := string(member); slices.Contains(forwardedOfCall, member) {
				c.extra = append(c.extra, rawjson.Field(member, value))
			}
		}
		return err
	})
	switch {
	case err != nil:
	case name != nil && !turns.IsNothing(name) && (c.name == "" || label(name) != c.name):
		err = errors.New("a call with a name that is not the name of its function")
	case id != nil && c.id == "":
		err = errors.New("a call with an id under another name")
	}
	return c, err
}

func (c *callPiece) readFunction(value []byte) error {
	return each(value, func(name, value []byte) (err error) {
		switch string(name) {
		case "name":
			c.name, err = textOfCall(name, value)
		case "arguments": // some servers write the object itself
			switch value[0] {
			case '{', '[': // a list is refused as the arguments that it is
				c.arguments, c.isObject = value, true
			case '"', 'n':
				c.arguments, _, err = textOf(value)
			default:
				err = errors.New("a call whose arguments are neither a string nor an object")
			}
		default:
			c.elsewhere.Note(name, value)
		}
		return err
	})
}

// textOfCall is a string of a call, which the fault names.
func textOfCall(member, value []byte) (string, error) {
	text, _, err := textOf(value)
	if err != nil {
		err = fmt.Errorf("a call whose %s is not a string", member)
	}
	return string(text), err
}

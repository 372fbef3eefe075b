package messages

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/strictjson"
)

// openBlock is a block while its deltas arrive. It is always the last one of the reply.
type openBlock struct {
	*Block
	text, thinking, signature, input []byte
	citations                        [][]byte
	compaction                       []member // content and encrypted_content, last values
	hasInput                         bool     // the start carried input
	signed                           bool     // a signature came
}

func (s *Stream) blockStart(e *event) error {
	switch {
	case e.block.checked == nil:
		return errors.New("a content_block_start without a block")
	case s.open != nil:
		return errors.New("a content block that opens within another")
	case s.whole:
		return errors.New("a content block after content in message_start")
	case s.reasoned:
		return errors.New("a content block after the stop_reason")
	case e.index != len(s.reply.Blocks):
		return errors.New("an index that is not the next one")
	case e.index == maxBlocks:
		return fmt.Errorf("more than %d content blocks", maxBlocks)
	}
	b, err := readBlock(e.block, &s.options)
	if err != nil {
		return err
	}
	if err := s.noteCall(&b); err != nil {
		return err
	}
	s.reply.Blocks = append(s.reply.Blocks, b)
	last := &s.reply.Blocks[e.index]
	s.open = &openBlock{Block: last, signed: len(last.signature) > 0}
	s.size += len(b.Raw) + 256 // what a block takes besides its bytes
	if b.Call != nil {
		s.open.hasInput = !isEmptyObject(b.Call.Input)
	}
	if b.Kind != Compaction { // which is shown whole
		s.showStart(last, e.index)
	}
	return nil
}

// showStart shows the beginning of a block, and what its start brings.
func (s *Stream) showStart(b *Block, index int) {
	s.show(Event{Kind: BlockStart, Index: index, Block: b.Kind, Name: b.Type, Call: b.Call, Raw: b.start()})
	for _, part := range b.parts() {
		part.Index = index
		s.show(part)
	}
}

// noteCall checks the id of a call, and begins to hold at the first one of the client.
func (s *Stream) noteCall(b *Block) error {
	if b.Call == nil {
		return nil
	}
	if s.ids[b.Call.ID] {
		return errors.New("two calls with the same id")
	}
	s.ids[b.Call.ID] = true
	if s.calls++; s.calls > maxCalls {
		return fmt.Errorf("more than %d calls", maxCalls)
	}
	s.holding = s.holding || b.Kind == Call
	return nil
}

// isEmptyObject reports whether JSON is {}.
func isEmptyObject(input []byte) bool {
	return len(input) > 1 && input[0] == '{' && input[len(input)-1] == '}' && len(bytes.TrimSpace(input[1:len(input)-1])) == 0
}

// deltaKind is the type of a delta.
type deltaKind int

const (
	noDelta deltaKind = iota
	textDelta
	inputDelta
	thinkingDelta
	signatureDelta
	citationsDelta
	compactionDelta
	deltaKindCount
)

// deltaNames are the types of deltas.
var deltaNames = []string{"text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta", "compaction_delta"}

// kindOfDelta is the kind of a type. It is asked twice for each event, and faster than a map.
func kindOfDelta(name string) deltaKind {
	switch name {
	case "text_delta":
		return textDelta
	case "input_json_delta":
		return inputDelta
	case "thinking_delta":
		return thinkingDelta
	case "signature_delta":
		return signatureDelta
	case "citations_delta":
		return citationsDelta
	case "compaction_delta":
		return compactionDelta
	}
	return noDelta
}

// delta is one delta as it was read.
type delta struct {
	kind       deltaKind
	name       string // its type
	value      []byte // the text
	citation   []byte // a JSON object
	compaction []member
	raw        []byte
}

func (s *Stream) blockDelta(e *event, data []byte) error {
	switch {
	case s.open == nil || e.index != len(s.reply.Blocks)-1:
		return errors.New("a delta that belongs to no open block")
	case e.delta == nil:
		return errors.New("a content_block_delta without a delta")
	}
	d, literal, err := readDelta(e.delta, &s.options)
	if err != nil {
		return err
	}
	if err := s.addDelta(d); err != nil {
		return err
	}
	if d.value != nil {
		s.form.Learn(data, []sse.Place{{Start: e.deltaAt + literal.start, End: e.deltaAt + literal.end}})
		s.formed.kind, s.formed.name = d.kind, d.name
	}
	return nil
}

type span struct{ start, end int }

// readDelta reads a delta. literal is the span of its text.
func readDelta(raw []byte, o *Options) (d *delta, literal span, err error) {
	d = &delta{raw: raw}
	values := map[string]span{}
	err = splitMembers(raw, func(name string, start, end int) error {
		if name == "type" {
			return readWord(&d.name, "a type", raw[start:end])
		}
		values[name] = span{start, end}
		if known := misspelt(name, deltaMembers); known != "" {
			return fmt.Errorf("a delta with another spelling of %s", known)
		}
		return nil
	})
	if err == nil && d.name == "" {
		err = errors.New("a delta without a type")
	}
	if err != nil {
		return nil, literal, err
	}
	d.kind = kindOfDelta(d.name)
	if name := textOf[d.kind]; name != "" {
		var found bool
		if literal, found = values[name]; !found {
			return nil, literal, fmt.Errorf("a %s without its text", d.name)
		}
		return d, literal, readText(&d.value, name, raw[literal.start:literal.end], false)
	}
	return d, literal, d.readParts(values, o)
}

var deltaMembers = []string{"type", "text", "partial_json", "thinking", "signature", "citation", "content", "encrypted_content"}

// textOf is the member that holds the text of each kind of delta that has one.
var textOf = [deltaKindCount]string{textDelta: "text", inputDelta: "partial_json", thinkingDelta: "thinking", signatureDelta: "signature"}

// readParts reads the members of a delta without text.
func (d *delta) readParts(values map[string]span, o *Options) error {
	switch d.kind {
	case citationsDelta:
		at := values["citation"]
		if at.end == 0 {
			return errors.New("a citations_delta without a citation")
		}
		var err error
		d.citation, err = readCitation(d.raw[at.start:at.end], o)
		return err
	case compactionDelta:
		for _, name := range []string{"content", "encrypted_content"} {
			at := values[name]
			value := d.raw[at.start:at.end]
			if len(value) == 0 || isNull(value) {
				continue
			}
			if value[0] != '"' {
				return fmt.Errorf("%s that is not a string", name)
			}
			d.compaction = append(d.compaction, member{name, bytes.Clone(value)})
		}
	}
	return nil
}

// fits reports whether a delta may continue a block.
func (d *delta) fits(b *Block) bool {
	switch d.kind {
	case textDelta, citationsDelta:
		return b.Kind == Text
	case inputDelta:
		return b.Call != nil
	case thinkingDelta, signatureDelta:
		return b.Type == "thinking"
	case compactionDelta:
		return b.Kind == Compaction
	}
	return b.Kind == Unknown
}

// addDelta adds a delta to the open block.
func (s *Stream) addDelta(d *delta) error {
	b := s.open
	switch {
	case d.kind != noDelta:
	case !s.options.Unknown:
		return unknown("a delta", d.name)
	case slices.ContainsFunc(deltaNames, func(known string) bool { return ascii.Folded(d.name) == ascii.Folded(known) }):
		return errors.New("a delta whose type is a known one in another spelling")
	}
	if !d.fits(b.Block) {
		return fmt.Errorf("a delta that does not fit a block of the type %s", b.Type)
	}
	event := Event{Kind: BlockDelta, Index: len(s.reply.Blocks) - 1, Block: b.Kind, Name: d.name, Text: d.value}
	switch d.kind {
	case textDelta:
		event.Kind = TextDelta
		b.text = append(b.text, d.value...)
	case inputDelta:
		if b.hasInput && len(d.value) > 0 {
			return errors.New("input both in the start of a block and in its deltas")
		}
		b.input = append(b.input, d.value...)
	case thinkingDelta:
		b.thinking = append(b.thinking, d.value...)
	case signatureDelta:
		if b.signed {
			return errors.New("two signatures of one block")
		}
		b.signature, b.signed = append(b.signature, d.value...), true
	case citationsDelta:
		if d.citation == nil {
			return nil
		}
		b.citations = append(b.citations, bytes.Clone(d.citation))
		event.Raw = citationDelta(d.citation)
	case compactionDelta:
		if b.compaction != nil {
			return errors.New("two deltas of a compaction")
		}
		b.compaction = d.compaction
	}
	s.size += len(d.value)
	if d.value == nil {
		s.size += len(d.raw)
		if event.Raw == nil {
			event.Raw = d.raw
		}
	}
	if b.Kind != Compaction {
		s.show(event)
	}
	return nil
}

func (s *Stream) blockStop(index int) error {
	b := s.open
	if b == nil || index != len(s.reply.Blocks)-1 {
		return errors.New("a content_block_stop that belongs to no open block")
	}
	if err := b.close(); err != nil {
		return err
	}
	s.open = nil
	s.form.Forget()
	if b.Kind == Compaction {
		s.showStart(b.Block, index)
	}
	s.show(Event{Kind: BlockStop, Index: index, Block: b.Kind})
	if !s.holding {
		s.reply.Shown = len(s.reply.Blocks)
	}
	return nil
}

// close puts the block together from its start and its deltas.
func (b *openBlock) close() error {
	var changes []member
	join := func(name string, start, deltas []byte) []byte {
		if len(deltas) == 0 {
			return start
		}
		all := append(bytes.Clone(start), deltas...)
		changes = append(changes, member{name, strictjson.AppendQuote(nil, all)})
		return all
	}
	b.Text = join("text", b.Text, b.text)
	b.Block.thinking = join("thinking", b.Block.thinking, b.thinking)
	b.Block.signature = join("signature", b.Block.signature, b.signature)
	if len(b.citations) > 0 {
		b.Citations = appendElements(b.Citations, b.citations)
		changes = append(changes, member{"citations", b.Citations})
	}
	if len(bytes.Trim(b.input, " \t\r\n")) > 0 { // else that of the start: a tool without parameters
		b.Call.Input = b.input
		input := b.input
		if !strictjson.Valid(input) {
			if b.Kind != Call {
				return errors.New("no strict JSON as the input of a call at the provider")
			}
			input = invalidInput(input)
		}
		changes = append(changes, member{"input", input})
	}
	changes = append(changes, b.compaction...)
	if len(changes) > 0 {
		b.Raw = with(b.Raw, changes...)
	}
	return nil
}

// appendElements appends elements to a JSON array, or begins one.
func appendElements(array []byte, elements [][]byte) []byte {
	b := []byte{'['}
	if inner := bytes.TrimSpace(array); len(inner) > 1 {
		b = append(b, bytes.TrimSpace(inner[1:len(inner)-1])...)
	}
	for _, e := range elements {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

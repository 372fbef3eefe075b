package messages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
)

func (r *reader) blockStart(e *event) error {
	switch {
	case e.block.checked == nil:
		return errors.New("a content_block_start without a block")
	case r.whole:
		return errors.New("a content block after content in message_start")
	case r.reasoned:
		return errors.New("a content block after the stop_reason")
	case e.index < 0 || len(r.blocks) > 0 && e.index <= r.blocks[len(r.blocks)-1].at:
		return errors.New("an index that does not rise")
	}
	b, err := r.add(e.block, false)
	if err != nil {
		return err
	}
	b.elsewhere = cmp.Or(b.elsewhere, e.elsewhere)
	b.at, b.open = e.index, true
	r.open++
	r.size += len(b.Raw) + 256 // what a block takes besides its bytes
	if b.calls() {
		b.hasInput = !isEmptyObject(b.Call.Arguments)
	}
	if b.Kind != turns.Summary { // which is shown whole
		r.begin(&b.Part)
	}
	return nil
}

// add reads a block, whole or as it begins, and adds it to the answer.
func (r *reader) add(raw part, whole bool) (*block, error) {
	b, err := readBlock(raw, &r.options, whole)
	if err != nil {
		return nil, err
	}
	if len(r.answer.Parts) == maxBlocks {
		return nil, fmt.Errorf("more than %d content blocks", maxBlocks)
	}
	if b.calls() {
		switch {
		case r.ids[b.Call.ID]: // results are matched by it
			return nil, errors.New("two calls with the same id")
		case len(r.ids) == maxCalls:
			return nil, fmt.Errorf("more than %d calls", maxCalls)
		case r.ids == nil:
			r.ids = map[string]bool{}
		}
		r.ids[b.Call.ID] = true
	}
	if b.Kind == turns.Call && b.isProgrammatic() && !r.options.programs {
		r.answer.Fault = refusal.New(refusal.PermissionDenied,
			"A program at the provider has called a tool, which is not allowed here. Call the tool itself.")
	}
	b.index = len(r.blocks)
	r.blocks, r.answer.Parts = append(r.blocks, b), append(r.answer.Parts, &b.Part)
	return b, nil
}

// begin notes that a block begins, and what its start brings.
func (r *reader) begin(p *turns.Part) {
	r.delta(turns.Delta{Is: turns.Start, Part: p, Raw: start(p)})
	if p.Kind == turns.Call {
		return
	}
	for _, d := range brought(p) {
		r.delta(d)
	}
}

// delta notes what an event has added.
func (r *reader) delta(d turns.Delta) {
	d.Answer = &r.answer
	r.deltas = append(r.deltas, d)
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

func (r *reader) blockDelta(e *event, data []byte) error {
	b := r.openAt(e.index)
	switch {
	case b == nil:
		return errors.New("a delta that belongs to no open block")
	case e.delta == nil:
		return errors.New("a content_block_delta without a delta")
	}
	d, literal, err := readDelta(e.delta)
	if err != nil {
		return err
	}
	elsewhere := cmp.Or(b.elsewhereIn(d.raw, "partial_json"), e.elsewhere)
	if b.Kind == turns.Call && !turns.IsBlank(b.input) { // in front of the input, servers have data of their own
		if err := elsewhere.CheckPiece(d.value); err != nil {
			return err
		}
	}
	b.elsewhere = cmp.Or(b.elsewhere, elsewhere)
	if err := r.addDelta(b, d); err != nil {
		return err
	}
	if d.value != nil && elsewhere == "" {
		r.form.Learn(data, []sse.Place{{Start: e.deltaAt + literal.start, End: e.deltaAt + literal.end}})
		r.formed.kind, r.formed.name, r.formedOf = d.kind, d.name, b
	}
	return nil
}

type span struct{ start, end int }

// readDelta reads a delta. literal is the span of its text.
func readDelta(raw []byte) (d *delta, literal span, err error) {
	d = &delta{raw: raw}
	values := map[string]span{}
	err = part{raw, raw}.spans(func(of []byte, start, end int) error {
		name := string(of)
		if name == "type" {
			return readWord(&d.name, "a type", raw[start:end])
		}
		values[name] = span{start, end}
		if turns.NamesCalls(of) && !turns.IsNothing(raw[start:end]) {
			return errStray
		}
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
		if rawjson.IsNull(raw[literal.start:literal.end]) {
			return d, literal, nil // a piece of nothing
		}
		return d, literal, readText(&d.value, name, raw[literal.start:literal.end], false)
	}
	return d, literal, d.readParts(values)
}

var deltaMembers = []string{"type", "text", "partial_json", "thinking", "signature", "citation", "content", "encrypted_content"}

// textOf is the member that holds the text of each kind of delta that has one.
var textOf = [deltaKindCount]string{textDelta: "text", inputDelta: "partial_json", thinkingDelta: "thinking", signatureDelta: "signature"}

// readParts reads the members of a delta without text.
func (d *delta) readParts(values map[string]span) error {
	switch d.kind {
	case citationsDelta:
		at := values["citation"]
		if at.end == 0 {
			return errors.New("a citations_delta without a citation")
		}
		var err error
		d.citation, err = readCitation(d.raw[at.start:at.end])
		return err
	case compactionDelta:
		for _, name := range []string{"content", "encrypted_content"} {
			at := values[name]
			value := d.raw[at.start:at.end]
			if len(value) == 0 || rawjson.IsNull(value) {
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
func (d *delta) fits(b *block) bool {
	switch d.kind {
	case textDelta, citationsDelta:
		return b.Kind == turns.Text
	case inputDelta:
		return b.calls()
	case thinkingDelta, signatureDelta:
		return b.Type == "thinking"
	case compactionDelta:
		return b.Kind == turns.Summary
	}
	return b.Kind == turns.Unknown
}

// openAt returns the open block with an index, or nil: servers open one before they stop the one before (AM-46).
func (r *reader) openAt(index int) *block {
	for _, b := range slices.Backward(r.blocks) {
		if b.at == index && b.open {
			return b
		}
	}
	return nil
}

// isBehindText reports whether a later block has text: all texts are judged as one, in the order of the blocks.
func (r *reader) isBehindText(b *block) bool {
	return slices.ContainsFunc(r.blocks[b.index+1:], func(later *block) bool { return later.Kind == turns.Text && len(later.Text) > 0 })
}

// addDelta adds a delta to an open block.
func (r *reader) addDelta(b *block, d *delta) error {
	switch {
	case d.kind != noDelta:
	case slices.ContainsFunc(deltaNames, func(known string) bool { return ascii.Folded(d.name) == ascii.Folded(known) }):
		return errors.New("a delta whose type is a known one in another spelling")
	case !r.options.unknown:
		return turns.UnknownType("a delta", d.name)
	}
	if !d.fits(b) {
		return fmt.Errorf("a delta that does not fit a block of the type %s", b.Type)
	}
	r.size += len(d.value)
	if d.value == nil {
		r.size += len(d.raw)
	}
	added := turns.Delta{Is: turns.Mark, Part: &b.Part, Raw: d.raw}
	switch d.kind {
	case textDelta, thinkingDelta:
		if d.kind == textDelta && len(d.value) > 0 && r.isBehindText(b) {
			return errors.New("a text that goes on behind a later one")
		}
		added.Is, added.From, added.Raw = turns.Grown, len(b.Text), nil
		b.Text = append(b.Text, d.value...)
	case inputDelta:
		if b.hasInput && len(d.value) > 0 {
			return errors.New("input both in the start of a block and in its deltas")
		}
		b.input = append(b.input, d.value...)
		return nil // which is shown whole, see endBlock: what came before a call and what came behind it are one input
	case signatureDelta:
		switch {
		case len(d.value) == 0:
			return nil
		case b.signed:
			return errors.New("two signatures of one block")
		}
		b.signature, b.signed, b.resigned = append(b.signature, d.value...), true, true
		b.Sealed = len(b.signature) > 0
		added.Raw = appendTextDelta(nil, signatureDelta, d.value)
	case citationsDelta:
		if d.citation == nil {
			return nil
		}
		b.citations = append(b.citations, bytes.Clone(d.citation))
		added.Raw = citationDelta(d.citation)
	case compactionDelta:
		if b.compaction != nil {
			return errors.New("two deltas of a compaction")
		}
		b.compaction = d.compaction
		return nil
	default:
		b.others = append(b.others, bytes.Clone(d.raw))
		b.Wire = b.others
	}
	r.delta(added)
	return nil
}

func (r *reader) blockStop(e *event) error {
	b := r.openAt(e.index)
	if b == nil {
		return errors.New("a content_block_stop that belongs to no open block")
	}
	b.elsewhere = cmp.Or(b.elsewhere, e.elsewhere)
	if turns.IsNothing(e.block.checked) {
		return r.endBlock(b)
	}
	again, err := parseBlock(e.block, &r.options, b.Type)
	if err != nil {
		return err
	}
	b.elsewhere = cmp.Or(b.elsewhere, again.elsewhere)
	if err := r.endBlock(b); err != nil {
		return err
	}
	if !b.isRestated(again) {
		return errRestated
	}
	return nil
}

// endBlock ends a block.
func (r *reader) endBlock(b *block) error {
	if err := b.close(); err != nil {
		return err
	}
	b.open = false
	r.open--
	r.form.Forget()
	switch {
	case b.Kind == turns.Summary:
		r.begin(&b.Part)
	case b.row.called && !b.hasInput:
		for _, d := range brought(&b.Part) {
			r.delta(d)
		}
	}
	r.delta(turns.Delta{Is: turns.Stop, Part: &b.Part})
	return nil
}

// close puts the block together from its start and its deltas.
func (b *block) close() error {
	var changes []member
	if len(b.Text) > b.start {
		changes = append(changes, member{b.Row.Text, rawjson.AppendQuote(nil, b.Text)})
	}
	if b.resigned {
		changes = append(changes, member{"signature", rawjson.AppendQuote(nil, b.signature)})
	}
	if len(b.citations) > 0 {
		citations := appendElements(b.Beside.Get("citations"), b.citations)
		b.Beside = rawjson.Object{rawjson.Field("citations", citations)}
		changes = append(changes, member{"citations", citations})
	}
	if len(bytes.Trim(b.input, " \t\r\n")) > 0 { // else that of the start: a tool without parameters
		b.Call.Arguments = b.input
		input := b.input
		if !rawjson.Valid(input) {
			if b.Kind != turns.Call {
				return errors.New("no strict JSON as the input of a call at the provider")
			}
			input = invalidInput(input)
		}
		changes = append(changes, member{"input", input})
	}
	if err := b.checkInput(); err != nil {
		return err
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

package messages

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
)

// blockMembers are the members that readers of blocks act on. Another spelling of one, as in
// Type, is refused: some readers do not tell it from the name.
var blockMembers = []string{"type", "text", "citations", "thinking", "signature", "data", "id", "name", "input", "caller", "toolset_name",
	"server_name", "tool_use_id", "content"}

// writtenWithin are the members of objects within a block, by the member that holds them.
var writtenWithin = map[string][]string{
	"caller": {"type", "tool_id"}, "from": {"model"}, "to": {"model"},
}

// writtenOfCitation are the members of a citation: places, and the text of a source.
var writtenOfCitation = []string{
	"type", "cited_text", "document_index", "document_title", "file_id", "title", "url", "source", "encrypted_index",
	"start_char_index", "end_char_index", "start_page_number", "end_page_number", "start_block_index", "end_block_index",
	"search_result_index",
}

// block is a content block while it is read.
type block struct {
	turns.Part
	row       *row
	signature []byte
	caller    string          // the type of who has called; empty where none is stated
	elsewhere turns.Elsewhere // the input of a call
	// While deltas arrive.
	index, at  int // its place in the answer, and its index on the wire
	open       bool
	start      int // bytes of the text that came with the start
	input      []byte
	citations  [][]byte
	compaction []member // content and encrypted_content, last values
	others     [][]byte // deltas of a block of an unknown type
	hasInput   bool     // the start carried input
	signed     bool     // a signature came
	resigned   bool     // in deltas
}

// readBlock reads a content block, whole or as it begins.
func readBlock(raw part, o *options, whole bool) (*block, error) {
	b, err := parseBlock(raw, o, "")
	if err != nil {
		return nil, err
	}
	return b, b.settle(raw, whole)
}

// parseBlock reads what a content block states. kind is its type where it states none.
func parseBlock(raw part, o *options, kind string) (*block, error) {
	var (
		b         = &block{}
		texts     [2][]byte // text and thinking
		citations []byte
		fold      string
	)
	err := raw.members(func(name string, member part) (err error) {
		value := member.checked
		switch name {
		case "type":
			err = readWord(&kind, "a type", value)
		case "text":
			err = readText(&texts[0], "text", value, true)
		case "citations":
			if !rawjson.IsNull(value) {
				citations, err = readCitations(value)
			}
		case "thinking":
			err = readText(&texts[1], "thinking", value, true)
		case "signature":
			err = readText(&b.signature, "a signature", value, true)
		case "id":
			b.Call.ID, err = readCallID(value)
		case "name":
			err = readName(&b.Call.Name, "the name of a tool", value, maxName)
		case "input":
			if !isBlank(value) { // else there is none, as in a start whose deltas bring it
				b.Call.Arguments = member.received
			}
		case "caller":
			err = readCaller(&b.caller, value)
		case "toolset_name", "server_name":
			err = readOptionalName(&b.Call.Group, name, value)
		default:
			if fold = cmp.Or(fold, misspelt(name, blockMembers)); turns.NamesCalls([]byte(name)) && !turns.IsNothing(value) {
				err = errStray
			}
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, errors.New("a content block without a type")
	case fold != "":
		return nil, fmt.Errorf("a content block with another spelling of %s", fold)
	}
	if b.row = rows[kind]; b.row == nil {
		b.row = &row{Row: turns.Row{Type: kind, Kind: turns.Unknown}}
	}
	b.Row = &b.row.Row
	b.elsewhere = b.elsewhereIn(raw.checked, b.row.written...)
	switch {
	case b.Kind == turns.Unknown && isDisguised(kind):
		return nil, errors.New("a content block whose type is a known one in another spelling")
	case b.Kind == turns.Unknown && !o.unknown:
		return nil, turns.UnknownType("a content block", kind)
	}
	switch b.Row {
	case &rowText.Row:
		b.Text = texts[0]
		if citations != nil {
			b.Beside = rawjson.Object{rawjson.Field("citations", citations)}
		}
	case &rowThinking.Row:
		b.Text = texts[1]
	}
	b.Text, b.signature = slices.Clip(b.Text), slices.Clip(b.signature) // they grow, and are parts of the document
	b.start, b.signed, b.Sealed = len(b.Text), len(b.signature) > 0, len(b.signature) > 0
	return b, nil
}

// calls reports whether a block is a call, of the client or at the provider.
func (b *block) calls() bool { return b.Kind == turns.Call || b.row.called }

// elsewhereIn is where an object of a call may have the input, in a member that is not one of its own.
func (b *block) elsewhereIn(object []byte, own ...string) (found turns.Elsewhere) {
	if b.Kind != turns.Call {
		return ""
	}
	_ = rawjson.Each(object, func(name, value []byte) error {
		if !slices.Contains(own, string(name)) {
			found.Note(name, value)
		}
		return nil
	})
	return found
}

// checkInput returns why a call that has ended is not taken.
func (b *block) checkInput() error {
	if b.Kind != turns.Call {
		return nil
	}
	return b.elsewhere.Check(b.Call.Arguments)
}

// settle checks that a block has what its kind needs.
func (b *block) settle(raw part, whole bool) error {
	var missing []member
	switch noInput := b.Call.Arguments == nil; {
	case b.Kind == turns.Text && b.Text == nil && whole:
		return errors.New("a text block without text")
	case b.Text == nil && (b.Kind == turns.Text || b.Row == &rowThinking.Row):
		b.Text, missing = []byte{}, append(missing, member{b.Row.Text, []byte(`""`)})
	case !b.calls():
	case b.Call.Name == "" || b.Kind != turns.Call && (b.Call.ID == "" || noInput):
		return fmt.Errorf("a %s without an id, a name or an input", b.Type)
	default:
		if b.Call.ID == "" { // the application and the model refer to it
			b.Call.ID = "toolu_" + rand.Text()
			missing = append(missing, member{"id", rawjson.Quote(b.Call.ID)})
		}
		if noInput {
			b.Call.Arguments = []byte("{}")
			missing = append(missing, member{"input", b.Call.Arguments})
		}
	}
	if missing != nil {
		if raw.checked = with(raw.checked, missing...); rawjson.Valid(raw.received) {
			raw.received = with(raw.received, missing...)
		}
	}
	switch {
	case rawjson.Valid(raw.received):
		b.Raw = raw.received
	case b.Kind == turns.Call:
		b.Raw = with(raw.checked, member{"input", invalidInput(b.Call.Arguments)})
	default:
		return errors.New("no strict JSON in a content block")
	}
	if b.row.written != nil {
		b.Raw = b.rewritten()
	}
	return nil
}

// rewritten is the block with the members that its type has; the block itself where it has no other.
func (b *block) rewritten() []byte {
	return rewrite(b.Raw, func(name string, value []byte) []byte {
		switch citations := b.Beside.Get("citations"); {
		case !slices.Contains(b.row.written, name):
			return nil
		case name == "citations" && citations != nil:
			return citations
		case writtenWithin[name] != nil && value[0] == '{':
			return only(value, writtenWithin[name])
		}
		return value
	})
}

// isBlank reports whether a value is null, or a text of nothing but white space.
func isBlank(value []byte) bool {
	s, ok := rawjson.Text(value)
	return rawjson.IsNull(value) || ok && len(bytes.Trim(s, " \t\r\n")) == 0
}

// only is an object with those of its members that have one of some names, and hold no object or
// array.
func only(object []byte, names []string) []byte {
	return rewrite(object, func(name string, value []byte) []byte {
		if !slices.Contains(names, name) || value[0] == '{' || value[0] == '[' {
			return nil
		}
		return value
	})
}

// readCitations reads the citations of a text, an array.
func readCitations(raw []byte) ([]byte, error) {
	if raw[0] != '[' {
		return nil, errors.New("citations that are not an array")
	}
	all, same := []byte{'['}, true
	err := part{raw, raw}.elements(func(value part) error {
		c, err := readCitation(value.checked)
		if same = same && bytes.Equal(c, value.checked); err != nil || c == nil {
			return err
		}
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, c...)
		return nil
	})
	if err != nil || same {
		return raw, err
	}
	return append(all, ']'), nil
}

// readCitation reads a citation. nil: it is of a type that is no place in a source, or may not be passed
// on, and is left out.
func readCitation(raw []byte) ([]byte, error) {
	if raw[0] != '{' {
		return nil, errors.New("a citation that is not an object")
	}
	if !strings.HasSuffix(typeOf(raw), "_location") {
		return nil, nil
	}
	if raw = only(raw, writtenOfCitation); !rawjson.HoldsNoCall(raw) {
		return nil, nil
	}
	return raw, nil
}

// isDisguised reports whether a type is a known one, or that of a call of another API, but for the case
// of letters and what stands between them.
func isDisguised(kind string) bool {
	if _, known := rows[kind]; known || kind == "function_call" {
		return false
	}
	folded := ascii.Folded(kind)
	for known := range rows {
		if folded == ascii.Folded(known) {
			return true
		}
	}
	return folded == "functioncall"
}

// misspelt returns the one of names that a name would be taken for without regard to case.
func misspelt(name string, names []string) string {
	for _, known := range names {
		if name != known && strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// readCallID reads the id of a call; null and "" are none. It is as long as the server likes: some keep a signature in it.
func readCallID(value []byte) (string, error) {
	id, ok := rawjson.String(value)
	if !ok && !rawjson.IsNull(value) || id != "" && !ascii.IsPlainID(id) {
		return "", errors.New("an id of a call that is not a string of plain characters")
	}
	return id, nil
}

func readOptionalName(into *string, name string, value []byte) error {
	if rawjson.IsNull(value) {
		return nil
	}
	return readName(into, name, value, maxName)
}

// callerDirect is the caller of a call that the model makes itself.
const callerDirect = "direct"

// isProgrammatic reports whether a program at the provider has made a call.
func (b *block) isProgrammatic() bool { return b.caller != "" && b.caller != callerDirect }

// readCaller reads {"type":…}; null and an absent caller are the same.
func readCaller(into *string, value []byte) error {
	if rawjson.IsNull(value) {
		return nil
	}
	err := rawjson.Each(value, func(name, value []byte) error {
		if string(name) == "type" {
			return readWord(into, "the type of a caller", value)
		}
		return nil
	})
	if err == nil && *into == "" {
		err = errors.New("a caller without a type")
	}
	return err
}

// invalidInput is an input that is no strict JSON, as the API takes it back (AM-50).
func invalidInput(input []byte) []byte {
	b := rawjson.AppendQuote([]byte(`{"INVALID_JSON":`), input)
	return append(b, '}')
}

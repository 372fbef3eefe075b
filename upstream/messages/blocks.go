package messages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/strictjson"
)

// kinds are the known types of content blocks (AM-31).
var kinds = map[string]Kind{
	"text":                                   Text,
	"thinking":                               Thinking,
	"redacted_thinking":                      Thinking,
	"tool_use":                               Call,
	"server_tool_use":                        HostedCall,
	"mcp_tool_use":                           HostedCall,
	"web_search_tool_result":                 Hosted,
	"web_fetch_tool_result":                  Hosted,
	"code_execution_tool_result":             Hosted,
	"bash_code_execution_tool_result":        Hosted,
	"text_editor_code_execution_tool_result": Hosted,
	"tool_search_tool_result":                Hosted,
	"advisor_tool_result":                    Hosted,
	"mcp_tool_result":                        Hosted,
	"mcp_tool_listing":                       Hosted,
	"container_upload":                       Hosted,
	"compaction":                             Compaction,
	"fallback":                               Fallback,
}

// blockMembers are the members that readers of blocks act on. Another spelling of one, as in
// Type, is refused: some readers do not tell it from the name.
var blockMembers = []string{"type", "text", "citations", "thinking", "signature", "data", "id", "name", "input", "caller", "toolset_name", "server_name", "tool_use_id", "content"}

// writtenMembers are the members that a block of each type is written with: any other would reach
// the application, and the next turn of the model, unjudged. A type that is not here is data of the
// provider that a switch has allowed, and stays as it was received.
var writtenMembers = map[string][]string{
	"text":              {"type", "text", "citations"},
	"thinking":          {"type", "thinking", "signature"},
	"redacted_thinking": {"type", "data"},
	"tool_use":          {"type", "id", "name", "input", "caller", "toolset_name"},
	"server_tool_use":   {"type", "id", "name", "input", "caller"},
	"mcp_tool_use":      {"type", "id", "name", "input", "caller", "server_name"},
	"compaction":        {"type", "content", "encrypted_content"},
	"fallback":          {"type", "from", "to"},
}

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

// readBlock reads a content block.
func readBlock(block part, o *Options) (Block, error) {
	var (
		b    Block
		use  ToolUse
		fold string
		// elsewhere is a member that seems to hold the input under another name.
		elsewhere string
	)
	err := block.members(func(name string, member part) (err error) {
		value := member.checked
		switch name {
		case "type":
			err = readWord(&b.Type, "a type", value)
		case "text":
			err = readText(&b.Text, "text", value, false)
		case "citations":
			if !isNull(value) {
				b.Citations, err = readCitations(value, o)
			}
		case "thinking":
			err = readText(&b.thinking, "thinking", value, false)
		case "signature":
			err = readText(&b.signature, "a signature", value, true)
		case "id":
			err = readID(&use.ID, value)
		case "name":
			err = readName(&use.Name, "the name of a tool", value, maxName)
		case "input":
			if !isBlank(value) { // else there is none, as in a start whose deltas bring it
				use.Input = member.received
			}
		case "caller":
			err = readCaller(&use.Caller, value)
		case "toolset_name":
			err = readOptionalName(&use.Toolset, name, value)
		case "server_name":
			err = readOptionalName(&use.Server, name, value)
		default:
			fold = cmp.Or(fold, misspelt(name, blockMembers))
			if slices.Contains([]string{"arguments", "args", "parameters"}, name) && !isBlank(value) && !isEmptyObject(value) {
				elsewhere = name
			}
		}
		return err
	})
	b.Kind = kinds[b.Type]
	switch {
	case err != nil:
		return b, err
	case b.Type == "":
		return b, errors.New("a content block without a type")
	case fold != "":
		return b, fmt.Errorf("a content block with another spelling of %s", fold)
	case b.Kind == Unknown && !o.Unknown:
		return b, unknown("a content block", b.Type)
	case b.Kind == Call && elsewhere != "" && (use.Input == nil || isEmptyObject(use.Input)):
		return b, fmt.Errorf("a tool_use whose input stands in the member %s", elsewhere)
	case b.Kind == Unknown && IsDisguised(b.Type):
		return b, errors.New("a content block whose type is a known one in another spelling")
	}
	return b, b.settle(block, &use)
}

// settle checks that a block has what its kind needs.
func (b *Block) settle(block part, use *ToolUse) error {
	switch b.Kind {
	case Text:
		if b.Text == nil {
			return errors.New("a text block without text")
		}
	case Call, HostedCall:
		noInput := use.Input == nil
		if use.ID == "" || use.Name == "" || noInput && b.Kind == HostedCall {
			return fmt.Errorf("a %s without an id, a name or an input", b.Type)
		}
		if b.Call = use; noInput {
			use.Input = []byte("{}")
			block.checked = with(block.checked, member{"input", use.Input})
			block.received = block.checked
		}
	}
	switch {
	case strictjson.Valid(block.received):
		b.Raw = block.received
	case b.Kind == Call:
		b.Raw = with(block.checked, member{"input", invalidInput(use.Input)})
	default:
		return errors.New("no strict JSON in a content block")
	}
	if names, known := writtenMembers[b.Type]; known {
		b.Raw = b.written(names)
	}
	return nil
}

// written is the block with the members that its type has; the block itself where it has no other.
func (b *Block) written(names []string) []byte {
	return rewrite(b.Raw, func(name string, value []byte) []byte {
		switch {
		case !slices.Contains(names, name):
			return nil
		case name == "citations" && b.Citations != nil:
			return b.Citations
		case writtenWithin[name] != nil && value[0] == '{':
			return only(value, writtenWithin[name])
		}
		return value
	})
}

// isBlank reports whether a value is null, or a text of nothing but white space.
func isBlank(value []byte) bool {
	s, ok := text(value)
	return isNull(value) || ok && len(bytes.Trim(s, " \t\r\n")) == 0
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
func readCitations(raw []byte, o *Options) ([]byte, error) {
	if raw[0] != '[' {
		return nil, errors.New("citations that are not an array")
	}
	all, same := []byte{'['}, true
	err := part{raw, raw}.elements(func(value part) error {
		c, err := readCitation(value.checked, o)
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
func readCitation(raw []byte, o *Options) ([]byte, error) {
	if raw[0] != '{' {
		return nil, errors.New("a citation that is not an object")
	}
	if !strings.HasSuffix(typeOf(raw), "_location") {
		return nil, nil
	}
	if raw = only(raw, writtenOfCitation); !o.cites(raw) {
		return nil, nil
	}
	return raw, nil
}

// IsDisguised reports whether a type is a known one, or that of a call of another API, but for the case
// of letters and what stands between them.
func IsDisguised(kind string) bool {
	if _, known := kinds[kind]; known || kind == "function_call" {
		return false
	}
	folded := ascii.Folded(kind)
	for known := range kinds {
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

// readID reads an id, in plain characters: it is repeated in headers of logs and in results.
func readID(into *string, value []byte) error {
	s, ok := text(value)
	if !ok || len(s) == 0 || len(s) > maxID || !isPlain(string(s)) {
		return errors.New("an id that is not in plain characters")
	}
	*into = string(s)
	return nil
}

func isPlain(id string) bool {
	return strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=~@|#") == ""
}

func readOptionalName(into *string, name string, value []byte) error {
	if isNull(value) {
		return nil
	}
	return readName(into, name, value, maxName)
}

// readCaller reads {"type":…}; null and an absent caller are the same.
func readCaller(into *string, value []byte) error {
	if isNull(value) {
		return nil
	}
	err := within(value, func(name string, value []byte) error {
		if name == "type" {
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
	b := strictjson.AppendQuote([]byte(`{"INVALID_JSON":`), input)
	return append(b, '}')
}

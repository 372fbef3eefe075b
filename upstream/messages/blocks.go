package messages

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

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

// readBlock reads a content block.
func readBlock(block part, o *Options) (Block, error) {
	var (
		b    Block
		use  ToolUse
		fold string
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
				b.Citations = value
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
			use.Input = member.received
		case "caller":
			err = readCaller(&use.Caller, value)
		case "toolset_name":
			err = readOptionalName(&use.Toolset, name, value)
		case "server_name":
			err = readOptionalName(&use.Server, name, value)
		default:
			fold = cmp.Or(fold, misspelt(name, blockMembers))
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
		if b.Citations != nil && b.Citations[0] != '[' {
			return errors.New("citations that are not an array")
		}
	case Call, HostedCall:
		if use.ID == "" || use.Name == "" || use.Input == nil {
			return fmt.Errorf("a %s without an id, a name or an input", b.Type)
		}
		b.Call = use
	}
	if strictjson.Valid(block.received) {
		b.Raw = block.received
		return nil
	}
	if b.Kind != Call {
		return errors.New("no strict JSON in a content block")
	}
	b.Raw = with(block.checked, member{"input", invalidInput(use.Input)})
	return nil
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

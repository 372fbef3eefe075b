package messages

import (
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/strictjson"
)

// Reply is one message of a model, complete.
type Reply struct {
	ID, Model  string
	StopReason string // one word, such as tool_use; never empty
	Blocks     []Block
	Usage      Usage
	// Shown is how many blocks, from the first, a stream returned as events; 0 for a whole
	// message.
	Shown int
	// members are those of the message that are passed on, in their order; content and usage
	// only mark their places.
	members []member
}

// Kind says what a content block is, and who acts on it.
type Kind int

// The kinds. Unknown are types that this package has no rules for.
const (
	Unknown    Kind = iota
	Text            // text
	Thinking        // thinking and redacted_thinking, which a signature binds
	Call            // tool_use: the client executes it
	HostedCall      // server_tool_use and mcp_tool_use: the provider executes it
	Hosted          // results and files of the provider's tools
	Compaction      // compaction
	Fallback        // fallback: another model continues from here
)

// Block is one content block.
type Block struct {
	Type string
	Kind Kind
	Text []byte   // of a text block
	Call *ToolUse // of the kinds Call and HostedCall, else nil
	// Citations is the JSON array of a text block; nil if it has none.
	Citations []byte
	// Raw is the block as a strict JSON object: as it was received, or put together from
	// its start and its deltas. Input that is no strict JSON stands in it as
	// {"INVALID_JSON":"…"}, as the API wants it sent back (AM-50).
	Raw []byte

	thinking, signature []byte
}

// ToolUse is one call of a tool.
type ToolUse struct {
	ID, Name string
	// Input is the bytes of the arguments as they stood on the wire: unescaped and joined
	// where they came in deltas. Nothing says that they are JSON.
	Input   []byte
	Caller  string // the type of the caller; empty where none is stated
	Toolset string // toolset_name
	Server  string // server_name, of mcp_tool_use
}

// Direct reports whether the model itself has made the call, and not a program at the
// provider (AM-32).
func (t *ToolUse) Direct() bool { return t.Caller == "" || t.Caller == "direct" }

// Calls returns the blocks that the client would execute.
func (r *Reply) Calls() []*ToolUse {
	var calls []*ToolUse
	for i := range r.Blocks {
		if r.Blocks[i].Kind == Call {
			calls = append(calls, r.Blocks[i].Call)
		}
	}
	return calls
}

// Member returns the value of a member of the message that is passed on; nil if it is absent.
// Members with own fields are not among them.
func (r *Reply) Member(name string) []byte {
	for _, m := range r.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// ContainerID is the id of the provider's container, as JSON; nil if there is none.
func (r *Reply) ContainerID() []byte {
	var id []byte
	if container := r.Member("container"); container != nil && container[0] == '{' {
		_ = within(container, func(name string, value []byte) error {
			if name == "id" && value[0] == '"' {
				id = value
			}
			return nil
		})
	}
	return id
}

// Screen takes out of the head what does not pass: members of the provider's own making become null,
// the usage its counts alone, and the model another name. A stop_sequence is the request's own text.
func (r *Reply) Screen(passes func(value []byte) bool, model string) {
	for i := range r.members {
		m := &r.members[i]
		switch m.name {
		case "model":
			if !passes(m.value) {
				r.Model, m.value = model, strictjson.AppendQuote(nil, model)
			}
		default:
			if slices.Contains(madeUp, m.name) && !isNull(m.value) && !passes(m.value) {
				m.value = []byte("null")
			}
		}
	}
	if !passes(r.Usage.Raw) {
		r.Usage.Raw = r.Usage.Sums()
	}
}

// madeUp are the members of the head that the provider fills as it likes.
var madeUp = []string{"stop_details", "container", "context_management", "diagnostics", "input_transformations", memberSafeguards}

// EditHead has a function see what the provider says around the blocks, and return what is left of it.
func (r *Reply) EditHead(see func(value []byte) ([]byte, error)) error {
	for i := range r.members {
		m := &r.members[i]
		if !slices.Contains(madeUp, m.name) || isNull(m.value) {
			continue
		}
		var err error
		if m.value, err = see(m.value); err != nil {
			return err
		}
	}
	return nil
}

// memberSafeguards is what a provider says of the calls of its reply (safeguard_results).
const memberSafeguards = "safeguard_results"

// maxSafeguards bounds safeguard_results, in bytes.
const maxSafeguards = 256 << 10

// KeepSafeguards leaves of what the provider says of calls what it says of those that are released. A
// value of another form is taken out: a client judges by itself then.
func (r *Reply) KeepSafeguards(released func(id string) bool) {
	raw := r.Member(memberSafeguards)
	if raw == nil || isNull(raw) {
		return
	}
	kept, err := keptSafeguards(raw, released)
	if err != nil {
		kept = []byte("null")
	}
	r.set(memberSafeguards, kept)
}

// keptSafeguards is a list of objects, each with a type and a status, whose tool_uses are verdicts by
// the ids of calls.
func keptSafeguards(raw []byte, released func(id string) bool) ([]byte, error) {
	if len(raw) > maxSafeguards {
		return nil, ErrTooLarge
	}
	all := []byte{'['}
	err := part{raw, raw}.elements(func(entry part) error {
		if err := isObject(entry.checked); err != nil {
			return err
		}
		var fault error
		left := rewrite(entry.checked, func(name string, status []byte) []byte {
			if name != "status" {
				return status
			}
			if fault = isObject(status); fault != nil {
				return status
			}
			return rewrite(status, func(name string, uses []byte) []byte {
				if name != "tool_uses" {
					return uses
				}
				if fault = isObject(uses); fault != nil {
					return uses
				}
				return rewrite(uses, func(id string, verdict []byte) []byte {
					if !released(id) {
						return nil
					}
					return verdict
				})
			})
		})
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, left...)
		return fault
	})
	return append(all, ']'), err
}

// EndTurn changes a reply that ended to have calls executed, and holds none, into one that just
// ended: a client would look for calls.
func (r *Reply) EndTurn() {
	for i := range r.Blocks {
		if r.Blocks[i].Call != nil {
			return
		}
	}
	if r.StopReason == "tool_use" {
		r.StopReason = "end_turn"
		r.set("stop_reason", strictjson.AppendQuote(nil, r.StopReason))
	}
}

// Ended returns the reply's head, with another reason and without blocks: for an answer that
// stands in place of the reply.
func (r *Reply) Ended(reason string) *Reply {
	other := &Reply{ID: r.ID, Model: r.Model, StopReason: reason, Usage: r.Usage}
	for _, m := range r.members {
		switch m.name {
		case "stop_reason":
			m.value = strictjson.AppendQuote(nil, reason)
		case "stop_sequence", "stop_details":
			m.value = []byte("null")
		}
		other.members = append(other.members, m)
	}
	other.KeepSafeguards(func(string) bool { return false })
	return other
}

// TextBlock makes a block of a text.
func TextBlock(text string) Block {
	raw := strictjson.AppendQuote([]byte(`{"type":"text","text":`), text)
	return Block{Type: "text", Kind: Text, Text: []byte(text), Raw: append(raw, '}')}
}

// Usage is how many tokens a reply took. Of a stream it holds the last value of each member:
// they are cumulative (AM-48).
type Usage struct {
	Input, CacheCreation, CacheRead, Output int64
	Raw                                     []byte // the whole object
}

// Tokens is the charge of a reply in a budget: all input, cached or not, and the output (AM-38).
func (u *Usage) Tokens() int64 {
	sum := int64(0)
	for _, n := range []int64{u.Input, u.CacheCreation, u.CacheRead, u.Output} {
		if sum += n; sum < 0 {
			return 1<<63 - 1
		}
	}
	return sum
}

// Sums is a usage object with the counts alone.
func (u *Usage) Sums() []byte {
	return fmt.Appendf(nil, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}`, u.Input, u.CacheCreation, u.CacheRead, u.Output)
}

// member is one member of an object.
type member struct {
	name  string
	value []byte
}

// forwarded are the members of a message that are passed on; any other is dropped. Those with
// fields of their own are written by AppendMessage.
var forwarded = []string{
	"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "stop_details", "usage", "container", "context_management", "diagnostics",
	"input_transformations", memberSafeguards,
}

func isForwarded(name string) bool { return slices.Contains(forwarded, name) }

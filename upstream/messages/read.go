package messages

import (
	"bytes"
	"errors"
	"fmt"
)

// Options say what a reader accepts.
type Options struct {
	// MaxBytes bounds the bytes of a reply that is put together from a stream; 0 is 16 MiB.
	MaxBytes int
	// Unknown lets blocks, deltas and events of unknown types pass as they are.
	Unknown bool
	// Cites reports whether a citation of a text may be passed on; nil: each may.
	Cites func(citation []byte) bool
}

func (o *Options) cites(citation []byte) bool { return o.Cites == nil || o.Cites(citation) }

const defaultMaxBytes = 16 << 20

// Read reads a whole message. The reply holds parts of body.
func Read(body []byte, o Options) (*Reply, error) {
	message, err := read(body, inputsOfMessage)
	if err != nil {
		return nil, err
	}
	r, err := readMessage(message, &o)
	if err == nil && r.StopReason == "" {
		err = errors.New("a message without a stop_reason")
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readMessage reads a message object, whose reason may still be null.
func readMessage(message part, o *Options) (*Reply, error) {
	r := &Reply{}
	var kind, role string
	content := false
	err := message.members(func(name string, value part) (err error) {
		checked := value.checked
		switch name {
		case "id":
			err = readID(&r.ID, checked)
		case "type":
			err = readWord(&kind, "a type", checked)
		case "role":
			err = readWord(&role, "a role", checked)
		case "model":
			err = readName(&r.Model, "a model", checked, maxName)
		case "content":
			content = true
			err = r.readBlocks(value, o)
		case "stop_reason":
			if !isNull(checked) {
				err = readWord(&r.StopReason, "a stop_reason", checked)
			}
		case "usage":
			err = r.Usage.add(checked)
		case "error": // in place of a message
			if !isNull(checked) {
				return &ProviderError{Type: typeOf(checked), Data: bytes.Clone(message.checked)}
			}
		default:
			if known := misspelt(name, forwarded); known != "" {
				return fmt.Errorf("a message with another spelling of %s", known)
			}
		}
		if name == "content" {
			checked = nil // it is in Blocks
		}
		if err == nil && isForwarded(name) {
			r.members = append(r.members, member{name, checked})
		}
		return err
	})
	switch {
	case err != nil:
	case r.ID == "" || r.Model == "":
		err = errors.New("a message without an id or a model")
	case kind != "message" || role != "assistant":
		err = errors.New("an object that is not a message of the assistant")
	case !content:
		err = errors.New("a message without content")
	}
	if err != nil {
		return nil, err
	}
	if r.Usage.Raw == nil {
		r.Usage.Raw = r.Usage.Sums() // clients want one
	}
	return r, nil
}

// readBlocks reads the content of a message.
func (r *Reply) readBlocks(content part, o *Options) error {
	calls := 0
	err := content.elements(func(block part) error {
		b, err := readBlock(block, o)
		if err != nil {
			return err
		}
		if len(r.Blocks) == maxBlocks {
			return fmt.Errorf("more than %d content blocks", maxBlocks)
		}
		if b.Call != nil {
			if calls++; calls > maxCalls {
				return fmt.Errorf("more than %d calls", maxCalls)
			}
		}
		r.Blocks = append(r.Blocks, b)
		return nil
	})
	if err != nil {
		return err
	}
	return uniqueIDs(r.Blocks)
}

// uniqueIDs refuses two calls with one id: results are matched by it.
func uniqueIDs(blocks []Block) error {
	seen := map[string]bool{}
	for i := range blocks {
		if c := blocks[i].Call; c != nil {
			if seen[c.ID] {
				return errors.New("two calls with the same id")
			}
			seen[c.ID] = true
		}
	}
	return nil
}

// add takes over the members of a usage object that are stated. Raw keeps the last value of
// each member. What is no count, and what is no object, is not taken: a budget then charges what it
// has reserved.
func (u *Usage) add(raw []byte) error {
	if raw[0] != '{' {
		return nil
	}
	counts := map[string]*int64{
		"input_tokens": &u.Input, "cache_creation_input_tokens": &u.CacheCreation, "cache_read_input_tokens": &u.CacheRead, "output_tokens": &u.Output,
	}
	var changes []member
	err := within(raw, func(name string, value []byte) error {
		if into := counts[name]; into != nil && readCount(into, name, value) != nil {
			return nil //nolint:nilerr // a count that cannot be read is none
		}
		if !isNull(value) || u.Raw == nil {
			changes = append(changes, member{name, value})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if u.Raw == nil {
		u.Raw = []byte("{}")
	}
	if len(changes) > maxUsage || len(u.Raw)+len(raw) > maxUsageBytes {
		return errors.New("usage with too much in it")
	}
	u.Raw = with(u.Raw, changes...)
	return nil
}

// Package native is the face of Callgate's own wire format.
package native

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/parser"
)

// Body is the JSON form of one completion to judge.
type Body struct {
	ID           json.RawMessage // a string or a number, as it came; nil when absent
	Completion   []byte
	Agent        string
	Workspace    string
	Project      string
	FinishReason string
}

// maxBodyDepth is deeper than any body nests.
const maxBodyDepth = 8

// MaxBody is the longest body, in bytes, for a longest completion: every byte
// of it may be an escape of six.
func MaxBody(maxBytes int) int { return 6*maxBytes + 64<<10 }

// ReadLine reads one line of a JSON Lines file of completions:
//
//	{"id", "completion" or "completion_b64", "agent"?, "workspace"?, "project"?, "finish_reason"?}
//
// A member "expect" may stand beside them, so that files of vectors can be
// judged as they are; it is passed over. Every other member is an error.
func ReadLine(line []byte) (Body, error) {
	var b Body
	value, err := parser.ReadValue(line, maxBodyDepth)
	if err != nil {
		return b, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return b, errors.New("found no object; expected an object with id and completion")
	}
	_, plain := object["completion"]
	_, encoded := object["completion_b64"]
	if plain == encoded {
		return b, errors.New(`expected exactly one of "completion" and "completion_b64"`)
	}
	for name, v := range object {
		if err := b.set(name, v); err != nil {
			return Body{}, err
		}
	}
	if b.ID == nil {
		return Body{}, errors.New(`"id" is missing`)
	}
	return b, nil
}

func (b *Body) set(name string, v any) error {
	var text string
	switch name {
	case "id":
		switch v.(type) {
		case string, json.Number:
			b.ID, _ = json.Marshal(v) // neither can fail
			return nil
		}
		return errors.New(`"id" must be a string or a number`)
	case "expect":
		return nil
	case "completion", "completion_b64", "agent", "workspace", "project", "finish_reason":
		var ok bool
		if text, ok = v.(string); !ok {
			return fmt.Errorf("%q must be a string", name)
		}
	default:
		return fmt.Errorf("unknown member %s", parser.Quote(name))
	}
	switch name {
	case "completion":
		b.Completion = []byte(text)
	case "completion_b64":
		raw, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return errors.New(`"completion_b64" must be standard base64`)
		}
		b.Completion = raw
	case "agent":
		b.Agent = text
	case "workspace":
		b.Workspace = text
	case "project":
		b.Project = text
	case "finish_reason":
		b.FinishReason = text
	}
	return nil
}

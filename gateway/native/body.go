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
	ID           json.RawMessage // a string, or in a line also a number, as it came; nil when absent
	Completion   []byte
	Agent        string
	Workspace    string
	Project      string
	FinishReason string
	Thread       string
	Ancestors    []string // of the thread, the oldest first
	User         string
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
	object, err := readObject(line, "an object with id and completion")
	if err != nil {
		return Body{}, err
	}
	_, plain := object["completion"]
	_, encoded := object["completion_b64"]
	if plain == encoded {
		return Body{}, errors.New(`expected exactly one of "completion" and "completion_b64"`)
	}
	var b Body
	for name, v := range object {
		switch name {
		case "id":
			err = b.readID(v)
		case "expect":
		case "completion_b64":
			err = b.readBase64(v)
		case "completion", "agent", "workspace", "project", "finish_reason":
			err = b.readText(name, v)
		default:
			err = unknown(name)
		}
		if err != nil {
			return Body{}, err
		}
	}
	if b.ID == nil {
		return Body{}, errors.New(`"id" is missing`)
	}
	return b, nil
}

// ReadBody reads the body of a request:
//
//	{"completion", "agent"?, "workspace"?, "project"?, "finish_reason"?, "id"?, "thread"?, "thread_ancestors"?, "user"?}
//
// Every other member is an error.
func ReadBody(data []byte) (Body, error) {
	object, err := readObject(data, "an object with completion")
	if err != nil {
		return Body{}, err
	}
	if _, there := object["completion"]; !there {
		return Body{}, errors.New(`"completion" is missing`)
	}
	var b Body
	for name, v := range object {
		switch name {
		case "completion", "agent", "workspace", "project", "finish_reason", "thread", "user":
			err = b.readText(name, v)
		case "id":
			if _, text := v.(string); !text {
				return Body{}, errors.New(`"id" must be a string`)
			}
			err = b.readID(v)
		case "thread_ancestors":
			err = b.readAncestors(v)
		default:
			err = unknown(name)
		}
		if err != nil {
			return Body{}, err
		}
	}
	return b, nil
}

func readObject(data []byte, expected string) (map[string]any, error) {
	value, err := parser.ReadValue(data, maxBodyDepth)
	if err != nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("found no object; expected " + expected)
	}
	return object, nil
}

func unknown(name string) error { return fmt.Errorf("unknown member %s", parser.Quote(name)) }

func (b *Body) readID(v any) error {
	switch v.(type) {
	case string, json.Number:
		b.ID, _ = json.Marshal(v) // neither can fail
		return nil
	}
	return errors.New(`"id" must be a string or a number`)
}

func (b *Body) readBase64(v any) error {
	text, _ := v.(string)
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if _, ok := v.(string); !ok || err != nil {
		return errors.New(`"completion_b64" must be standard base64`)
	}
	b.Completion = raw
	return nil
}

func (b *Body) readText(name string, v any) error {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("%q must be a string", name)
	}
	switch name {
	case "completion":
		b.Completion = []byte(text)
	case "agent":
		b.Agent = text
	case "workspace":
		b.Workspace = text
	case "project":
		b.Project = text
	case "finish_reason":
		b.FinishReason = text
	case "thread":
		b.Thread = text
	case "user":
		b.User = text
	}
	return nil
}

func (b *Body) readAncestors(v any) error {
	list, ok := v.([]any)
	for _, item := range list {
		text, isText := item.(string)
		ok = ok && isText
		b.Ancestors = append(b.Ancestors, text)
	}
	if !ok {
		return errors.New(`"thread_ancestors" must be a list of strings`)
	}
	return nil
}

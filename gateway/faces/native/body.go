package native

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/threads"
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

// The depths that a body nests to, and a line, which may hold what it expects.
const (
	maxBodyDepth = 2
	maxLineDepth = 8
)

// MaxBody is the longest body, in bytes, for a longest completion: every byte
// of it may be an escape of six.
func MaxBody(maxBytes int) int { return 6*maxBytes + 64<<10 }

// ReadLine reads one line of a JSON Lines file of completions:
//
//	{"id", "completion" or "completion_b64", "agent"?, "workspace"?, "project"?, "finish_reason"?}
//
// A member "expect" is allowed and ignored, so that files of vectors can be judged
// unchanged. Every other member is an error.
func ReadLine(line []byte) (Body, error) {
	var b Body
	completions := 0
	err := readObject(line, maxLineDepth, "an object with id and completion", func(name string, first byte) error {
		switch name {
		case "expect":
			return nil
		case "id":
			if first != '"' && first != '-' && (first < '0' || first > '9') {
				return errors.New(`"id" must be a string or a number`)
			}
			return nil
		case "completion_b64":
			if first != '"' {
				return errors.New(`"completion_b64" must be standard base64`)
			}
			return nil
		case "completion", "agent", "workspace", "project", "finish_reason":
			return isText(name, first)
		}
		return unknown(name)
	}, func(name string, raw []byte) error {
		switch name {
		case "expect":
			return nil
		case "id":
			return b.readID(raw)
		case "completion_b64":
			completions++
			return b.readBase64(raw)
		case "completion":
			completions++
		}
		return b.readText(name, raw)
	})
	switch {
	case err != nil:
		return Body{}, err
	case completions != 1:
		return Body{}, errors.New(`expected exactly one of "completion" and "completion_b64"`)
	case b.ID == nil:
		return Body{}, errors.New(`"id" is missing`)
	}
	return b, nil
}

// ReadBody reads the body of a request:
//
//	{"completion", "agent"?, "workspace"?, "project"?, "finish_reason"?, "id"?, "thread"?, "thread_ancestors"?, "user"?}
//
// Every other member is an error, and so is one that is longer than a header in its place
// may be, or more than threads.MaxAncestors of thread_ancestors.
func ReadBody(data []byte) (Body, error) {
	var b Body
	found := false
	err := readObject(data, maxBodyDepth, "an object with completion", func(name string, first byte) error {
		switch name {
		case "completion", "agent", "workspace", "project", "finish_reason", "id", "thread", "user":
			return isText(name, first)
		case "thread_ancestors":
			if first != '[' {
				return errAncestors
			}
			return nil
		}
		if name == "tool" {
			return errBareCall
		}
		return unknown(name)
	}, func(name string, raw []byte) error {
		switch name {
		case "id":
			return b.readID(raw)
		case "thread_ancestors":
			return b.readAncestors(raw)
		case "completion":
			found = true
		}
		return b.readText(name, raw)
	})
	switch {
	case err != nil:
		return Body{}, err
	case !found:
		return Body{}, errors.New(`"completion" is missing`)
	}
	return b, nil
}

func readObject(data []byte, maxDepth int, expected string, expect func(string, byte) error, take func(string, []byte) error) error {
	err := parser.ReadObject(data, maxDepth, expect, take)
	if errors.Is(err, parser.ErrNoObject) {
		return fmt.Errorf("%w; expected %s", err, expected)
	}
	return err
}

// errBareCall is a call where the request should be that has it.
var errBareCall = errors.New(`unknown member "tool"`)

func unknown(name string) error { return fmt.Errorf("unknown member %s", parser.Quote(name)) }

// isText refuses what is no string, by its first byte. A null stands for no id and no finish_reason: for whom a
// completion is judged is not left open by one.
func isText(name string, first byte) error {
	if first != '"' && (first != 'n' || name != "id" && name != "finish_reason") {
		return fmt.Errorf("%q must be a string", name)
	}
	return nil
}

// textOf returns the value of a JSON string that is stored, recorded or echoed.
func textOf(name string, raw []byte) (string, error) {
	text, _ := parser.Decode(raw).(string)
	if len(text) > server.MaxValueBytes {
		return "", fmt.Errorf("%q is longer than %d bytes", name, server.MaxValueBytes)
	}
	return text, nil
}

func (b *Body) readID(raw []byte) (err error) {
	switch raw[0] {
	case 'n':
		return nil
	case '"':
	default:
		b.ID = bytes.Clone(raw) // a number has its digits
		return nil
	}
	text, err := textOf("id", raw)
	if err == nil {
		b.ID, _ = json.Marshal(text) // it cannot fail
	}
	return err
}

func (b *Body) readBase64(raw []byte) (err error) {
	text, _ := parser.Decode(raw).(string)
	if b.Completion, err = base64.StdEncoding.Strict().DecodeString(text); err != nil {
		return errors.New(`"completion_b64" must be standard base64`)
	}
	return nil
}

func (b *Body) readText(name string, raw []byte) (err error) {
	switch name {
	case "completion":
		text, _ := parser.Decode(raw).(string)
		b.Completion = []byte(text)
	case "agent":
		b.Agent, err = textOf(name, raw)
	case "workspace":
		b.Workspace, err = textOf(name, raw)
	case "project":
		b.Project, err = textOf(name, raw)
	case "finish_reason":
		b.FinishReason, err = textOf(name, raw)
	case "thread":
		b.Thread, err = textOf(name, raw)
	case "user":
		b.User, err = textOf(name, raw)
	}
	return err
}

var errAncestors = fmt.Errorf(`"thread_ancestors" must be a list of at most %d strings, of at most %d bytes each`, threads.MaxAncestors,
	server.MaxValueBytes)

func (b *Body) readAncestors(raw []byte) error {
	if len(raw) > threads.MaxAncestors*(6*server.MaxValueBytes+64) { // however they are escaped, with some space between
		return errAncestors
	}
	list, _ := parser.Decode(raw).([]any)
	if len(list) > threads.MaxAncestors {
		return errAncestors
	}
	for _, item := range list {
		text, isText := item.(string)
		if !isText || len(text) > server.MaxValueBytes {
			return errAncestors
		}
		b.Ancestors = append(b.Ancestors, text)
	}
	return nil
}

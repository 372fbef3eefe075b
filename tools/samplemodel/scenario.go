package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Faults that a turn may have.
const (
	faultCut   = "cut"
	faultStall = "stall"
	faultError = "error"
)

const defaultChunk = 16

// scenario is what a model plays. It is read only.
type scenario struct {
	About string `json:"about"`
	Turns []turn `json:"turns"`
	Chunk int    `json:"chunk"`
	Write int    `json:"write"`
	Pause int    `json:"pause_ms"`
}

// turn is one answer.
type turn struct {
	Text         string `json:"text"`
	Calls        []call `json:"calls"`
	AfterRefusal *turn  `json:"after_refusal"`
	Fault        string `json:"fault"`
	// Blocks and Items stand before the text: blocks in an answer of the Messages API,
	// items in one of the Responses API.
	Blocks []jsontext.Value `json:"blocks"`
	Items  []jsontext.Value `json:"items"`
	// Status, if it is not 0, is that of an error, and Body what it says.
	Status int            `json:"status"`
	Body   jsontext.Value `json:"body"`
}

// call is one tool call of a turn.
type call struct {
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// written is the arguments as the model writes them.
func (c call) written() string {
	if c.Arguments.Kind() == '"' {
		var verbatim string
		// It was read as a string when it was loaded.
		_ = json.Unmarshal(c.Arguments, &verbatim)
		return verbatim
	}
	return string(c.Arguments)
}

// readScenario reads one strictly: an unknown or repeated member, a wrong type
// and anything after the object are errors.
func readScenario(data []byte) (*scenario, error) {
	s := &scenario{Chunk: defaultChunk}
	if err := json.Unmarshal(data, s, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("found no scenario; expected an object with about, turns, chunk, write, pause_ms: %w", detail(err))
	}
	switch {
	case len(s.Turns) == 0:
		return nil, errors.New("found no turns; expected at least one")
	case s.Chunk < 1:
		return nil, fmt.Errorf("chunk: found %d; expected 1 or more", s.Chunk)
	case s.Write < 0:
		return nil, fmt.Errorf("write: found %d; expected 0 or more", s.Write)
	case s.Pause < 0 || int64(s.Pause) > longestPause.Milliseconds():
		return nil, fmt.Errorf("pause_ms: found %d; expected 0 to %d", s.Pause, longestPause.Milliseconds())
	}
	for i := range s.Turns {
		if err := s.Turns[i].check(true); err != nil {
			return nil, fmt.Errorf("/turns/%d: %w", i, err)
		}
	}
	return s, nil
}

const longestPause = 10 * time.Second

func (s *scenario) pause() time.Duration { return time.Duration(s.Pause) * time.Millisecond }

// check says what is wrong with a turn, and puts its arguments on one line.
func (t *turn) check(first bool) error {
	if t.Text == "" && len(t.Calls) == 0 && len(t.Blocks) == 0 && len(t.Items) == 0 && t.Status == 0 {
		return errors.New("found neither text nor calls; expected one of them, or blocks, items or status")
	}
	if t.Fault != "" && t.Fault != faultCut && t.Fault != faultStall && t.Fault != faultError {
		return fmt.Errorf("found the fault %q; expected %s, %s or %s", t.Fault, faultCut, faultStall, faultError)
	}
	if t.Status != 0 && (t.Status < 400 || t.Status > 599) {
		return fmt.Errorf("status: found %d; expected 400 to 599", t.Status)
	}
	if t.Body != nil && t.Status == 0 {
		return errors.New("found body without status; expected both")
	}
	for _, raw := range slices.Concat(t.Blocks, t.Items) {
		if typeOf(raw) == "" {
			return errors.New("found a block or an item without a type; expected an object with one")
		}
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		if c.Name == "" {
			return fmt.Errorf("/calls/%d: found no name; expected one", i)
		}
		if kind := c.Arguments.Kind(); kind != '{' && kind != '"' {
			return fmt.Errorf("/calls/%d: found no arguments; expected an object, or a string that stands verbatim", i)
		}
		if err := c.Arguments.Compact(); err != nil {
			return fmt.Errorf("/calls/%d: %w", i, err)
		}
	}
	switch {
	case t.AfterRefusal == nil:
		return nil
	case !first:
		return errors.New("found after_refusal within after_refusal; expected it once")
	}
	if err := t.AfterRefusal.check(false); err != nil {
		return fmt.Errorf("/after_refusal: %w", err)
	}
	return nil
}

// typeOf is the type of a block or an item, and empty for what is neither.
func typeOf(raw jsontext.Value) string {
	var typed struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &typed) != nil {
		return ""
	}
	return typed.Type
}

// detail takes the library's own words out of an error: its cause and place are
// what an author needs.
func detail(err error) error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.Err != nil {
		return fmt.Errorf("at %q: %w", string(semantic.JSONPointer), semantic.Err)
	}
	return err
}

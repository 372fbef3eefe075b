package chat

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/strictjson"
)

// Bounds of indexes.
const (
	maxChoices   = 128
	maxToolCalls = 1024
)

// Bounds of an answer's id and finish_reason, in bytes.
const (
	maxIDLength           = 256
	maxFinishReasonLength = 64
)

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// isFinishReason reports whether a text has the form of a finish_reason: one word, or empty.
func isFinishReason(s string) bool {
	return len(s) <= maxFinishReasonLength && strings.Trim(s, alphanumeric+"_") == ""
}

// readAnswer parses a completion or a chunk into the fields that both have, except choices;
// choice must read each element of choices.
func (r *Reader) readAnswer(b []byte, h *Chunk, choice func() error) error {
	chosen := false
	err := r.document(b, func(name []byte) (err error) {
		switch string(name) {
		case "id":
			if h.ID, err = r.text(); h.ID != "" && (len(h.ID) > maxIDLength || !ascii.IsPlainID(h.ID)) {
				err = r.typeError("an id in plain characters")
			}
		case "object":
			_, err = r.text()
		case "created":
			h.Created, err = r.seconds()
		case "model":
			h.Model, err = r.text()
		case "choices":
			chosen = true
			err = r.array(choice)
		case "usage":
			h.Usage, err = r.readUsage()
		case "error":
			err = r.readProviderError()
		default:
			if err = r.keepExtra(&h.Extra, name); err == nil {
				last := len(h.Extra) - 1
				if value := h.Extra[last].Value; value[0] == '"' {
					r.addSlot(len(value), last)
				}
			}
		}
		return err
	})
	if err == nil && !chosen {
		err = errors.New("an answer without choices")
	}
	return err
}

// readProviderError reads the member error that a provider sends instead of an answer.
func (r *Reader) readProviderError() error {
	if null, err := r.null(); null {
		return err
	}
	raw, err := r.value()
	if err != nil {
		return err
	}
	failure := ReadFailure(raw)
	return &ProviderError{ErrorSuffix(failure.Type, failure.Code)}
}

// ProviderError is a failure that the provider reports in its answer.
type ProviderError struct{ detail string }

func (e *ProviderError) Error() string { return "an error stands in the answer" + e.detail }

func (r *Reader) readUsage() (*Usage, error) {
	if null, err := r.null(); null {
		return nil, err
	}
	if r.kind() != '{' {
		return nil, r.skipOther("an object or null")
	}
	raw, err := r.value()
	if err != nil {
		return nil, err
	}
	if strictjson.Deeper(raw, maxDepth) {
		return nil, fmt.Errorf("usage nested deeper than %d levels", maxDepth)
	}
	u := &Usage{Raw: oneLine(bytes.Clone(raw))}
	if r.usage == nil {
		r.usage = new(Reader)
	}
	inner := r.usage
	err = inner.document(u.Raw, func(name []byte) (err error) {
		switch string(name) {
		case "prompt_tokens":
			u.PromptTokens, err = inner.whole()
		case "completion_tokens":
			u.CompletionTokens, err = inner.whole()
		case "total_tokens":
			u.TotalTokens, err = inner.whole()
		default:
			err = inner.skip()
		}
		return err
	})
	return u, err
}

// readChoice parses one choice. inner is the member with its message or delta, which has at
// most maxCalls calls; other is the member of the other form, which is skipped. The result
// reports whether inner is there.
func (r *Reader) readChoice(inner, other string, maxCalls int) (DeltaChoice, bool, error) {
	c := DeltaChoice{Index: -1}
	found := false
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			var n int64
			if n, err = r.whole(); err == nil && n >= maxChoices {
				return fmt.Errorf("a choice beyond %d", maxChoices)
			}
			c.Index = int(n)
		case "finish_reason":
			switch c.FinishReason, err = r.optional(); {
			case c.FinishReason == nil:
			case *c.FinishReason == "":
				c.FinishReason = nil
			case !isFinishReason(*c.FinishReason):
				err = r.typeError("a reason of one word")
			}
		case "error":
			err = r.readProviderError()
		case inner:
			if null, err := r.null(); null {
				return err
			}
			found = true
			err = r.readMessage(&c.Delta, maxCalls)
		case other:
			err = r.skip()
		default:
			err = r.keepExtra(&c.Extra, name)
		}
		return err
	})
	switch {
	case err != nil:
	case c.Index < 0:
		err = errors.New("a choice without an index")
	case c.FinishReason != nil && *c.FinishReason == "error":
		err = &ProviderError{", as the reason why it finished"}
	}
	return c, found, err
}

// readMessage parses a message or a delta with at most maxCalls calls.
func (r *Reader) readMessage(m *Delta, maxCalls int) error {
	return r.object(func(name []byte) (err error) {
		switch string(name) {
		case "role":
			m.Role, err = r.text()
		case "content":
			if m.Content, err = r.optional(); m.Content != nil {
				r.addSlot(r.stringLength, inContent)
			}
		case "refusal":
			m.Refusal, err = r.optional()
		case "tool_calls":
			if null, err := r.null(); null {
				return err
			}
			err = r.array(func() error {
				call, err := r.readToolCall()
				if err == nil && len(m.ToolCalls) == maxCalls {
					err = fmt.Errorf("more than %d calls", maxCalls)
				}
				m.ToolCalls = append(m.ToolCalls, call)
				return err
			})
		case "function_call":
			if null, err := r.null(); null {
				return err
			}
			m.FunctionCall = true
			err = r.skip()
		default:
			err = r.keepExtra(&m.Extra, name)
		}
		return err
	})
}

// readToolCall parses one element of tool_calls.
func (r *Reader) readToolCall() (ToolDelta, error) {
	c := ToolDelta{Index: -1}
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			if null, err := r.null(); null {
				return err
			}
			var n int64
			if n, err = r.whole(); err == nil && n >= maxToolCalls {
				return fmt.Errorf("a call beyond %d", maxToolCalls)
			}
			c.Index = int(n)
		case "id":
			c.ID, err = r.text()
		case "type":
			c.Type, err = r.text()
		case "function":
			if null, err := r.null(); null {
				return err
			}
			err = r.readFunction(&c)
		default:
			err = r.keepExtra(&c.Extra, name)
		}
		return err
	})
	return c, err
}

func (r *Reader) readFunction(c *ToolDelta) error {
	return r.object(func(name []byte) (err error) {
		switch string(name) {
		case "name":
			c.Name, err = r.text()
		case "arguments":
			var b []byte
			b, _, err = r.bytes()
			c.Arguments = bytes.Clone(b)
		default:
			err = r.skip()
		}
		return err
	})
}

// ReadCompletion parses an answer that was not streamed.
func (r *Reader) ReadCompletion(b []byte) (*Completion, error) {
	var (
		h       Chunk
		choices []Choice
	)
	err := r.readAnswer(b, &h, func() error {
		c, found, err := r.readChoice("message", "delta", maxToolCalls)
		if err == nil && !found {
			err = errors.New("a choice without a message")
		}
		choices = append(choices, c.whole())
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &Completion{ID: h.ID, Model: h.Model, Created: h.Created, Choices: choices, Usage: h.Usage, Extra: h.Extra}
	return c, c.sortChoices()
}

// whole returns the choice of an answer that was not streamed.
func (c DeltaChoice) whole() Choice {
	d := c.Delta
	choice := Choice{Index: c.Index, Extra: c.Extra, Message: Message{
		Content: d.Content, Refusal: d.Refusal, FunctionCall: d.FunctionCall, Extra: d.Extra,
	}}
	if c.FinishReason != nil {
		choice.FinishReason = *c.FinishReason
	}
	for i, t := range d.ToolCalls {
		choice.Message.ToolCalls = append(choice.Message.ToolCalls, ToolCall{
			Index: i, ID: t.ID, Type: t.Type, Name: t.Name, Arguments: t.Arguments, Extra: t.Extra,
		})
	}
	return choice
}

// sortChoices sorts the choices by index, which must be 0 to n-1.
func (c *Completion) sortChoices() error {
	if len(c.Choices) == 0 {
		return errors.New("an answer without a choice")
	}
	slices.SortStableFunc(c.Choices, func(a, b Choice) int { return cmp.Compare(a.Index, b.Index) })
	for i := range c.Choices {
		if c.Choices[i].Index != i {
			return errors.New("choices whose indexes are not 0 and up")
		}
	}
	return nil
}

// ReadChunk parses the data of one event.
func (r *Reader) ReadChunk(b []byte) (*Chunk, error) {
	if c := r.template.match(b); c != nil {
		return c, nil
	}
	r.slots = r.slots[:0]
	c := &Chunk{}
	err := r.readAnswer(b, c, func() error {
		choice, _, err := r.readChoice("delta", "message", math.MaxInt)
		c.Choices = append(c.Choices, choice)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.template.learn(b, c, r.slots)
	return c, nil
}

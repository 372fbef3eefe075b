package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/refusal"
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

// IsPlainID reports whether an identifier of a provider consists of letters, digits and
// punctuation in which no text can be hidden: no spaces, quotes or brackets.
func IsPlainID(id string) bool { return id != "" && strings.Trim(id, alphanumeric+"_-.:/+=~@|#") == "" }

// isFinishReason reports whether a text has the form of a finish_reason: one word, or empty.
func isFinishReason(s string) bool {
	return len(s) <= maxFinishReasonLength && strings.Trim(s, alphanumeric+"_") == ""
}

// commonFields are the fields that completions and chunks share, except choices.
type commonFields struct {
	id, model string
	created   int64
	usage     *Usage
	extra     Extra
}

// readAnswer parses a completion or a chunk; choice must read each element of choices.
func (r *reader) readAnswer(b []byte, choice func() error) (commonFields, error) {
	var h commonFields
	chosen := false
	err := r.document(b, func(name []byte) (err error) {
		switch string(name) {
		case "id":
			if h.id, err = r.text(); h.id != "" && (len(h.id) > maxIDLength || !IsPlainID(h.id)) {
				err = r.typeError("an id in plain characters")
			}
		case "object":
			_, err = r.text()
		case "created":
			h.created, err = r.seconds()
		case "model":
			h.model, err = r.text()
		case "choices":
			chosen = true
			err = r.array(choice)
		case "usage":
			h.usage, err = r.readUsage()
		case "error":
			err = r.readProviderError()
		default:
			if err = r.keepExtra(&h.extra, name); err == nil {
				last := len(h.extra) - 1
				if value := h.extra[last].Value; value[0] == '"' {
					r.addSlot(len(value), last)
				}
			}
		}
		return err
	})
	if err == nil && !chosen {
		err = errors.New("an answer without choices")
	}
	return h, err
}

// readProviderError reads the member error that a provider sends instead of an answer.
func (r *reader) readProviderError() error {
	if null, err := r.null(); null {
		return err
	}
	raw, err := r.value()
	if err != nil {
		return err
	}
	said := readFailure(raw)
	return &providerError{errorSuffix(said.Type, said.Code)}
}

// providerError is a failure that the provider reports in its answer.
type providerError struct{ said string }

func (e *providerError) Error() string { return "an error stands in the answer" + e.said }

func (r *reader) readUsage() (*Usage, error) {
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
	var inner reader
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

// choiceFields are the fields of a choice beside its message or delta.
type choiceFields struct {
	index      int
	finish     *string // nil if null, absent or empty
	extra      Extra
	hasMessage bool // the message or the delta is there
}

// readChoice parses one choice. inner is the member read by read (message or delta); other is
// the member of the other form, which is skipped.
func (r *reader) readChoice(inner, other string, read func() error) (choiceFields, error) {
	p := choiceFields{index: -1}
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			var n int64
			if n, err = r.whole(); err == nil && n >= maxChoices {
				return fmt.Errorf("a choice beyond %d", maxChoices)
			}
			p.index = int(n)
		case "finish_reason":
			switch p.finish, err = r.optional(); {
			case p.finish == nil:
			case *p.finish == "":
				p.finish = nil
			case !isFinishReason(*p.finish):
				err = r.typeError("a reason of one word")
			}
		case "error":
			err = r.readProviderError()
		case inner:
			if null, err := r.null(); null {
				return err
			}
			p.hasMessage = true
			err = read()
		case other:
			err = r.skip()
		default:
			err = r.keepExtra(&p.extra, name)
		}
		return err
	})
	switch {
	case err != nil:
		return p, err
	case p.index < 0:
		return p, errors.New("a choice without an index")
	case p.finish != nil && *p.finish == "error":
		return p, &providerError{", as the reason why it finished"}
	}
	return p, nil
}

// messageFields are the fields that messages and deltas share, except calls.
type messageFields struct {
	role             string
	content, refusal *string
	functionCall     bool
	extra            Extra
}

// readMessage parses a message or a delta; call must read each element of tool_calls.
func (r *reader) readMessage(s *messageFields, call func() error) error {
	return r.object(func(name []byte) (err error) {
		switch string(name) {
		case "role":
			s.role, err = r.text()
		case "content":
			if s.content, err = r.optional(); s.content != nil {
				r.addSlot(r.stringLength, inContent)
			}
		case "refusal":
			s.refusal, err = r.optional()
		case "tool_calls":
			if null, err := r.null(); null {
				return err
			}
			err = r.array(call)
		case "function_call":
			if null, err := r.null(); null {
				return err
			}
			s.functionCall = true
			err = r.skip()
		default:
			err = r.keepExtra(&s.extra, name)
		}
		return err
	})
}

// readToolCall parses one element of tool_calls.
func (r *reader) readToolCall() (ToolDelta, error) {
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

func (r *reader) readFunction(c *ToolDelta) error {
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

// readCompletion parses an answer that was not streamed.
func (r *reader) readCompletion(b []byte) (*Completion, error) {
	c := &Completion{}
	h, err := r.readAnswer(b, func() error {
		var (
			said  messageFields
			calls []ToolCall
		)
		p, err := r.readChoice("message", "delta", func() error {
			return r.readMessage(&said, func() error {
				d, err := r.readToolCall()
				if err == nil && len(calls) == maxToolCalls {
					err = fmt.Errorf("more than %d calls", maxToolCalls)
				}
				calls = append(calls, ToolCall{Index: len(calls), ID: d.ID, Type: d.Type, Name: d.Name, Arguments: d.Arguments, Extra: d.Extra})
				return err
			})
		})
		switch {
		case err != nil:
			return err
		case !p.hasMessage:
			return errors.New("a choice without a message")
		}
		choice := Choice{Index: p.index, Extra: p.extra, Message: Message{
			Content: said.content, Refusal: said.refusal, ToolCalls: calls, FunctionCall: said.functionCall, Extra: said.extra,
		}}
		if p.finish != nil {
			choice.FinishReason = *p.finish
		}
		c.Choices = append(c.Choices, choice)
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.ID, c.Model, c.Created, c.Usage, c.Extra = h.id, h.model, h.created, h.usage, h.extra
	return c, c.sortChoices()
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

// readChunk parses the data of one event.
func (r *reader) readChunk(b []byte) (*Chunk, error) {
	if c := r.template.match(b); c != nil {
		return c, nil
	}
	r.slots = r.slots[:0]
	c := &Chunk{}
	h, err := r.readAnswer(b, func() error {
		var (
			said  messageFields
			calls []ToolDelta
		)
		p, err := r.readChoice("delta", "message", func() error {
			return r.readMessage(&said, func() error {
				d, err := r.readToolCall()
				calls = append(calls, d)
				return err
			})
		})
		if err != nil {
			return err
		}
		c.Choices = append(c.Choices, DeltaChoice{Index: p.index, FinishReason: p.finish, Extra: p.extra, Delta: Delta{
			Role: said.role, Content: said.content, Refusal: said.refusal, ToolCalls: calls, FunctionCall: said.functionCall, Extra: said.extra,
		}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.ID, c.Model, c.Created, c.Usage, c.Extra = h.id, h.model, h.created, h.usage, h.extra
	r.template.learn(b, c, r.slots)
	return c, nil
}

// invalidAnswer returns the refusal for an answer that cannot be parsed, or that reports an error.
func invalidAnswer(upstream string, err error) *refusal.Error {
	var reported *providerError
	if errors.As(err, &reported) {
		return failed("%s: %w", upstream, err)
	}
	return malformed("%s: found %w", upstream, err)
}

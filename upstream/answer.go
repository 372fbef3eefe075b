package upstream

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/refusal"
)

// The bounds of indexes.
const (
	mostChoices = 128
	mostCalls   = 1024
)

// mostIDLen and mostReasonLen bound what a provider names an answer, and why it ended.
const (
	mostIDLen     = 256
	mostReasonLen = 64
)

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Plain tells whether an identifier of a provider holds none but characters that
// nothing is written in: no spaces, quotes or brackets.
func Plain(id string) bool { return id != "" && strings.Trim(id, alphanumeric+"_-.:/+=~@|#") == "" }

// reason tells whether a text can say why an answer ended: one word, whatever it is.
func reason(s string) bool { return len(s) <= mostReasonLen && strings.Trim(s, alphanumeric+"_") == "" }

// head is what a completion and a chunk have in common beside their choices.
type head struct {
	id, model string
	created   int64
	usage     *Usage
	extra     Extra
}

// answer reads a completion or a chunk; choice reads each element of choices.
func (r *reader) answer(b []byte, choice func() error) (head, error) {
	var h head
	chosen := false
	err := r.document(b, func(name []byte) (err error) {
		switch string(name) {
		case "id":
			if h.id, err = r.text(); h.id != "" && (len(h.id) > mostIDLen || !Plain(h.id)) {
				err = r.otherThan("an id in plain characters")
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
			h.usage, err = r.usage()
		case "error":
			err = r.reported()
		default:
			if err = r.keep(&h.extra, name); err == nil {
				last := len(h.extra) - 1
				if value := h.extra[last].Value; value[0] == '"' {
					r.hole(len(value), last)
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

// reported reads an error that a provider writes where an answer should be.
func (r *reader) reported() error {
	if null, err := r.null(); null {
		return err
	}
	raw, err := r.value()
	if err != nil {
		return err
	}
	said := readFailure(raw)
	return &reportedError{named(said.Type, said.Code)}
}

// reportedError is a failure that the provider names itself.
type reportedError struct{ said string }

func (e *reportedError) Error() string { return "an error stands in the answer" + e.said }

func (r *reader) usage() (*Usage, error) {
	if null, err := r.null(); null {
		return nil, err
	}
	if r.kind() != '{' {
		return nil, r.unlike("an object or null")
	}
	raw, err := r.value()
	if err != nil {
		return nil, err
	}
	if deep(raw) {
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

// place is what every choice has.
type place struct {
	index    int
	finish   *string // nil where it is null, absent or empty
	extra    Extra
	answered bool // the message or the delta was there
}

// choice reads one choice. inner is the member that holds what it says; other is
// the one that would say it in the other form, and is passed over.
func (r *reader) choice(inner, other string, read func() error) (place, error) {
	p := place{index: -1}
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			var n int64
			if n, err = r.whole(); err == nil && n >= mostChoices {
				return fmt.Errorf("a choice beyond %d", mostChoices)
			}
			p.index = int(n)
		case "finish_reason":
			switch p.finish, err = r.optional(); {
			case p.finish == nil:
			case *p.finish == "":
				p.finish = nil
			case !reason(*p.finish):
				err = r.otherThan("a reason of one word")
			}
		case "error":
			err = r.reported()
		case inner:
			if null, err := r.null(); null {
				return err
			}
			p.answered = true
			err = read()
		case other:
			err = r.skip()
		default:
			err = r.keep(&p.extra, name)
		}
		return err
	})
	switch {
	case err != nil:
		return p, err
	case p.index < 0:
		return p, errors.New("a choice without an index")
	case p.finish != nil && *p.finish == "error":
		return p, &reportedError{", as the reason why it finished"}
	}
	return p, nil
}

// spoken is what a message and a delta have in common beside their calls.
type spoken struct {
	role             string
	content, refused *string
	legacy           bool
	extra            Extra
}

// said reads a message or a delta; call reads each element of tool_calls.
func (r *reader) said(s *spoken, call func() error) error {
	return r.object(func(name []byte) (err error) {
		switch string(name) {
		case "role":
			s.role, err = r.text()
		case "content":
			if s.content, err = r.optional(); s.content != nil {
				r.hole(r.length, inContent)
			}
		case "refusal":
			s.refused, err = r.optional()
		case "tool_calls":
			if null, err := r.null(); null {
				return err
			}
			err = r.array(call)
		case "function_call":
			if null, err := r.null(); null {
				return err
			}
			s.legacy = true
			err = r.skip()
		default:
			err = r.keep(&s.extra, name)
		}
		return err
	})
}

// call reads one element of tool_calls.
func (r *reader) call() (ToolDelta, error) {
	c := ToolDelta{Index: -1}
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			if null, err := r.null(); null {
				return err
			}
			var n int64
			if n, err = r.whole(); err == nil && n >= mostCalls {
				return fmt.Errorf("a call beyond %d", mostCalls)
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
			err = r.function(&c)
		default:
			err = r.keep(&c.Extra, name)
		}
		return err
	})
	return c, err
}

func (r *reader) function(c *ToolDelta) error {
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

// completion reads an answer that was not streamed.
func (r *reader) completion(b []byte) (*Completion, error) {
	c := &Completion{}
	h, err := r.answer(b, func() error {
		var (
			said  spoken
			calls []ToolCall
		)
		p, err := r.choice("message", "delta", func() error {
			return r.said(&said, func() error {
				d, err := r.call()
				if err == nil && len(calls) == mostCalls {
					err = fmt.Errorf("more than %d calls", mostCalls)
				}
				calls = append(calls, ToolCall{Index: len(calls), ID: d.ID, Type: d.Type, Name: d.Name, Arguments: d.Arguments, Extra: d.Extra})
				return err
			})
		})
		switch {
		case err != nil:
			return err
		case !p.answered:
			return errors.New("a choice without a message")
		}
		choice := Choice{Index: p.index, Extra: p.extra, Message: Message{
			Content: said.content, Refusal: said.refused, ToolCalls: calls, FunctionCall: said.legacy, Extra: said.extra,
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
	return c, c.inOrder()
}

// inOrder sorts the choices, and refuses a set that is not 0 to n-1.
func (c *Completion) inOrder() error {
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

// chunk reads the data of one event.
func (r *reader) chunk(b []byte) (*Chunk, error) {
	if c := r.stencil.read(b); c != nil {
		return c, nil
	}
	r.holes = r.holes[:0]
	c := &Chunk{}
	h, err := r.answer(b, func() error {
		var (
			said  spoken
			calls []ToolDelta
		)
		p, err := r.choice("delta", "message", func() error {
			return r.said(&said, func() error {
				d, err := r.call()
				calls = append(calls, d)
				return err
			})
		})
		if err != nil {
			return err
		}
		c.Choices = append(c.Choices, DeltaChoice{Index: p.index, FinishReason: p.finish, Extra: p.extra, Delta: Delta{
			Role: said.role, Content: said.content, Refusal: said.refused, ToolCalls: calls, FunctionCall: said.legacy, Extra: said.extra,
		}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	c.ID, c.Model, c.Created, c.Usage, c.Extra = h.id, h.model, h.created, h.usage, h.extra
	r.stencil.cut(b, c, r.holes)
	return c, nil
}

// unreadable judges an answer whose bytes came, but say nothing.
func unreadable(upstream string, err error) *refusal.Error {
	var reported *reportedError
	if errors.As(err, &reported) {
		return failed("%s: %w", upstream, err)
	}
	return garbled("%s: found %w", upstream, err)
}

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

// isFinishReason reports whether a text has the form of a finish_reason: one word such as tool_calls, or
// empty; or two, as in "function_call_filter: MALFORMED_FUNCTION_CALL", which Gemini writes.
func isFinishReason(s string) bool {
	first, second, _ := strings.Cut(s, ": ")
	return len(s) <= maxFinishReasonLength && strings.Trim(first+second, alphanumeric+"_-") == ""
}

// readAnswer parses a completion or a chunk; choice must read each element of choices, and add it to
// those of h.
func (r *Reader) readAnswer(b []byte, h *Chunk, choice func() error) error {
	object, chosen, used := "", false, false
	r.failed = false
	err := r.document(b, func(name []byte) (err error) {
		switch string(name) {
		case "id":
			if h.ID, err = r.label(); len(h.ID) > maxIDLength || !ascii.IsPlainID(h.ID) {
				h.ID = ""
			}
		case "object":
			object, err = r.label()
		case "created":
			h.Created, err = r.seconds()
		case "model":
			h.Model, err = r.label()
		case "choices":
			chosen = true
			if null, err := r.null(); null {
				return err
			}
			err = r.array(choice)
		case "usage":
			used = true
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
	if err != nil {
		return err
	}
	if object == "error" || !chosen && !used && object != "chat.completion.chunk" && len(h.Extra) > 0 {
		// Some servers send the failure itself in place of an answer.
		if object == "error" || ReadFailure(b).Message != "" {
			return providerError(b)
		}
		return errors.New("an answer without choices")
	}
	if r.failed { // the member error, which says why, may stand behind the choices
		return &ProviderError{detail: ", as the reason why it finished"}
	}
	return r.settleIndexes(h.Choices)
}

// settleIndexes gives a choice without an index that of the only one.
func (r *Reader) settleIndexes(choices []DeltaChoice) error {
	for i := range choices {
		if choices[i].Index >= 0 {
			continue
		}
		if len(choices) > 1 || r.Choices > 1 {
			return errors.New("a choice without an index, where it is not the only one")
		}
		choices[i].Index = 0
	}
	return nil
}

// readProviderError reads the member error that a provider sends instead of an answer. Some servers
// write an empty one beside each answer.
func (r *Reader) readProviderError() error {
	raw, err := r.value()
	if err != nil || slices.Contains([]string{"null", "false", `""`, "{}"}, string(raw)) {
		return err
	}
	return providerError(raw)
}

func providerError(raw []byte) error {
	failure := ReadFailure(raw)
	return &ProviderError{Failure: failure, detail: ErrorSuffix(failure.Type, failure.Code)}
}

// ProviderError is a failure that the provider reports in its answer.
type ProviderError struct {
	Failure Failure // what it says of why
	detail  string
}

func (e *ProviderError) Error() string { return "an error stands in the answer" + e.detail }

// readUsage reads the usage. One that cannot be read is none: it decides nothing about the answer.
func (r *Reader) readUsage() (*Usage, error) {
	raw, err := r.value()
	if err != nil || raw[0] != '{' || strictjson.Deeper(raw, maxDepth) {
		return nil, err
	}
	u := &Usage{Raw: oneLine(bytes.Clone(raw))}
	if r.usage == nil {
		r.usage = new(Reader)
	}
	inner := r.usage
	if inner.document(u.Raw, func(name []byte) (err error) {
		switch string(name) {
		case "prompt_tokens":
			u.PromptTokens, err = inner.count()
		case "completion_tokens":
			u.CompletionTokens, err = inner.count()
		case "total_tokens":
			u.TotalTokens, err = inner.count()
		default:
			err = inner.skip()
		}
		return err
	}) != nil {
		return nil, nil //nolint:nilerr // usage that cannot be read is none
	}
	return u, nil
}

// readChoice parses one choice. inner is the member with its message or delta, which has at
// most maxCalls calls; other is the member of the other form, which is skipped. The result
// reports whether inner is there. Without an index, that of the choice is -1.
func (r *Reader) readChoice(inner, other string, maxCalls int) (DeltaChoice, bool, error) {
	c := DeltaChoice{Index: -1}
	found := false
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "index":
			if null, err := r.null(); null {
				return err
			}
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
				err = fmt.Errorf("a finish_reason that is not a plain word, before byte %d", r.decoder.InputOffset())
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
	r.failed = r.failed || c.FinishReason != nil && *c.FinishReason == "error"
	return c, found, err
}

// readMessage parses a message or a delta with at most maxCalls calls.
func (r *Reader) readMessage(m *Delta, maxCalls int) error {
	var thoughts []byte // those that stand in content
	err := r.object(func(name []byte) (err error) {
		switch string(name) {
		case "role":
			m.Role, err = r.label()
		case "content":
			if r.kind() == '[' {
				thoughts, err = r.readParts(m)
				return err
			}
			if m.Content, err = r.optional(); m.Content != nil {
				r.addSlot(r.stringLength, inContent)
			}
		case "refusal":
			var refusal *string
			if refusal, err = r.optional(); refusal != nil {
				m.Refusal = join(m.Refusal, *refusal)
			}
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
			m.FunctionCall, err = r.readLegacyCall()
		default:
			err = r.keepExtra(&m.Extra, name)
		}
		return err
	})
	if err == nil && len(thoughts) > 0 && m.Extra.Lookup(thoughtMember) == nil {
		m.Extra = append(m.Extra, Member{thoughtMember, strictjson.AppendQuote(nil, thoughts)})
	}
	return err
}

// thoughtMember is the member in which most providers write what a model thought.
const thoughtMember = "reasoning_content"

// readParts reads content that is a list of parts, as Mistral writes it: the texts are one text, a
// refusal is that of the message, and what the model thought is returned.
func (r *Reader) readParts(m *Delta) (thoughts []byte, err error) {
	err = r.array(func() error {
		var (
			kind          string
			text, refusal *string
			thought       []byte
		)
		err := r.object(func(name []byte) (err error) {
			switch string(name) {
			case "type":
				kind, err = r.text()
			case "text":
				text, err = r.optional()
			case "refusal":
				refusal, err = r.optional()
			case "thinking", "summary":
				thought, err = r.readThinking()
			default:
				err = r.skip()
			}
			return err
		})
		switch {
		case err != nil:
		case (kind == "text" || kind == "output_text") && text != nil:
			m.Content = join(m.Content, *text)
		case kind == "refusal" && refusal != nil:
			m.Refusal = join(m.Refusal, *refusal)
		case kind == "thinking", kind == "reasoning": // of which Databricks writes a summary
			thoughts = append(thoughts, thought...)
		case kind == "reference": // numbers of sources
		default:
			err = errors.New("a part of content of a type that is not known")
		}
		return err
	})
	return thoughts, err
}

// readThinking reads what the model thought: a text, or parts with one each.
func (r *Reader) readThinking() (thought []byte, err error) {
	if r.kind() != '[' {
		thought, _, err = r.bytes()
		return bytes.Clone(thought), err
	}
	err = r.array(func() error {
		return r.object(func(name []byte) error {
			if string(name) != "text" {
				return r.skip()
			}
			text, _, err := r.bytes()
			thought = append(thought, text...)
			return err
		})
	})
	return thought, err
}

// join appends a text to one that may not have begun.
func join(before *string, text string) *string {
	if before != nil {
		text = *before + text
	}
	return &text
}

// readLegacyCall reads function_call, and reports whether it calls: some servers write it beside
// every text, with an empty name and no arguments.
func (r *Reader) readLegacyCall() (called bool, err error) {
	if null, err := r.null(); null {
		return false, err
	}
	if r.kind() != '{' {
		raw, err := r.value()
		return string(raw) != `""`, err
	}
	err = r.object(func(name []byte) error {
		member := string(name)
		raw, err := r.value()
		empty := member == "name" || member == "arguments"
		called = called || !empty || string(raw) != `""` && string(raw) != "null"
		return err
	})
	return called, err
}

// readToolCall parses one element of tool_calls.
func (r *Reader) readToolCall() (ToolDelta, error) {
	c := ToolDelta{Index: -1}
	elsewhere := ""
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
			c.ID, err = r.textOfCall("id")
		case "type":
			c.Type, err = r.textOfCall("type")
		case "function":
			if null, err := r.null(); null {
				return err
			}
			err = r.readFunction(&c, &elsewhere)
		default:
			if err = r.keepExtra(&c.Extra, name); err == nil {
				last := c.Extra[len(c.Extra)-1]
				noteArguments(&elsewhere, last.Name, last.Value)
			}
		}
		return err
	})
	if err == nil && elsewhere != "" && len(bytes.TrimSpace(c.Arguments)) == 0 {
		err = fmt.Errorf("a call whose arguments stand in the member %s", elsewhere)
	}
	return c, err
}

// readFunction reads a function, and notes the member that seems to hold its arguments where it is not
// that of this name.
func (r *Reader) readFunction(c *ToolDelta, elsewhere *string) error {
	return r.object(func(name []byte) (err error) {
		switch member := string(name); member {
		case "name":
			c.Name, err = r.textOfCall("name")
		case "arguments":
			c.Arguments, err = r.readArguments()
		default:
			var value []byte
			if value, err = r.value(); err == nil {
				noteArguments(elsewhere, member, value)
			}
		}
		return err
	})
}

// noteArguments notes the name of a member in which a server may have written the arguments of a call:
// without them the call would be another one. An empty one holds none.
func noteArguments(elsewhere *string, name string, value []byte) {
	isEmpty := slices.Contains([]string{"null", `""`, "{}", "[]"}, string(value))
	if folded := ascii.Folded(name); !isEmpty && slices.Contains([]string{"arguments", "args", "parameters", "input"}, folded) {
		*elsewhere = folded
	}
}

// readArguments reads the arguments of a call: a string, or, as some servers write them, the object
// itself.
func (r *Reader) readArguments() ([]byte, error) {
	var b []byte
	var err error
	switch r.kind() {
	case '{':
		b, err = r.value()
	case '"', 'n':
		b, _, err = r.bytes()
	default:
		if err = r.skip(); err == nil {
			err = fmt.Errorf("a call whose arguments are neither a string nor an object, before byte %d", r.decoder.InputOffset())
		}
	}
	return bytes.Clone(b), err
}

// ReadCompletion parses an answer that was not streamed.
func (r *Reader) ReadCompletion(b []byte) (*Completion, error) {
	var h Chunk
	err := r.readAnswer(b, &h, func() error {
		c, found, err := r.readChoice("message", "delta", maxToolCalls)
		if err == nil && !found {
			err = errors.New("a choice without a message")
		}
		h.Choices = append(h.Choices, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	c := &Completion{ID: h.ID, Model: h.Model, Created: h.Created, Usage: h.Usage, Extra: h.Extra}
	for _, choice := range h.Choices {
		c.Choices = append(c.Choices, choice.whole())
	}
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

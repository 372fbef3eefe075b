package chat

import (
	"bytes"
	"context"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// conversation is the history as it is sent to the model. It only grows.
type conversation struct {
	messages [][]byte
}

// add appends the messages of a turn, and returns how long they are.
func (v *conversation) add(messages ...[]byte) int {
	added := 0
	for _, m := range messages {
		added += len(m)
	}
	v.messages = append(v.messages, messages...)
	return added
}

// bytes is the conversation as a list.
func (v *conversation) bytes() []byte {
	size := len("[]") + len(v.messages)
	for _, m := range v.messages {
		size += len(m)
	}
	b := append(make([]byte, 0, size), '[')
	for i, m := range v.messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	return append(b, ']')
}

// writeHistory writes the history of the request as the model's protocol has it.
func (r *run) writeHistory(ctx context.Context) error {
	if err := r.hookHistory(ctx); err != nil {
		return err
	}
	if r.Route.Rules.Protocol != upstream.Text {
		return r.writeNativeHistory(ctx)
	}
	return r.writeTextHistory(ctx)
}

// writeNativeHistory writes the history as the application has it: results of its own tools, too.
func (r *run) writeNativeHistory(ctx context.Context) error {
	names := map[string]string{}
	for i := range r.request.history {
		m := &r.request.history[i]
		for _, call := range m.calls {
			names[call.id] = r.RegistryName(call.name)
		}
		raw := m.raw
		if m.role == "tool" {
			left, err := r.BroughtResult(ctx, names[m.toolCallID], m.content)
			if err != nil {
				return err
			}
			if !bytes.Equal(left, m.content) {
				raw = m.withContent(left)
			}
		}
		r.conversation.messages = append(r.conversation.messages, raw)
	}
	return nil
}

// writeTextHistory writes calls and results in the call language: one call a turn, each
// followed by its result.
func (r *run) writeTextHistory(ctx context.Context) error {
	history := r.request.history
	if len(r.Offer.Tools) > 0 && !r.Choice.None {
		system, err := r.systemPrompt()
		if err != nil {
			return err
		}
		if first := &history[0]; first.role == "system" || first.role == "developer" {
			first.prependText(system)
		} else {
			r.conversation.messages = append(r.conversation.messages, chatMessage("system", system))
		}
	}
	for i := 0; i < len(history); i++ {
		m := &history[i]
		if len(m.calls) == 0 {
			r.conversation.messages = append(r.conversation.messages, m.raw)
			continue
		}
		if text, ok := textParts(m.content); !ok && m.content != nil || text != "" {
			r.conversation.messages = append(r.conversation.messages, rawjson.Object{rawjson.Field("role", rawjson.Quote("assistant")), rawjson.Field("content", m.content)}.Bytes())
		}
		results := map[string]string{}
		for range m.calls { // each is answered once, right behind
			i++
			text, ok := textParts(history[i].content)
			if !ok {
				return bad("messages."+strconv.Itoa(i)+".content", "In front of a model that reads calls as text (protocol: text), the content of a tool's message must be a string, or a list of parts of the type \"text\".")
			}
			results[history[i].toolCallID] = text
		}
		for _, call := range m.calls {
			name := r.RegistryName(call.name)
			line, err := r.WrapBrought(ctx, name, results[call.id])
			if err != nil {
				return err
			}
			r.conversation.messages = append(r.conversation.messages, chatMessage("assistant", r.callText(name, call.arguments)), chatMessage("user", line))
		}
	}
	return nil
}

// withContent is the message with another content.
func (m *message) withContent(content []byte) []byte {
	members, _ := rawjson.Members(m.raw)
	return members.Set("content", content).Bytes()
}

// prependText puts a text before the content of a message.
func (m *message) prependText(before string) {
	if len(m.content) == 0 || m.content[0] != '[' {
		text, _ := rawjson.String(m.content)
		m.raw = m.withContent(rawjson.Quote(before + "\n" + text))
		return
	}
	part := rawjson.Object{rawjson.Field("type", rawjson.Quote("text")), rawjson.Field("text", rawjson.Quote(before))}.Bytes()
	rest := m.content[parser.SkipSpace(m.content, 1):]
	if rest[0] != ']' {
		part = append(part, ',')
	}
	m.raw = m.withContent(slices.Concat([]byte{'['}, part, rest))
}

// callText is a call in the call language.
func (r *run) callText(name string, arguments []byte) string {
	b := append(strictjson.AppendQuote([]byte(r.callStart()+`"name":`), name), `,"arguments":`...)
	return string(append(append(b, arguments...), "}}"...))
}

// chatMessage is a message of a role.
func chatMessage(role, content string) []byte {
	return rawjson.Object{rawjson.Field("role", rawjson.Quote(role)), rawjson.Field("content", rawjson.Quote(content))}.Bytes()
}

package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// add appends the messages of a turn, and returns how long they are.
func (d *dialogue) add(messages ...[]byte) int {
	added := 0
	for _, m := range messages {
		added += len(m)
	}
	d.messages, d.asCame = append(d.messages, messages...), false
	return added
}

// History writes the history of the request as the model's protocol has it.
func (d *dialogue) History(ctx context.Context) error {
	if err := d.hookHistory(ctx); err != nil {
		return err
	}
	if d.Route.Rules.Protocol != upstream.Text {
		return d.writeNativeHistory(ctx)
	}
	return d.writeTextHistory(ctx)
}

// writeNativeHistory writes the history as the application has it: results of its own tools, too.
func (d *dialogue) writeNativeHistory(ctx context.Context) error {
	d.messages, d.asCame = make([][]byte, 0, len(d.history)), true
	calls := map[string]earlierCall{}
	for i := range d.history {
		m := &d.history[i]
		for _, call := range m.calls {
			call.name = d.RegistryName(call.name)
			calls[call.id] = call
		}
		raw := m.raw
		if m.role == "tool" {
			call := calls[m.toolCallID]
			d.Admission.BringsResult(call.name, call.arguments)
			left, err := d.BroughtResult(ctx, call.name, m.content)
			if err != nil {
				return err
			}
			if !bytes.Equal(left, m.content) {
				raw = m.withContent(left)
			}
		}
		d.messages, d.asCame = append(d.messages, raw), d.asCame && &raw[0] == &m.came[0]
	}
	return nil
}

// writeTextHistory writes calls and results in the call language: one call a turn, each
// followed by its result.
func (d *dialogue) writeTextHistory(ctx context.Context) error {
	history := d.history
	if len(d.Offer.Tools) > 0 && !d.Choice.None {
		system, err := d.SystemPrompt()
		if err != nil {
			return err
		}
		if first := &history[0]; first.role == "system" || first.role == "developer" {
			first.prependText(system)
		} else {
			d.messages = append(d.messages, chatMessage("system", system))
		}
	}
	for i := 0; i < len(history); i++ {
		m := &history[i]
		if len(m.calls) == 0 {
			d.messages = append(d.messages, m.raw)
			continue
		}
		if text, ok := textParts(m.content); !ok && m.content != nil || text != "" {
			d.messages = append(d.messages, rawjson.Object{rawjson.Field("role", rawjson.Quote("assistant")),
				rawjson.Field("content", m.content)}.Bytes())
		}
		results := map[string]string{}
		for range m.calls { // each is answered once, right behind
			i++
			text, ok := textParts(history[i].content)
			if !ok {
				return turns.Bad("messages."+strconv.Itoa(i)+".content", "In front of a model that reads calls as text (protocol: text), the content of a tool's message must be a string, or a list of parts of the type \"text\".")
			}
			results[history[i].toolCallID] = text
		}
		for _, call := range m.calls {
			name := d.RegistryName(call.name)
			d.Admission.BringsResult(name, call.arguments)
			line, err := d.WrapBrought(ctx, name, results[call.id])
			if err != nil {
				return err
			}
			d.messages = append(d.messages, chatMessage("assistant", string(d.CallText(name, call.arguments))), chatMessage("user", line))
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

// chatMessage is a message of a role.
func chatMessage(role, content string) []byte {
	return rawjson.Object{rawjson.Field("role", rawjson.Quote(role)), rawjson.Field("content", rawjson.Quote(content))}.Bytes()
}

// list is values as a list.
func list(values [][]byte) []byte {
	size := len("[]") + len(values)
	for _, v := range values {
		size += len(v)
	}
	b := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// Body is the next request to the model: the application's, with changes only to the
// members that this face is responsible for.
func (d *dialogue) Body() upstream.Request {
	messages := rawjson.Field("messages", d.members.Get("messages"))
	if !d.asCame {
		messages.Value = list(d.messages)
	}
	o := d.members.With(rawjson.Field("model", rawjson.Quote(d.Route.UpstreamModel)), messages)
	if d.stream && (d.Mode == gateway.ModeCall && d.Route.Rules.TokenBudget > 0 || d.IsMetered()) {
		options, _ := rawjson.Members(d.members.Get("stream_options"))
		o = o.Set("stream_options", options.Set("include_usage", []byte("true")).Bytes())
	}
	choice := d.members.Get("tool_choice")
	switch {
	case len(d.Offer.Tools) == 0 || d.CallsAreText():
		o = o.Without("tools", "tool_choice", "parallel_tool_calls")
	case choice == nil:
		o = o.Set("tools", definitions(d.Offer.Tools))
	case d.choice.Required && !d.Choice.Required && d.Choice.Names == nil: // it was met
		o = o.Set("tools", definitions(d.Offer.Tools)).Without("tool_choice")
	default:
		o = o.Set("tools", definitions(d.Offer.Tools)).Set("tool_choice", encodeChoice(&d.Choice, choice))
	}
	return upstream.Request{Endpoint: upstream.ChatCompletions, Body: o.Bytes()}
}

// definitions are the tools as a request has them.
func definitions(tools []gateway.Tool) []byte {
	size := len("[]")
	for i := range tools {
		size += len(tools[i].Wire) + len(tools[i].Description) + len(tools[i].InputSchema) + 128
	}
	b := append(make([]byte, 0, size), '[')
	for i := range tools {
		t := &tools[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendQuote(append(b, `{"type":"function","function":{"name":`...), t.Wire)
		if t.Description != "" {
			b = rawjson.AppendQuote(append(b, `,"description":`...), t.Description)
		}
		b = append(append(append(b, `,"parameters":`...), t.InputSchema...), "}}"...)
	}
	return wrapper.Escape(append(b, ']'))
}

// Append adds a turn to the conversation: the model's message, and the results of its calls.
func (d *dialogue) Append(a *turns.Answer, told []turns.Told) (added int) {
	var text []byte
	var calls [][]byte
	for _, p := range a.Parts {
		if p.Kind == turns.Text && !turns.IsBlank(p.Text) {
			text = p.Text
		}
	}
	for i := range told {
		if told[i].Call != nil {
			calls = append(calls, appendCall(nil, -1, told[i].Call, told[i].Arguments))
		}
	}
	if calls == nil {
		if text != nil { // an empty message adds nothing to the conversation
			added = d.add(chatMessage("assistant", string(text)))
		}
		return added + d.add(chatMessage("user", string(told[0].Result)))
	}
	content := []byte("null")
	if text != nil {
		content = rawjson.Quote(text)
	}
	added = d.add(rawjson.Object{rawjson.Field("role", rawjson.Quote("assistant")), rawjson.Field("content", content),
		rawjson.Field("tool_calls", list(calls))}.Bytes())
	for i := range told {
		added += d.add(rawjson.Object{
			rawjson.Field("role", rawjson.Quote("tool")), rawjson.Field("tool_call_id", rawjson.Quote(told[i].Call.Call.ID)),
			rawjson.Field("content", rawjson.Quote(told[i].Result)),
		}.Bytes())
	}
	return added
}

// Load is of turns.Led.
func (d *dialogue) Load(system string, before []json.RawMessage, content []byte) (added int, err error) {
	if len(before) >= maxMessages {
		return 0, turns.TooLong()
	}
	if d.CallsAreText() && len(d.Offer.Tools) > 0 {
		tools, err := d.SystemPrompt()
		if err != nil {
			return 0, err
		}
		system = strings.TrimSuffix(tools+"\n"+system, "\n")
	}
	if system != "" {
		d.add(chatMessage("system", system))
	}
	for _, m := range before {
		d.add(m)
	}
	d.led = len(d.messages)
	return d.add(rawjson.Object{rawjson.Field("role", rawjson.Quote("user")), rawjson.Field("content", content)}.Bytes()), nil
}

// Say is of turns.Led.
func (d *dialogue) Say(text []byte) { d.add(chatMessage("assistant", string(text))) }

// Messages is of turns.Led.
func (d *dialogue) Messages() (all []json.RawMessage) {
	for _, m := range d.messages[d.led:] {
		all = append(all, m)
	}
	return all
}

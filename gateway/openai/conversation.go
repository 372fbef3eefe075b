package openai

import (
	"slices"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// conversation is what the model is sent of the history. It only grows.
type conversation struct {
	messages [][]byte
	grown    int // bytes that the run has added
}

// add appends what a turn brought.
func (v *conversation) add(messages ...[]byte) {
	for _, m := range messages {
		v.grown += len(m)
	}
	v.messages = append(v.messages, messages...)
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

// begin writes the history of the request as the model's protocol has it.
func (r *run) begin() error {
	if r.route.Rules.Protocol != upstream.Text {
		return r.beginNative()
	}
	return r.beginText()
}

// beginNative wraps the results of tools; all else stays as it was written.
func (r *run) beginNative() error {
	names := map[string]string{}
	for i := range r.request.history {
		m := &r.request.history[i]
		for _, call := range m.calls {
			names[call.id] = r.registered(call.name)
		}
		raw := m.raw
		if m.role == "tool" {
			line, err := wrapResult(names[m.answers], m.result)
			if err != nil {
				return err
			}
			raw = m.with(quote(nil, line))
		}
		r.talk.messages = append(r.talk.messages, raw)
	}
	return nil
}

// beginText writes calls and results in the call language: one call a turn, each
// followed by its result.
func (r *run) beginText() error {
	history := r.request.history
	if len(r.offer.tools) > 0 && !r.choice.none {
		system, err := r.prompt()
		if err != nil {
			return err
		}
		if first := &history[0]; first.role == "system" || first.role == "developer" {
			first.prefix(system)
		} else {
			r.talk.messages = append(r.talk.messages, say("system", system))
		}
	}
	for i := 0; i < len(history); i++ {
		m := &history[i]
		if len(m.calls) == 0 {
			r.talk.messages = append(r.talk.messages, m.raw)
			continue
		}
		if said, ok := parts(m.content); !ok && m.content != nil || said != "" {
			r.talk.messages = append(r.talk.messages, object{{"role", quote(nil, "assistant")}, {"content", m.content}}.bytes())
		}
		results := map[string]string{}
		for range m.calls { // each is answered once, right behind
			i++
			results[history[i].answers] = history[i].result
		}
		for _, call := range m.calls {
			name := r.registered(call.name)
			line, err := wrapResult(name, results[call.id])
			if err != nil {
				return err
			}
			r.talk.messages = append(r.talk.messages, say("assistant", r.callText(name, call.arguments)), say("user", line))
		}
	}
	return nil
}

// registered is the registry's name of a tool; one that is not of the registry
// keeps its own.
func (r *run) registered(wire string) string {
	if name, ok := r.admission.ToolName(wire); ok {
		return name
	}
	return wire
}

// with is the message with another content.
func (m *message) with(content []byte) []byte {
	members, _ := within(m.raw)
	return members.set("content", content).bytes()
}

// prefix puts a text before the content of a message.
func (m *message) prefix(before string) {
	if len(m.content) == 0 || m.content[0] != '[' {
		said, _ := text(m.content)
		m.raw = m.with(quote(nil, before+"\n"+said))
		return
	}
	part := object{{"type", quote(nil, "text")}, {"text", quote(nil, before)}}.bytes()
	rest := m.content[space(m.content, 1):]
	if rest[0] != ']' {
		part = append(part, ',')
	}
	m.raw = m.with(slices.Concat([]byte{'['}, part, rest))
}

// wrapResult is what the model reads of a tool that the application ran.
func wrapResult(name, said string) (string, error) {
	wrap := func() ([]byte, error) { return wrapper.Text(name, said) }
	if raw := []byte(said); !crowded(raw) && parser.CheckValue(raw, maxDepth) == nil {
		wrap = func() ([]byte, error) { return wrapper.Result(name, []byte(said)) }
	}
	line, err := wrap()
	if err != nil {
		return "", refusal.From(refusal.Wrap, err)
	}
	return string(line), nil
}

// callText is a call in the call language.
func (r *run) callText(name string, arguments []byte) string {
	b := append(quote([]byte(r.callStart()+`"name":`), name), `,"arguments":`...)
	return string(append(append(b, arguments...), "}}"...))
}

// say is a message of a role.
func say(role, content string) []byte {
	return object{{"role", quote(nil, role)}, {"content", quote(nil, content)}}.bytes()
}

package openai

import (
	"bytes"

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
			raw = m.members.set("content", quote(nil, line)).bytes()
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
	if name, ok := r.admission.Name(wire); ok {
		return name
	}
	return wire
}

// prefix puts a text before the content of a message.
func (m *message) prefix(before string) {
	var content []byte
	if list, ok := elements(m.content); ok {
		part := object{{"type", quote(nil, "text")}, {"text", quote(nil, before)}}.bytes()
		content = append([]byte{'['}, bytes.Join(append([][]byte{part}, list...), []byte{','})...)
		content = append(content, ']')
	} else {
		said, _ := text(m.content)
		content = quote(nil, before+"\n"+said)
	}
	m.raw = m.members.set("content", content).bytes()
}

// wrapResult is what the model reads of a tool that the application ran.
func wrapResult(name, said string) (string, error) {
	wrap := func() ([]byte, error) { return wrapper.Text(name, said) }
	if _, err := parser.ReadValue([]byte(said), maxDepth); err == nil {
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

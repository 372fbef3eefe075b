package acptest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
)

// Script has the actions of a scripted agent.
type Script struct {
	// Results are the results of requests by method, in place of the usual ones.
	Results map[string]json.RawMessage `json:"results,omitempty"`
	// Prompts are the steps of each prompt; the last stands for all further ones. Without any,
	// the text of each prompt is its steps, as JSON.
	Prompts [][]Step `json:"prompts,omitempty"`
}

// Step is one step of an agent within a prompt; one of its members says what it is. In
// Update, Params and Raw, $session is the session's id, and $NAME the member NAME of the last
// result that had it, a text. A cancelled turn ends before the next step.
type Step struct {
	Update json.RawMessage `json:"update,omitempty"` // a session/update
	Ask    string          `json:"ask,omitempty"`    // the method of a request, whose answer is waited for
	Notify string          `json:"notify,omitempty"` // the method of a notification
	Params json.RawMessage `json:"params,omitempty"` // of Ask and Notify
	// Allowed and Denied come after Ask: after a request for a permission, by the kind of the
	// option that was selected; after another one, by whether it succeeded.
	Allowed []Step `json:"allowed,omitempty"`
	Denied  []Step `json:"denied,omitempty"`
	Raw     string `json:"raw,omitempty"`    // a line as it is
	Stderr  string `json:"stderr,omitempty"` // text for the log, as it is
	Await   string `json:"await,omitempty"`  // cancel: until the turn is cancelled or the input ends; never: for ever
	Stop    string `json:"stop,omitempty"`   // the stop reason, at once; else end_turn after the last step
	Fail    string `json:"fail,omitempty"`   // the message of the prompt's error, at once
	Exit    int    `json:"exit,omitempty"`   // ends the process
}

// usual are the results of an agent whose script names no others.
var usual = map[string]string{
	"initialize":                `{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":{"close":{}}},"agentInfo":{"name":"scripted","version":"1"}}`,
	"authenticate":              `{}`,
	"logout":                    `{}`,
	"session/load":              `{}`,
	"session/resume":            `{}`,
	"session/close":             `{}`,
	"session/list":              `{"sessions":[]}`,
	"session/delete":            `{}`,
	"session/set_mode":          `{}`,
	"session/set_config_option": `{"configOptions":[]}`,
}

// scriptedAgent is a scripted agent at work.
type scriptedAgent struct {
	*Peer
	script Script
	stderr io.Writer

	mu        sync.Mutex
	prompts   int
	sessions  int
	kept      map[string]string
	cancelled chan struct{} // closed when the turn is cancelled
}

// RunAgent is a scripted agent on a connection, until its input ends. It tells of every
// answer that it gets by a chunk of text, "METHOD ANSWER" and a line's end.
func RunAgent(t Reporter, script Script, in io.Reader, out, stderr io.Writer) {
	a := &scriptedAgent{script: script, stderr: stderr, kept: map[string]string{}, cancelled: make(chan struct{})}
	handlers := map[string]Handler{"session/new": a.open, "session/prompt": a.prompt, "session/cancel": a.cancel}
	results := maps.Clone(usual)
	for method, result := range script.Results {
		results[method] = string(result)
	}
	for method, result := range results {
		if handlers[method] == nil {
			handlers[method] = func(json.RawMessage) (any, *Error) { return json.RawMessage(result), nil }
		}
	}
	started := make(chan struct{})
	a.Peer = NewPeer(t, &agentInput{in, started, func() { _, _ = a.cancel(nil) }}, out, handlers)
	close(started)
	a.Done()
}

// agentInput is the input of an agent: it waits for the start, and tells of its end.
type agentInput struct {
	io.Reader
	started chan struct{}
	ended   func()
}

func (i *agentInput) Read(b []byte) (int, error) {
	<-i.started
	n, err := i.Reader.Read(b)
	if err != nil {
		i.ended()
	}
	return n, err
}

func (a *scriptedAgent) open(json.RawMessage) (any, *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	id := fmt.Sprintf("session-%d", a.sessions)
	if other, changed := a.script.Results["session/new"]; changed {
		return json.RawMessage(strings.ReplaceAll(string(other), "$session", id)), nil
	}
	return map[string]string{"sessionId": id}, nil
}

func (a *scriptedAgent) cancel(json.RawMessage) (any, *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.cancelled:
	default:
		close(a.cancelled)
	}
	return nil, nil
}

func (a *scriptedAgent) prompt(params json.RawMessage) (any, *Error) {
	var p struct {
		SessionID string
		Prompt    []struct{ Text string }
	}
	var steps []Step
	_ = json.Unmarshal(params, &p)
	a.mu.Lock()
	a.kept["session"] = p.SessionID
	a.cancelled = make(chan struct{})
	if n := len(a.script.Prompts); n > 0 {
		steps = a.script.Prompts[min(a.prompts, n-1)]
	} else if len(p.Prompt) == 0 || json.Unmarshal([]byte(p.Prompt[0].Text), &steps) != nil {
		a.t.Errorf("a prompt without steps: %s", params)
	}
	a.prompts++
	cancelled := a.cancelled
	a.mu.Unlock()
	stop, failed := a.run(steps, cancelled)
	if failed != nil {
		return nil, failed
	}
	if stop == "" {
		stop = "end_turn"
	}
	return map[string]string{"stopReason": stop}, nil
}

// run runs steps until one ends the turn.
func (a *scriptedAgent) run(steps []Step, cancelled chan struct{}) (stop string, failed *Error) {
	for _, s := range steps {
		select {
		case <-cancelled:
			return "cancelled", nil
		default:
		}
		switch {
		case s.Update != nil:
			a.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":%s}}`, a.filled(`"$session"`),
				a.filled(string(s.Update))))
		case s.Ask != "":
			then := s.Denied
			if a.ask(s) {
				then = s.Allowed
			}
			if stop, failed = a.run(then, cancelled); stop != "" || failed != nil {
				return stop, failed
			}
		case s.Notify != "":
			a.Notify(s.Notify, json.RawMessage(a.filled(string(s.Params))))
		case s.Raw != "":
			a.Send(a.filled(s.Raw))
		case s.Stderr != "":
			_, _ = io.WriteString(a.stderr, s.Stderr)
		case s.Await == "cancel":
			<-cancelled
		case s.Await == "never":
			select {}
		case s.Stop != "":
			return s.Stop, nil
		case s.Fail != "":
			return "", &Error{Code: -32603, Message: s.Fail}
		case s.Exit != 0:
			os.Exit(s.Exit)
		default:
			a.t.Fatalf("a step says nothing")
		}
	}
	return "", nil
}

// ask sends a request and tells of its answer.
func (a *scriptedAgent) ask(s Step) (allowed bool) {
	result, err := a.Ask(s.Ask, json.RawMessage(a.filled(string(s.Params))))
	answer := string(result)
	if err != nil {
		answer = err.Error()
	}
	text, _ := json.Marshal(s.Ask + " " + answer + "\n")
	a.Send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%s,"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%s}}}}`, a.filled(`"$session"`), text))
	if err != nil {
		return false
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(result, &members)
	a.mu.Lock()
	for name, value := range members {
		var text string
		if json.Unmarshal(value, &text) == nil {
			a.kept[name] = text
		}
	}
	a.mu.Unlock()
	if s.Ask != "session/request_permission" {
		return true
	}
	var p struct{ Options []Option }
	var r struct{ Outcome struct{ OptionID string } }
	_ = json.Unmarshal(s.Params, &p)
	_ = json.Unmarshal(result, &r)
	for _, o := range p.Options {
		if o.OptionID == r.Outcome.OptionID {
			return strings.HasPrefix(o.Kind, "allow")
		}
	}
	return false
}

// filled puts what was kept into a text of JSON.
func (a *scriptedAgent) filled(text string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, value := range a.kept {
		quoted, _ := json.Marshal(value)
		text = strings.ReplaceAll(text, "$"+name, string(quoted[1:len(quoted)-1]))
	}
	return text
}

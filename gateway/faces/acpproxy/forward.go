package acpproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/wrapper"
)

// maxWaiting bounds the requests of the editor that the agent has not answered.
const maxWaiting = 64

// forwarded is a request of the editor that was passed to the agent under an id of the proxy.
type forwarded struct {
	ID jsonrpc.ID // the editor's; zero: the proxy asks for itself, and drops the answer
	// Finish translates the answer of the agent. It runs where the agent is read, so that what
	// the agent sends later comes later. Fault is nil, or the agent's error, or why it has not
	// answered.
	Finish func(result json.RawMessage, fault *jsonrpc.Error) (any, *jsonrpc.Error)
	// Cancel ends what waits on behalf of the request, once the editor has cancelled it; nil:
	// nothing does.
	Cancel func()
}

// forwards are the requests that the agent has not answered. The ids of the proxy are texts, so
// that none is one of jsonrpc.Conn's. The methods may be called concurrently.
type forwards struct {
	editor, agent *jsonrpc.Conn

	mu      sync.Mutex
	last    int
	over    *jsonrpc.Error // why nothing is passed any more
	waiting map[jsonrpc.ID]*forwarded
}

// newForwards returns no requests, between two connections.
func newForwards(editor, agent *jsonrpc.Conn) *forwards {
	return &forwards{editor: editor, agent: agent, waiting: map[jsonrpc.ID]*forwarded{}}
}

// Pass passes a request to the agent. The fault is nil where Finish answers it.
func (t *forwards) Pass(ctx context.Context, f *forwarded, method string, params any) *jsonrpc.Error {
	t.mu.Lock()
	if t.over != nil || len(t.waiting) >= maxWaiting || t.inUse(f.ID) {
		defer t.mu.Unlock()
		switch {
		case t.over != nil:
			return t.over
		case t.inUse(f.ID):
			return jsonrpc.Errorf(jsonrpc.CodeRequest, "A request of this id is being answered.")
		}
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "Too many requests wait for the agent.")
	}
	t.last++
	id := jsonrpc.StringID(fmt.Sprintf("editor-%d", t.last))
	t.waiting[id] = f
	t.mu.Unlock()
	line, err := wrapper.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      jsonrpc.ID `json:"id"`
		Method  string     `json:"method"`
		Params  any        `json:"params"`
	}{"2.0", id, method, params})
	if err == nil {
		err = t.agent.Send(ctx, line)
	}
	if err != nil && t.take(id) != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent does not take requests.")
	}
	return nil // answered by Finish
}

// inUse reports whether a request of an id of the editor waits; under mu.
func (t *forwards) inUse(id jsonrpc.ID) bool {
	for _, f := range t.waiting {
		if f.ID == id && !id.IsZero() {
			return true
		}
	}
	return false
}

func (t *forwards) take(id jsonrpc.ID) *forwarded {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.waiting[id]
	delete(t.waiting, id)
	return f
}

// Answered passes an answer of the agent to the editor. It reports whether a request waits for it.
func (t *forwards) Answered(m *jsonrpc.Message, fault *jsonrpc.Error) bool {
	f := t.take(m.ID)
	if f == nil {
		return false
	}
	if fault != nil {
		t.answer(f, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent's answer is not one of JSON-RPC."))
		return true
	}
	t.answer(f, m.Result, m.Err)
	return true
}

// answer answers the editor. A panic of a translation answers with an error.
func (t *forwards) answer(f *forwarded, raw json.RawMessage, fault *jsonrpc.Error) {
	if f.ID.IsZero() {
		return
	}
	result, fault := translate(f, raw, fault)
	line, err := encodeAnswer(f.ID, result, fault)
	if err != nil {
		line, _ = encodeAnswer(f.ID, nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The answer cannot be passed on."))
	}
	_ = t.editor.Send(context.Background(), line) // a failure ends the connection
}

func translate(f *forwarded, raw json.RawMessage, fault *jsonrpc.Error) (result any, _ *jsonrpc.Error) {
	defer safe.Catch(func(error) {
		result, fault = nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The agent's answer cannot be passed on.")
	})
	return f.Finish(raw, fault)
}

// encodeAnswer encodes an answer on one line.
func encodeAnswer(id jsonrpc.ID, result any, fault *jsonrpc.Error) ([]byte, error) {
	if fault != nil {
		return wrapper.Marshal(struct {
			Version string         `json:"jsonrpc"`
			ID      jsonrpc.ID     `json:"id"`
			Error   *jsonrpc.Error `json:"error"`
		}{"2.0", id, fault})
	}
	return wrapper.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      jsonrpc.ID `json:"id"`
		Result  any        `json:"result"`
	}{"2.0", id, result})
}

// AgentID is the id by which the agent knows a request of the editor, and what cancels it here.
func (t *forwards) AgentID(id jsonrpc.ID) (_ jsonrpc.ID, cancel func(), waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for own, f := range t.waiting {
		if f.ID == id {
			return own, f.Cancel, true
		}
	}
	return jsonrpc.ID{}, nil, false
}

// End answers all requests that wait, and every later one, with an error.
func (t *forwards) End(fault *jsonrpc.Error) {
	t.mu.Lock()
	waiting := t.waiting
	t.waiting, t.over = nil, fault
	t.mu.Unlock()
	for _, f := range waiting {
		t.answer(f, nil, fault)
	}
}

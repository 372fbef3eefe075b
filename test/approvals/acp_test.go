package approvals_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// byACP is the face for an editor, whose user decides nothing. The calls of an editor's session
// are a thread of their own, so that it stands beside faces whose calls have none: an approval
// of theirs is not one of its calls.
func byACP() face {
	return face{"ACP", false, false, func(o *office, c call) *httptest.ResponseRecorder { return o.sendACP(c, "") }, codeOfACP}
}

// desks are the editors of an office, one for each caller that a process of callgate acp would
// stand for, and their sessions, one for each thread.
type desks struct {
	editors  map[call]*acptest.Editor
	sessions map[call]string
}

// sendACP has a model make a call in the session of its caller, whose user chooses an option
// of a kind; empty: none.
func (o *office) sendACP(c call, kind string) *httptest.ResponseRecorder {
	who := call{Agent: c.Agent, Project: c.Project, User: c.User, Caller: c.Caller}
	e := o.desks.editors[who]
	if e == nil {
		e = o.editor(who)
		o.desks.editors[who] = e
	}
	thread := who
	thread.Thread = c.Thread
	if o.desks.sessions[thread] == "" {
		o.desks.sessions[thread] = e.Session("/w")
	}
	o.mu.Lock()
	o.next, o.read = &c, ""
	o.mu.Unlock()
	e.Choose(acptest.OfKind(kind))
	session := o.desks.sessions[thread]
	before := len(e.Calls(session))
	e.Prompt(session, "Go on.")
	w := httptest.NewRecorder()
	_ = json.NewEncoder(w).Encode(e.Calls(session)[before:])
	return w
}

// editor connects an editor of a caller with the face.
func (o *office) editor(who call) *acptest.Editor {
	face := acp.New(acp.Options{
		Turns: o.turns, Wire: chat.Wire, Model: string(upstream.ChatWire),
		Accepted: func(wire.MCPServer) bool { return false }, Folder: filepath.Join(o.t.TempDir(), "sessions"), Version: "1", Logger: o.Logger,
	})
	request := gateway.Request{
		Subject:    gateway.Subject{Agent: or(who.Agent, "Analyst"), Workspace: "acme", Project: or(who.Project, "alpha")},
		Credential: or(who.Caller, "app"), User: who.User,
	}
	fromEditor, editorOut := io.Pipe()
	editorIn, toEditor := io.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- face.Serve(context.WithoutCancel(o.t.Context()), request, fromEditor, toEditor)
		_ = toEditor.Close()
	}()
	r := acptest.NewRecorder(o.t, acptest.Client, acptest.Agent)
	e := acptest.NewEditor(o.t, r.Reader(acptest.Agent, editorIn), r.Writer(acptest.Client, editorOut))
	o.t.Cleanup(func() {
		_ = editorOut.Close()
		if err := <-served; err != nil {
			o.t.Errorf("the face ends with %v", err)
		}
		e.Done()
		r.Check(o.t)
	})
	e.Initialize(nil)
	return e
}

// codeOfACP is the code that the model reads; the editor shows a call as completed if and only if
// there is none.
func codeOfACP(t *testing.T, o *office, w *httptest.ResponseRecorder) string {
	t.Helper()
	var calls []acptest.Call
	if err := json.Unmarshal(w.Body.Bytes(), &calls); err != nil || len(calls) != 1 {
		t.Fatalf("%v: %s", err, w.Body)
	}
	o.mu.Lock()
	var read struct{ Messages []json.RawMessage }
	err := json.Unmarshal([]byte(o.read), &read)
	o.mu.Unlock()
	if err != nil || len(read.Messages) == 0 {
		t.Fatalf("the model reads %v: %v", read, err)
	}
	code := codeIn(string(read.Messages[len(read.Messages)-1])) // those before are of earlier calls
	if status := calls[0].Status(); (status == "completed") != (code == "") || code != "" && status != "failed" && code != string(refusal.ApprovalRequired) {
		t.Errorf("%q is shown as %v", code, calls[0].Statuses)
	}
	return code
}

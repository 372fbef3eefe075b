// Package acp_test holds both faces of ACP against the vectors and the schema: the proxy
// between a scripted editor and a scripted agent, and the reporter in front of a scripted
// model.
package acp_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// bridge is a proxy between an editor and an agent that takes its steps from each prompt,
// and the native face of the same kernel.
type bridge struct {
	*acptest.Editor
	*facetest.Fixture
	front, back *acptest.Recorder // of the editor's line, and of the agent's
	session     string
	end         func() error
}

// needsProxy skips a test of the proxy where the program was built without it.
func needsProxy(t *testing.T) {
	t.Helper()
	if !app.Has(configs.ACPProxy) {
		t.Skipf("skipped: this program was built without %s", configs.ACPProxy)
	}
}

// openBridge opens a proxy for a subject, and a session in a folder of it.
func openBridge(t *testing.T, f *facetest.Fixture, script acptest.Script, subject gateway.Subject, cwd string, change func(*acp.ProxyOptions)) *bridge {
	t.Helper()
	needsProxy(t)
	b := &bridge{Fixture: f, front: acptest.NewRecorder(t, acptest.Client, acptest.Agent), back: acptest.NewRecorder(t, acptest.Client)}
	o := acp.ProxyOptions{
		Executor: f.Executor, Request: gateway.Request{Subject: subject}, Log: f.Logger, ProxySettings: acp.ProxySettings{Unjudged: acp.Cancel},
		MCPServer: wire.MCPServer{Transport: wire.Stdio, Name: "callgate", Command: "/bin/callgate", Args: []string{"mcp"}},
	}
	if change != nil {
		change(&o)
	}
	fromEditor, editorOut := io.Pipe()
	editorIn, toEditor := io.Pipe()
	fromAgent, agentOut := io.Pipe()
	agentIn, toAgent := io.Pipe()
	agentDone, done := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(agentDone)
		acptest.RunAgent(t, script, agentIn, agentOut, io.Discard)
		_ = agentOut.Close()
	}()
	go func() {
		done <- app.RelayACP(context.WithoutCancel(t.Context()), o, acp.Agent{
			Out: b.back.Reader(acptest.Agent, fromAgent), In: b.back.Writer(acptest.Client, toAgent),
			Kill: func() { _ = toAgent.Close(); _ = fromAgent.Close(); <-agentDone },
		}, fromEditor, toEditor)
		_ = toEditor.Close()
	}()
	b.Editor = acptest.NewEditor(t, b.front.Reader(acptest.Agent, editorIn), b.front.Writer(acptest.Client, editorOut))
	var ended error
	b.end = func() error {
		_ = editorOut.Close()
		if done != nil {
			ended = <-done
			done = nil
			b.Done()
			<-agentDone
		}
		return ended
	}
	t.Cleanup(func() {
		_ = b.end()
		b.front.Check(t)
		b.back.Check(t)
	})
	b.Initialize(nil)
	b.session = b.Session(cwd)
	return b
}

// dictate has the agent take steps in one prompt, and returns the stop reason and the agent's
// text: what it was told.
func (b *bridge) dictate(t *testing.T, steps ...acptest.Step) (stop, reported string) {
	t.Helper()
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	before := len(b.Text(b.session))
	stop = b.Prompt(b.session, string(text))
	return stop, b.Text(b.session)[before:]
}

// refused is a refusal as the faces show it.
type refused struct {
	Code, Stage string
	Violations  []struct{ Code, Path string }
}

// verdict is a refusal in one line; empty where a call passed.
func (r *refused) verdict() string {
	if r == nil || r.Code == "" {
		return ""
	}
	said := []string{r.Stage, r.Code}
	for _, v := range r.Violations {
		said = append(said, v.Code+" at "+v.Path)
	}
	return strings.Join(said, " ")
}

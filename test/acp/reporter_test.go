package acp_test

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/upstream"
)

// reporter is an editor in front of the reporter, which is in front of a scripted model.
type reporter struct {
	*acptest.Editor
	*facetest.Fixture
	*acptest.Recorder
	model *acptest.Model
	face  *acp.Face
	end   func() error
}

// openReporter opens a connection that is not initialized. The options may change those of the face.
func openReporter(t *testing.T, files map[string]string, change func(*acp.Options)) *reporter {
	t.Helper()
	r := &reporter{model: &acptest.Model{}}
	r.Fixture = newFixture(t, facetest.Options{Config: facetest.Config(t, files), Engine: editorsEngine{}})
	served := httptest.NewServer(r.model)
	t.Cleanup(served.Close)
	client := upstream.NewClient(upstream.Options{})
	t.Cleanup(client.Close)
	d := upstream.Defaults()
	d.Name, d.BaseURL, d.Retries = "scripted", served.URL, 0
	d.Models = []upstream.Model{{ID: "scripted"}}
	d.Rules.Speaks, d.Rules.Modes = []upstream.Wire{upstream.ChatWire}, []upstream.Mode{upstream.Orchestrate}
	d.Rules.Protocol, d.Rules.Reasoning, d.Rules.MaxRepairs = upstream.Text, upstream.Pass, 1
	set, err := upstream.New([]upstream.Definition{d})
	if err != nil {
		t.Fatal(err)
	}
	o := acp.Options{
		Turns: turns.Options{Executor: r.Executor, Upstreams: func() *upstream.Set { return set }, Client: client, Runs: runs.New(runs.Options{})}, Wire: chat.Wire, Model: "scripted", Accepted: func(wire.MCPServer) bool { return false },
		Folder: filepath.Join(t.TempDir(), "sessions"), Version: "1", Logger: r.Logger,
	}
	if change != nil {
		change(&o)
	}
	r.face = acp.New(o)
	r.reconnect(t)
	return r
}

// reconnect connects a new editor with the face. The one before has left.
func (r *reporter) reconnect(t *testing.T) {
	t.Helper()
	record := acptest.NewRecorder(t, acptest.Client, acptest.Agent)
	r.Recorder = record
	fromEditor, editorOut := io.Pipe()
	editorIn, toEditor := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- r.face.Serve(context.WithoutCancel(t.Context()), gateway.Request{Subject: subject}, fromEditor, toEditor)
		_ = toEditor.Close()
	}()
	editor := acptest.NewEditor(t, record.Reader(acptest.Agent, editorIn), record.Writer(acptest.Client, editorOut))
	r.Editor = editor
	var ended error
	end := func() error {
		_ = editorOut.Close()
		if done != nil {
			ended, done = <-done, nil
			editor.Done()
		}
		return ended
	}
	r.end = end
	t.Cleanup(func() {
		if err := end(); err != nil {
			t.Errorf("the face ends with %v", err)
		}
		record.Check(t)
	})
}

// begun is openReporter with a session in /w.
func begun(t *testing.T) (r *reporter, session string) {
	t.Helper()
	r = openReporter(t, editorTools(t), nil)
	r.Initialize(nil)
	return r, r.Session("/w")
}

// prompt has the model say its replies in one turn, and returns the stop reason and the tool calls
// of the turn.
func (r *reporter) prompt(session string, replies ...acptest.Reply) (stop string, calls []acptest.Call) {
	r.model.Say(replies...)
	before := len(r.Calls(session))
	stop = r.Prompt(session, "Go on.")
	return stop, r.Calls(session)[before:]
}

// statuses are the statuses of a call, in order.
func statuses(c acptest.Call) string { return fmt.Sprint(c.Statuses) }

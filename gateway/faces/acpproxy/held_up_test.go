package acpproxy_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/acpproxy"
	"github.com/callgate/callgate/internal/testkit/facetest"
)

// TestEditorLeavesAnAgentThatDoesNotRead: the editor has left, and its last message waits for an
// agent that reads nothing. The agent is ended, and long before the message is late.
func TestEditorLeavesAnAgentThatDoesNotRead(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
	for name, c := range map[string]struct{ agent, editor string }{
		"it writes lines that are no messages": {agent: "y\n", editor: hello},
		"it is silent":                         {editor: hello},
		"more messages follow":                 {editor: strings.Repeat(hello, 50)},
	} {
		t.Run(name, func(t *testing.T) {
			h := facetest.New(t, facetest.Options{Config: facetest.Config(t, files())})
			agentOut, agentWrites := io.Pipe()
			unread, agentIn := io.Pipe()
			kill := sync.OnceFunc(func() { agentWrites.Close(); unread.Close() })
			t.Cleanup(kill)
			editor, editorWrites := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				o := acp.ProxyOptions{Executor: h.Executor, Log: slog.New(slog.DiscardHandler)}
				ended <- acpproxy.Run(t.Context(), o, acp.Agent{Out: agentOut, In: agentIn, Kill: kill}, editor, io.Discard)
			}()
			_, _ = io.WriteString(agentWrites, c.agent+c.agent) // the second is taken once the first is being answered
			began := time.Now()
			go func() {
				_, _ = io.WriteString(editorWrites, c.editor)
				editorWrites.Close()
			}()
			select {
			case err := <-ended:
				if err != nil {
					t.Errorf("found %v; expected none, since the editor has left", err)
				}
			case <-time.After(patience):
				t.Errorf("the proxy still runs after %v", time.Since(began))
			}
		})
	}
}

// TestAgentEndsAtOnce: an editor whose agent has ended before its first request gets an answer.
func TestAgentEndsAtOnce(t *testing.T) {
	h := facetest.New(t, facetest.Options{Config: facetest.Config(t, files())})
	editor, editorWrites := io.Pipe()
	defer editorWrites.Close()
	killed := make(chan struct{})
	agent := acp.Agent{Out: strings.NewReader(""), In: io.Discard, Kill: func() { close(killed) }}
	go func() {
		<-killed
		_, _ = io.WriteString(editorWrites, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
	}()
	var out bytes.Buffer
	o := acp.ProxyOptions{Executor: h.Executor, Log: slog.New(slog.DiscardHandler), OpenWithin: time.Minute}
	err := acpproxy.Run(t.Context(), o, agent, editor, &out)
	if !errors.Is(err, acp.ErrAgentEnded) || !strings.Contains(out.String(), `"code":"tool_unavailable"`) {
		t.Errorf("found %v, and to the editor %q; expected %v, and an error", err, &out, acp.ErrAgentEnded)
	}
}

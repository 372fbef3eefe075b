package acpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// prompt sends a prompt whose answer the test gives by the channel, and returns when the agent has
// it. The function waits for the answer.
func (x *proxied) prompt() (done func() (string, *jsonrpc.Error)) {
	x.t.Helper()
	type reply struct {
		result string
		fault  *jsonrpc.Error
	}
	before := len(x.prompts())
	replies := make(chan reply, 1)
	go func() {
		result, fault := x.ask(x.editor, wire.MethodSessionPrompt, `{"sessionId":"s1","prompt":[{"type":"text","text":"hi"}]}`)
		replies <- reply{result, fault}
	}()
	x.eventually("the agent gets the prompt", func() bool { return len(x.prompts()) > before })
	return func() (string, *jsonrpc.Error) {
		select {
		case r := <-replies:
			return r.result, r.fault
		case <-time.After(patience):
			x.t.Error("the prompt was not answered")
			return "", nil
		}
	}
}

func (x *proxied) prompts() (all []string) { return x.agentGot(wire.MethodSessionPrompt) }

func (x *proxied) agentGot(method string) []string { return having(x.got(&x.toAgent), method) }

func (x *proxied) editorGot(method string) []string { return having(x.got(&x.toEditor), method) }

func having(list []string, method string) (all []string) {
	for _, each := range list {
		if strings.HasPrefix(each, method+" ") {
			all = append(all, strings.TrimPrefix(each, method+" "))
		}
	}
	return all
}

// waits is an agent that answers a prompt when it is told to, or when the turn is cancelled.
type waits struct {
	answer chan string
}

func newWaits() *waits { return &waits{answer: make(chan string, 8)} }

func (w *waits) prompt(ctx context.Context, _ json.RawMessage) (any, *jsonrpc.Error) {
	select {
	case a := <-w.answer:
		return json.RawMessage(a), nil
	case <-ctx.Done():
		return nil, jsonrpc.Errorf(wire.CodeCancelled, "cancelled")
	}
}

const ended = `{"stopReason":"end_turn"}`

// records are the decisions and outcomes of the audit log, in short.
func (x *proxied) records() (all []string) {
	for _, r := range x.h.Journal.Records() {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", r.Event, r.Tool, r.Verdict, r.Outcome, r.Code)))
	}
	return all
}

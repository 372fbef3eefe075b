package acpproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

const (
	// defaultGrace is how long a tool call may run before its judgement is missed, while nothing
	// is being judged: agents report that a call runs before they ask for its files.
	defaultGrace = 10 * time.Second
	// defaultStopWithin is how long an agent may take to end a turn that the proxy has cancelled.
	defaultStopWithin = 10 * time.Second
	// leaveWithin is how long the last messages of an editor that has left may take to be passed on.
	// An agent that does not read holds them up.
	leaveWithin = time.Second
	// defaultOpenWithin is how long an editor may take to send initialize once its agent has ended,
	// so that it is told why.
	defaultOpenWithin = time.Second
)

// Run relays between an editor and an agent until one of them leaves or ctx ends, then ends the
// agent. The error is nil where the editor has left.
func Run(ctx context.Context, o acp.ProxyOptions, agent acp.Agent, in io.Reader, out io.Writer) error {
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.StopWithin = cmp.Or(o.StopWithin, defaultStopWithin)
	o.OpenWithin = cmp.Or(o.OpenWithin, defaultOpenWithin)
	p := &Proxy{options: o, opened: make(chan struct{}), modes: modeRules{allowed: o.AllowModes}}
	p.ctx, p.end = context.WithCancelCause(ctx)
	defer p.end(nil)
	agentRuns, stopAgent := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAgent()
	editorRuns, stopEditor := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEditor()
	in, left := input.Ahead(in, editorRuns.Done())
	panicked := func(err error) { o.Log.Error("an ACP message could not be handled", "cause", err.Error()) }
	p.editor = jsonrpc.New(jsonrpc.Options{In: in, Out: out, Receive: p.receive, Handle: unreceived, Notify: p.notified,
		Panicked: panicked})
	p.agent = jsonrpc.New(jsonrpc.Options{In: agent.Out, Out: agent.In, Handle: p.serve, Notify: p.agentNotified,
		Unsolicited: p.unsolicited, Panicked: panicked})
	p.forwards = newForwards(p.editor, p.agent)

	var agentErr, editorErr error
	var running sync.WaitGroup
	running.Go(func() {
		agentErr = p.agent.Run(agentRuns)
		p.end(acp.ErrAgentEnded)
	})
	running.Go(func() {
		editorErr = p.editor.Run(editorRuns)
		p.end(nil)
	})
	running.Go(p.watch)
	running.Go(func() { p.endAfter(left) })
	<-p.ctx.Done()
	// The editor gets an answer to all that it has asked before it is left.
	cause := context.Cause(p.ctx)
	p.forwards.End(ended(cause))
	agent.Kill()
	if errors.Is(cause, acp.ErrAgentEnded) {
		p.awaitFirstRequest(ctx, left)
	}
	p.releaseAll(p.sessions.list()...) // at once where the editor has left
	stopEditor()
	stopAgent()
	running.Wait()
	switch {
	case errors.Is(cause, acp.ErrAgentEnded), errors.Is(cause, acp.ErrUnjudged):
		return errors.Join(cause, agentErr)
	case editorErr != nil && ctx.Err() == nil: // a reader may end with ctx
		return fmt.Errorf("the editor: %w", editorErr)
	}
	return nil
}

// endAfter ends the connection once the editor has left, though its last messages still be held up.
func (p *Proxy) endAfter(left <-chan struct{}) {
	select {
	case <-left:
	case <-p.ctx.Done():
		return
	}
	late := time.NewTimer(leaveWithin)
	defer late.Stop()
	select {
	case <-late.C:
		p.end(nil)
	case <-p.ctx.Done():
	}
}

// awaitFirstRequest waits for the first request of an editor whose agent has ended before it. The agent
// of a wrong command line ends at once.
func (p *Proxy) awaitFirstRequest(ctx context.Context, left <-chan struct{}) {
	late := time.NewTimer(p.options.OpenWithin)
	defer late.Stop()
	select {
	case <-p.opened:
	case <-left:
	case <-late.C:
	case <-ctx.Done():
	}
}

// unreceived handles no request: receive answers them all.
func unreceived(context.Context, *jsonrpc.Message) (any, *jsonrpc.Error) {
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "The request failed.")
}

// ended is the answer to requests of the editor once the connection is over.
func ended(cause error) *jsonrpc.Error {
	why := refusal.New(refusal.ToolUnavailable, "The agent has ended before it answered.")
	if errors.Is(cause, acp.ErrUnjudged) {
		why = refusal.New(refusal.PermissionDenied, "The agent was ended: it ran a tool call that nobody had judged.")
	}
	return refusedEditor(jsonrpc.CodeInternal, why)
}

// watch looks for tool calls that run for long without having been judged.
func (p *Proxy) watch() {
	tick := time.NewTicker(max(p.options.Grace/10, 10*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case now := <-tick.C:
			for _, s := range p.sessions.list() {
				p.found(s, s.overdue(now.Add(-p.options.Grace))...)
			}
		}
	}
}

package acpproxy

import (
	"context"
	"errors"
	"fmt"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/gateway/faces/acpproxy/internal/attribution"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// refuseUnjudged is what the user reads of a call that ran unjudged.
func refuseUnjudged(f attribution.Finding) *refusal.Error {
	return refusal.New(refusal.PermissionDenied,
		fmt.Sprintf("The agent reported a tool call of the kind %s: %s. The turn was ended.", f.Kind, f.Reason))
}

// found reacts to tool calls that ran unjudged, and records them.
func (p *Proxy) found(s *session, all ...attribution.Finding) {
	for _, f := range all {
		switch p.options.Unjudged {
		case acp.Note:
		case acp.Kill:
			p.end(acp.ErrUnjudged)
		default:
			p.stop(s, f)
		}
		p.record(s, f)
	}
}

// stop cancels the turn of a session. Outside of a turn there is nothing to cancel, and an agent
// that continues to act is ended.
func (p *Proxy) stop(s *session, f attribution.Finding) {
	running, first := s.stop(refuseUnjudged(f), p.options.StopWithin, func() {
		p.options.Log.Error("the agent did not end a cancelled turn; the gateway ends the agent", "within", p.options.StopWithin)
		p.end(acp.ErrUnjudged)
	})
	switch {
	case !running:
		p.end(acp.ErrUnjudged)
	case first:
		_ = p.agent.Notify(wire.MethodSessionCancel, wire.SessionRequest{SessionID: s.id}) // a failure ends the connection
	}
}

// record writes a tool call that ran unjudged to the audit log. An agent of which that cannot be
// written down is ended.
func (p *Proxy) record(s *session, f attribution.Finding) {
	p.options.Log.Warn("a tool call ran unjudged", "kind", string(f.Kind), "reason", f.Reason, "reaction", string(p.options.Unjudged))
	if err := safe.Do(func() error { return p.writeUnjudged(s, f) }); err != nil {
		p.options.Log.Error("a tool call that ran unjudged could not be recorded; the gateway ends the agent", "cause", err.Error())
		p.end(acp.ErrUnjudged)
	}
}

func (p *Proxy) writeUnjudged(s *session, f attribution.Finding) error {
	if p.options.Executor == nil {
		return errors.New("there is no executor")
	}
	arguments, err := wrapper.Marshal(map[string]any{"toolCallId": f.ID, "title": f.Title, "kind": f.Kind, "paths": f.Paths()})
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(p.ctx)
	admission, err := p.admit(ctx, s)
	if err != nil {
		return err
	}
	opened := admission.Open(ctx, gateway.ModeEnforce,
		gateway.Input{Native: &gateway.NativeCall{Name: acp.UnjudgedTool, Arguments: arguments}})
	calls := opened.Calls()
	if len(calls) != 1 {
		return errors.New("the caller is refused")
	}
	opened.ReadTool(ctx)
	r := calls[0].Outcome(audit.Refused)
	r.Event, r.Stage, r.Code = audit.Decision, refusal.Permission, refusal.PermissionDenied
	r.Reason = text.Cut(fmt.Sprintf("%s: %s", f.Kind, f.Reason), audit.MaxReason)
	return p.options.Executor.Kernel.Writer().Write(ctx, r)
}

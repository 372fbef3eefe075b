package acp

import (
	"encoding/json"
	"time"

	"github.com/callgate/callgate/acp/wire"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
)

// describe describes a call; passed is nil where it was refused.
func (v *view) describe(p *gateway.Report, passed *gateway.PassedCall) (title string, d wire.ToolDetails) {
	d = wire.ToolDetails{Name: p.Tool, Kind: wire.KindOther}
	if passed == nil {
		return p.Tool, d
	}
	entry, err := v.exchange.session.conn.face.options.Executor.ToolVersion(passed.Tool, passed.Version)
	if err != nil || entry == nil {
		return p.Tool, d
	}
	if input, err := audit.Redact(passed.Arguments, entry.Secret); err == nil {
		d.RawInput = input
	}
	return p.Tool, d
}

// resultOf is the end of a call as the client sees it.
func resultOf(o *calls.Outcome) wire.ToolDetails {
	d := wire.ToolDetails{Status: wire.Completed}
	text := string(o.Value.Output)
	if o.Value.Refusal != nil {
		d.Status, text = wire.Failed, o.Value.Refusal.Message
	}
	d.RawOutput = json.RawMessage(o.Value.Object)
	d.Content = []wire.ToolContent{wire.TextContent(text)}
	return d
}

// maxStands is how long a yes of a user stands at most.
const maxStands = time.Hour

// optionsOf are the answers that a user may choose.
func optionsOf(q approvals.Question) []wire.PermissionOption {
	options := []wire.PermissionOption{{OptionID: "allow", Name: "Allow once", Kind: wire.AllowOnce}}
	if q.Remember > 0 {
		options = append(options, wire.PermissionOption{OptionID: "allow-for", Name: "Allow the same call for " + min(q.Remember, maxStands).String(), Kind: wire.AllowAlways})
	}
	return append(options, wire.PermissionOption{OptionID: "reject", Name: "Reject", Kind: wire.RejectOnce})
}

// ballotOf reads an answer by the kind of the chosen option; nil: the user has not decided.
func ballotOf(q approvals.Question, options []wire.PermissionOption, o wire.PermissionOutcome) *approvals.Ballot {
	if o.Outcome != wire.OutcomeSelected {
		return nil
	}
	for _, option := range options {
		if option.OptionID != o.OptionID {
			continue
		}
		switch option.Kind {
		case wire.AllowOnce:
			return q.Yes(0)
		case wire.AllowAlways:
			return q.Yes(min(q.Remember, maxStands))
		}
	}
	return q.No()
}

package gateway

import (
	"encoding/json"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// Shadow is told of each judgement on a call of a registered or unknown tool, once its record is
// durable. It must not block, and must be safe for concurrent use. A call is the same with it
// and without.
type Shadow interface {
	Judged(ShadowJudgement)
}

// ShadowJudgement is a judgement as a Shadow is told of it.
type ShadowJudgement struct {
	CallID  string
	Subject Subject
	Tool    string
	Version string // that the caller asked for; empty is the highest
	// Arguments are the request's own bytes: they are valid until Judged returns.
	Arguments json.RawMessage
	Asks      []string       // the rules by which people must approve the call
	Refusal   *refusal.Error // nil where the call passed
	Digest    string         // of the configuration that judged
	Past      *Assumed       // what the thread and the caller had done before; nil: the call uses no threads
}

// show tells the shadow of the calls of a decision.
func (d *Decision) show() {
	shadow := d.judgement.kernel.deps.Shadow
	if shadow == nil {
		return
	}
	defer safe.Discard() // the decision is made: a panic here changes nothing of it
	for _, c := range d.calls {
		if !c.held.recorded || !c.parsed.HasName || c.tool != nil && c.tool.Index() < 0 {
			continue
		}
		s := ShadowJudgement{CallID: c.id, Subject: c.subject, Tool: c.parsed.Name, Arguments: c.parsed.Arguments,
			Asks: c.permission.decision.Asks, Refusal: c.refused, Digest: c.config.Digest, Past: c.assumed()}
		if n := c.input.Native; n != nil {
			s.Version = n.Version
		}
		shadow.Judged(s)
	}
}

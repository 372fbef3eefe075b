package gateway

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// recordDecision is the stage log: the decision is durable before the call is executed
// or handed over.
func recordDecision(ctx context.Context, c *Call) error {
	return c.appendDecision(ctx, audit.ToolCall, nil)
}

// recordRest records what the pipeline did not: texts and refusals. A text that cannot be
// recorded is refused, and so are the calls beside it; a refusal stays the same. Requests
// without a known caller, or above its rate, are counted but not recorded.
func (d *Decision) recordRest(ctx context.Context) {
	defer d.keepRecent()
	defer d.show()
	if d.firstRefused() == nil {
		for _, c := range d.calls {
			if c.parsed.Kind == parser.Text {
				ctx = context.WithoutCancel(ctx)
				c.refused = refusal.From(refusal.Log, c.appendTraced(ctx, audit.Text, nil))
			}
		}
	}
	refused := d.firstRefused()
	if refused == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for _, c := range d.calls {
		switch text := c.parsed.Kind == parser.Text; {
		case text && c.refused != nil: // its record has just failed
		case !c.held.recorded:
			if refused.Code != refusal.CallerRateLimited && refused.Code != refusal.Unauthenticated {
				// The call is refused already; the journal reports its own failure.
				_ = c.appendTraced(ctx, audit.Refused, refused)
			}
		case !text:
			// The decision is recorded, but another part of the same answer was
			// refused: the call ends here, without having been dispatched.
			c.RecordNotRun(refused)
		}
	}
}

// RecordNotRun records the end of a call that was approved but not dispatched.
func (c *Call) RecordNotRun(refused *refusal.Error) {
	r := c.Outcome(audit.Refused)
	r.Outcome, r.Stage, r.Code = audit.Failed, refused.Stage, refused.Code
	c.undo(&r)
	c.kernel.journal.Outcome(r, nil)
}

func (d *Decision) firstRefused() *refusal.Error {
	for _, c := range d.calls {
		if c.refused != nil {
			return c.refused
		}
	}
	return nil
}

// appendTraced is appendDecision as a step of the call's trace.
func (c *Call) appendTraced(ctx context.Context, verdict audit.Verdict, refused *refusal.Error) error {
	start := c.trace.Start()
	err := c.appendDecision(ctx, verdict, refused)
	c.trace.Step(string(refusal.Log), start, err)
	return err
}

// appendDecision records the decision.
func (c *Call) appendDecision(ctx context.Context, verdict audit.Verdict, refused *refusal.Error) error {
	if c.kernel.deps.Journal == nil {
		return refuse.Unrecorded(errors.New("there is no audit log"))
	}
	r := c.record(audit.Decision)
	r.Verdict, r.Rows, r.Rules = verdict, c.decidingRows(ctx), c.approvalRules()
	if verdict == audit.ToolCall {
		r.Approvals, r.Spends = c.approvals.using, c.spent()
		c.addKey(&r)
	}
	if refused != nil {
		r.Stage, r.Code = refused.Stage, refused.Code
		var by interface{ Limit() string }
		if errors.As(refused.Cause, &by) {
			r.Limit = by.Limit()
		}
	}
	if err := c.recordPast(ctx, &r); err != nil {
		return err
	}
	r.Micros = c.kernel.deps.Now().Sub(c.started).Microseconds()
	if err := c.kernel.journal.Write(ctx, r); err != nil {
		return err
	}
	c.held.recorded = true
	return nil
}

// Outcome returns the record of the call's end, with the members that all records of one
// call have. A call that was not executed holds no key.
func (c *Call) Outcome(verdict audit.Verdict) audit.Record {
	r := c.record(audit.Ending)
	if r.Verdict = verdict; verdict == audit.ToolCall {
		c.addKey(&r)
	}
	return r
}

// addKey adds the key that the call holds in the store.
func (c *Call) addKey(r *audit.Record) {
	var held store.Call
	repeated, again := c.Repeated()
	switch {
	case c.held.stored != nil:
		held = *c.held.stored
	case c.held.key != "":
		held = c.StoreCall(c.held.key)
	case again:
		held = repeated
	}
	if held.Key != "" {
		r.KeySHA256, r.RequestSHA256 = hex.EncodeToString(held.KeyHash()), held.Digest
	}
}

// record returns the members that all records of one call have.
func (c *Call) record(event audit.Event) audit.Record {
	r := audit.Record{
		Time: c.kernel.deps.Now(), Event: event, Mode: audit.Mode(c.mode),
		CallID: c.id, RequestID: c.request.ID, TraceID: c.request.TraceID, Thread: c.request.Thread,
		Principal: c.caller(), Agent: c.subject.Agent, Workspace: c.subject.Workspace, Project: c.subject.Project,
		Tool: journal.BoundedName(c.parsed.Name), InputSHA256: c.inputDigest(), ArgumentsSHA256: c.argumentsDigest(),
		ConfigDigest: c.config.Digest, Replica: c.kernel.deps.Replica,
	}
	if c.tool != nil {
		r.ToolVersion = c.tool.Version()
	}
	if c.held.stored != nil {
		r.ToolVersion, r.ConfigDigest = c.held.stored.Task.Version, c.held.stored.Task.Config
	}
	switch event {
	case audit.Decision:
		r.Hooks, r.AgentHook = c.hooks.names, c.request.Hook
		if keep := c.kernel.deps.RecordContent; !c.hooks.withheld && (keep == audit.Arguments || keep == audit.Completion) {
			journal.AddContent(&r, keep, c.content())
		}
	case audit.Ending:
		r.Hooks = c.hooks.results.Names()
	}
	return r
}

// inputDigest hashes the completion, or the arguments of a native call, together with the
// call's request state and answers.
func (c *Call) inputDigest() string {
	if c.digests.input != "" {
		return c.digests.input
	}
	input := c.input.Completion
	if n := c.input.Native; n != nil {
		input = n.Arguments
	}
	c.digests.input = c.digests.Of(input)
	if answers := c.answersDigest(); answers != "" {
		c.digests.input = journal.Digest(fmt.Appendf(nil, "%s %s", c.digests.input, answers))
	}
	return c.digests.input
}

// argumentsDigest hashes the arguments; it is empty where they were not read.
func (c *Call) argumentsDigest() string {
	if c.digests.arguments == "" && c.parsed.Arguments != nil {
		c.digests.arguments = c.digests.Of(c.parsed.Arguments)
	}
	return c.digests.arguments
}

// content is what the record of the call may have of it.
func (c *Call) content() journal.Content {
	content := journal.Content{
		Arguments: c.parsed.Arguments, Tool: c.tool, Secrets: c.config.Tools.HasSecrets(), Text: c.parsed.Kind == parser.Text,
		Native: c.input.Native != nil, Completion: c.input.Completion, At: c.parsed.ArgumentsOffset, Written: len(c.parsed.Arguments),
	}
	if c.hooks.unredacted != nil {
		content.Written = len(c.hooks.unredacted)
	}
	if content.Tool == nil && c.parsed.HasName {
		content.Tool, _ = c.config.Tools.Lookup(c.parsed.Name)
	}
	return content
}

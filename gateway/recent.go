package gateway

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/refusal"
)

// Recent keeps what the audit log has no room for, of the last judgements. It must not block,
// and must be safe for concurrent use. A call is the same with it and without.
type Recent interface {
	// Keep takes a judgement, once its record is durable.
	Keep(Judgement)
}

// Judgement is the judgement of one input.
type Judgement struct {
	CallID  string
	Verdict Verdict
	// Refusal is the message to the model or the caller; nil where this input was not refused, or
	// another one of the same answer was. Where its words may repeat a secret argument, it has
	// the code and the places alone. Long texts, and lists of many violations, are cut.
	Refusal *refusal.Error

	times trace.Times
}

// Stages lists the stages that were run, in their order, with their times.
func (j *Judgement) Stages() []trace.StageReport { return j.times.Report(j.Refusal) }

// Took is how long the stages that were run took together.
func (j *Judgement) Took() (all time.Duration) {
	for _, t := range j.times.Stages() {
		all += t.Took
	}
	return all
}

// keepRecent passes the judgements on.
func (d *Decision) keepRecent() {
	recent := d.judgement.kernel.deps.Recent
	if recent == nil {
		return
	}
	defer safe.Discard() // the decision is made: a panic here changes nothing of it
	first := d.firstRefused()
	for _, c := range d.calls {
		j := Judgement{CallID: c.id, Verdict: VerdictCall, times: c.times}
		switch {
		case c.refused != nil:
			j.Verdict, j.Refusal = VerdictRefused, shortened(c.refusalWithoutSecrets())
		case c.finished():
			j.Verdict = VerdictText
		case first != nil:
			j.Verdict = VerdictRefused
		}
		recent.Keep(j)
	}
}

// refusalWithoutSecrets is the refusal without its cause, and without words where the call
// has secret arguments that they may repeat. Before the stage schema no words repeat one.
func (c *Call) refusalWithoutSecrets() *refusal.Error {
	r := *c.refused
	r.Cause = nil
	tool := c.tool
	if tool == nil && c.parsed.HasName {
		tool, _ = c.config.Tools.Lookup(c.parsed.Name)
	}
	if tool == nil || !tool.HasSecrets() || c.parsed.Arguments == nil {
		return &r
	}
	if redacted, err := audit.Redact(c.parsed.Arguments, tool.Secret); err == nil && bytes.Equal(redacted, c.parsed.Arguments) {
		return &r
	}
	r.Message, r.DidYouMean = "The call has secret arguments, which these words might repeat.", nil
	r.Violations = nil
	for _, v := range c.refused.Violations {
		r.Violations = append(r.Violations, refusal.Violation{Code: v.Code, Path: v.Path, Offset: v.Offset})
	}
	return &r
}

// What is kept of a refusal: it repeats names that a model may have written in any length.
const (
	maxKeptViolations = 20
	maxKeptText       = 1 << 10 // bytes
)

// shortened is a refusal that holds no more than is kept of one.
func shortened(r *refusal.Error) *refusal.Error {
	short := func(s string) string {
		if len(s) > maxKeptText {
			return strings.Clone(text.Cut(s, maxKeptText)) + "…"
		}
		return s
	}
	r.Message = short(r.Message)
	r.Violations = slices.Clone(r.Violations[:min(len(r.Violations), maxKeptViolations)])
	for i := range r.Violations {
		v := &r.Violations[i]
		v.Path, v.Message = short(v.Path), short(v.Message)
	}
	return r
}

// Config returns the configuration that judges now. It is not to be changed.
func (k *Kernel) Config() *Config { return k.config.Load() }

// Quarantined reports whether a version of a tool may not be called until an operator has
// accepted its definition.
func (k *Kernel) Quarantined(name, version string) bool { return k.quarantinedVersion(name, version) }

// Preview is Check for an operator, who needs no credential of the agent's: of the subject
// that the request names, or the defaults. No caller's rate is charged.
func (k *Kernel) Preview(ctx context.Context, request Request) Report {
	config := *k.config.Load()
	config.Identity = nil
	request.Credential, request.CallerAddress, request.identified = "", "", nil
	return k.check(ctx, &config, request)
}

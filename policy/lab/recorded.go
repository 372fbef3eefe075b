package lab

import (
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// finding is what a record shows of one check.
type finding int

const (
	notShown finding = iota
	passed
	failed
)

// recorded is what a decision says: its judgement, and what it shows of the checks that read
// arguments.
type recorded struct {
	Judgement
	schema, bounds finding
}

// judged reads a decision. The reason is why it is none that a configuration's rules made;
// "" where it is.
func judged(r *audit.Record) (recorded, string) {
	d := recorded{Judgement: Judgement{Verdict: Allowed, Rows: r.Rows}, schema: passed, bounds: passed}
	if len(r.Rules) > 0 {
		d.Verdict, d.Rules = Asks, r.Rules
	}
	if r.Verdict != audit.Refused {
		return d, ""
	}
	switch r.Stage {
	case refusal.Schema:
		if r.Code == refusal.ToolStarting {
			return d, "the tool's server was starting"
		}
		d.Verdict, d.Code, d.schema, d.bounds = Refused, r.Code, failed, notShown
	case refusal.Permission:
		switch r.Code {
		case refusal.ToolQuarantined:
			return d, "the tool was quarantined"
		case refusal.Stopped, refusal.StoreUnavailable:
			return d, "an operator had stopped it"
		case refusal.ThreadRequired, refusal.ThreadClosed, refusal.ThreadsFull, refusal.ThreadsUnavailable:
			return d, "it had no thread, or one that nothing could be added to"
		}
		// The policy may be asked before the schema.
		d.Verdict, d.Code, d.schema, d.bounds = Refused, r.Code, notShown, notShown
	case refusal.Rate:
		d.bounds = notShown
	case refusal.Workspace:
		d.Verdict, d.Code, d.bounds = Refused, r.Code, notShown
	case refusal.Project:
		d.Verdict, d.Code, d.bounds = Refused, r.Code, notShown
		if r.Code == refusal.BoundaryViolation {
			d.bounds = failed
		}
	case refusal.Approval:
		d.Verdict = Asks
	case refusal.Log, refusal.Execute, refusal.Wrap:
	default:
		return d, "refused before the rules of the configuration were asked (" + string(r.Stage) + ")"
	}
	if r.Tool == "" {
		return d, "the record names no tool"
	}
	return d, ""
}

// with adds to a judgement without arguments what the record shows of the schema and the
// boundaries. The reason is why that is not known.
func (d recorded) with(j Judgement, bounded bool) (Judgement, string) {
	switch {
	case j.Verdict == Refused:
		return j, ""
	case d.schema == failed:
		return Judgement{Verdict: Refused, Code: d.Code}, ""
	case d.schema == notShown:
		return Judgement{}, "the policy lets it pass, and whether the schema accepts its arguments is not known"
	case !bounded || d.bounds == passed:
		return j, ""
	case d.bounds == failed:
		return Judgement{Verdict: Refused, Code: refusal.BoundaryViolation}, ""
	}
	return Judgement{}, "the policy lets it pass, and whether its arguments are within the boundaries is not known"
}

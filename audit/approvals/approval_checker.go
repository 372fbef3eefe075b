// Package approvals checks by audit logs alone that people were obeyed: that every call which
// used an approval or a grant was allowed to.
//
// A decision that lets a call pass and names approvals is held against the events about them: the
// request, the votes, the ends. It needs the logs of all gateways that took votes. Within one log
// the order of the records decides what was before; between two logs their times do, and clocks may
// differ by Skew.
//
// The logs do not say which agents a voter stands for, or who a conversation's user was, so of
// "nobody approves a call of their own" only this is checked: the voter is another principal than
// the caller.
package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/search"
	"github.com/callgate/callgate/store/approval"
)

// Skew is how far the clocks of two gateways may differ.
const Skew = time.Minute

// grantPrefix begins the ids of grants.
const grantPrefix = "grant_"

// Finding is a decision that used an approval or a grant which did not allow it.
type Finding struct {
	File   string
	Seq    uint64
	Call   string
	Using  string // the approval or grant
	Reason string // a clause whose subject is the approval or grant
}

// String is one line for people. Texts from outside are escaped.
func (f Finding) String() string {
	return fmt.Sprintf("%s: seq %d: the call %s uses %s, %s", f.File, f.Seq, audit.Escaped(f.Call), audit.Escaped(f.Using), f.Reason)
}

// Report is the result of a check.
type Report struct {
	Decisions int // that use approvals or grants
	Findings  []Finding
}

// Check reads what the logs say about approvals. Its memory grows with the number of approvals, not
// with the length of the logs. The error is that of reading, also where a line was altered.
func Check(ctx context.Context, logs *search.Logs) (Report, error) {
	h := history{about: map[string][]search.Found{}, grants: map[string][]search.Found{}, uses: map[string][]search.Found{}}
	for found, err := range logs.Records(ctx, search.Query{Approvals: true}, search.Options{}) {
		if err != nil {
			return Report{}, err
		}
		found.Line, found.Arguments, found.Completion = nil, nil, ""
		h.add(found)
	}
	if err := h.findUnused(ctx, logs); err != nil {
		return Report{}, err
	}
	r := Report{Decisions: len(h.decisions)}
	for _, d := range h.decisions {
		r.Findings = append(r.Findings, h.check(&d)...)
	}
	return r, nil
}

// history has the facts of the logs about approvals.
type history struct {
	decisions []search.Found            // that use some
	about     map[string][]search.Found // events, by the call that asked
	grants    map[string][]search.Found // events, by the grant
	uses      map[string][]search.Found // decisions, by the approval
	unused    map[string]bool           // by the calls that ended, whether they were not dispatched after all
}

func (h *history) add(f search.Found) {
	switch {
	case f.Event == audit.Approval:
		h.about[f.CallID] = append(h.about[f.CallID], f)
		if len(f.Approvals) > 1 {
			h.grants[f.Approvals[1]] = append(h.grants[f.Approvals[1]], f)
		}
	case f.Event == audit.Decision && f.Verdict == audit.ToolCall:
		h.decisions = append(h.decisions, f)
		for _, id := range f.Approvals {
			if !strings.HasPrefix(id, grantPrefix) {
				h.uses[id] = append(h.uses[id], f)
			}
		}
	}
}

// findUnused finds the calls that were to use an approval or a grant, and were not dispatched after all: they left it
// as it was.
func (h *history) findUnused(ctx context.Context, logs *search.Logs) error {
	h.unused = map[string]bool{}
	uses := map[string]bool{}
	for i := range h.decisions {
		uses[h.decisions[i].CallID] = true
	}
	if len(uses) == 0 {
		return nil
	}
	for f, err := range logs.Records(ctx, search.Query{Event: audit.Ending, AnyOf: uses}, search.Options{}) {
		if err != nil {
			return err
		}
		unused, other := h.unused[f.CallID]
		h.unused[f.CallID] = search.NotDispatched(&f.Record) && (unused || !other)
	}
	return nil
}

// mayPrecede reports whether one record may have been before another.
func mayPrecede(a, b *search.Found) bool { return precedes(a, b, Skew) }

// mustPrecede reports whether one record was before another for sure.
func mustPrecede(a, b *search.Found) bool { return precedes(a, b, -Skew) }

func precedes(a, b *search.Found, skew time.Duration) bool {
	if a.Log == b.Log {
		return a.Seq < b.Seq
	}
	return a.Time.Before(b.Time.Add(skew))
}

// check returns what is wrong with the approvals that a decision uses. With one whose call was not dispatched nothing
// is: it was refused for what has happened meanwhile.
func (h *history) check(d *search.Found) (findings []Finding) {
	if h.unused[d.CallID] {
		return nil
	}
	find := func(using, format string, args ...any) {
		findings = append(findings, Finding{File: d.File, Seq: d.Seq, Call: d.CallID, Using: using, Reason: fmt.Sprintf(format, args...)})
	}
	satisfied := map[string]string{} // what is missing of each rule, empty if nothing is
	for _, id := range d.Approvals {
		var missing map[string]string
		var err error
		if strings.HasPrefix(id, grantPrefix) {
			missing, err = h.checkGrant(d, id)
		} else {
			missing, err = h.checkApproval(d, id)
		}
		if err != nil {
			find(id, "%v", err)
			continue
		}
		for rule, lacks := range missing {
			if was, known := satisfied[rule]; !known || was != "" {
				satisfied[rule] = lacks
			}
		}
	}
	if len(findings) > 0 {
		return findings
	}
	if len(d.Rules) == 0 {
		find(d.Approvals[0], "and does not say for which rules")
	}
	for _, text := range d.Rules {
		rule, _, _, ok := audit.ReadRuleVotes(text)
		lacks, known := satisfied[rule]
		switch {
		case !ok:
			find(d.Approvals[0], "and names a rule without the number of people who must say yes")
		case !known:
			find(d.Approvals[0], "which was not asked for the rule %s", audit.Escaped(rule))
		case lacks != "":
			find(d.Approvals[0], "%s", lacks)
		}
	}
	return findings
}

// checkApproval checks the use of an approval. It returns what is missing of each rule that the
// approval is for.
func (h *history) checkApproval(d *search.Found, id string) (map[string]string, error) {
	request, err := h.request(d, id)
	if err != nil {
		return nil, err
	}
	if err := sameCall(&request.Record, &d.Record, true); err != nil {
		return nil, err
	}
	for _, text := range request.Rules {
		if d.ConfigDigest == request.ConfigDigest && !slices.Contains(d.Rules, text) {
			return nil, fmt.Errorf("which was asked for with %s, and not %s", audit.Escaped(text),
				audit.Escaped(strings.Join(d.Rules, ", ")))
		}
	}
	until := request.Until
	for _, e := range h.about[id] {
		if len(e.Approvals) > 1 {
			continue // about a grant
		}
		if e.Code != audit.Yes && !mustPrecede(&e, d) {
			continue
		}
		switch e.Code {
		case audit.No:
			return nil, errors.New("which was denied before")
		case audit.Lapsed:
			return nil, errors.New("which had expired before")
		case audit.Withdrawn, audit.Revoked:
			return nil, errors.New("which was withdrawn or revoked before")
		case audit.Yes:
			if grace := e.Time.Add(approval.Grace); grace.After(until) && mayPrecede(&e, d) && !e.Time.After(request.Until) {
				until = grace
			}
		}
	}
	if d.Time.After(until.Add(skewBetween(request, d))) {
		return nil, fmt.Errorf("which could be used until %s", until.UTC().Format(time.RFC3339))
	}
	for _, other := range h.uses[id] {
		if other.CallID != d.CallID && !h.unused[other.CallID] && precedes(&other, d, 0) {
			return nil, fmt.Errorf("which the call %s had used before", audit.Escaped(other.CallID))
		}
	}
	return h.missing(d, request, d.Rules), nil
}

// checkGrant checks the use of a grant.
func (h *history) checkGrant(d *search.Found, id string) (map[string]string, error) {
	var granted *search.Found
	for i := range h.grants[id] {
		e := &h.grants[id][i]
		switch {
		case e.Code == audit.Revoked && mustPrecede(e, d):
			return nil, errors.New("which was revoked before")
		case e.Code == audit.Granted && mayPrecede(e, d):
			granted = e
		}
	}
	if granted == nil {
		return nil, errors.New("which nobody had granted before")
	}
	request, err := h.request(granted, granted.CallID)
	if err != nil {
		return nil, fmt.Errorf("a grant by %s, %w", audit.Escaped(granted.CallID), err)
	}
	if err := sameCall(&request.Record, &d.Record, slices.Contains(granted.Approvals[2:], string(approval.InThread))); err != nil {
		return nil, err
	}
	if d.Time.After(granted.Until.Add(skewBetween(granted, d))) {
		return nil, fmt.Errorf("which held until %s", granted.Until.UTC().Format(time.RFC3339))
	}
	// The votes are those that were there when it was granted, and so is their number.
	all := h.missing(granted, request, request.Rules)
	missing := map[string]string{}
	for _, rule := range granted.Rules {
		if lacks, known := all[rule]; known {
			missing[rule] = lacks
		}
	}
	return missing, nil
}

// request returns the event by which an approval was asked for, before it was used.
func (h *history) request(use *search.Found, id string) (*search.Found, error) {
	for i := range h.about[id] {
		if e := &h.about[id][i]; e.Code == audit.Requested && mayPrecede(e, use) {
			return e, nil
		}
	}
	return nil, errors.New("which nobody had asked for before")
}

// skewBetween is how far the clocks may differ that two records have their times from.
func skewBetween(a, b *search.Found) time.Duration {
	if a.Log == b.Log {
		return 0
	}
	return Skew
}

// sameCall checks that a call is one that an approval can be for, as far as logs say. That the
// arguments are the same is in no log, which has the digest of their bytes.
func sameCall(requested, ran *audit.Record, thread bool) error {
	for _, part := range []struct{ name, requested, ran string }{
		{"principal", requested.Principal, ran.Principal}, {"agent", requested.Agent, ran.Agent},
		{"workspace", requested.Workspace, ran.Workspace},
		{"project", requested.Project, ran.Project}, {"tool", requested.Tool, ran.Tool},
		{"version", requested.ToolVersion, ran.ToolVersion},
	} {
		if part.requested != part.ran {
			return fmt.Errorf("which was asked for with the %s %q, and not %q", part.name, audit.Escaped(part.requested),
				audit.Escaped(part.ran))
		}
	}
	if thread && requested.Thread != ran.Thread {
		return fmt.Errorf("which was asked for in the thread %q, and not %q", audit.Escaped(requested.Thread), audit.Escaped(ran.Thread))
	}
	return nil
}

// missing says of each rule what is missing before a record, where rules says how many people
// must say yes: by the last vote of each, of people other than the caller, to the call as it was
// asked for.
func (h *history) missing(use, request *search.Found, rules []string) map[string]string {
	missing := map[string]string{}
	requested := map[string]bool{}
	for _, text := range request.Rules {
		if rule, _, _, ok := audit.ReadRuleVotes(text); ok {
			requested[rule] = true
		}
	}
	for _, text := range rules {
		rule, approve, caller, ok := audit.ReadRuleVotes(text)
		if !ok || !requested[rule] {
			continue // of another approval, or reported already
		}
		yes := map[string]bool{}
		for _, e := range h.about[request.CallID] {
			isCaller := e.Principal == request.Principal && request.Principal != ""
			if e.Code == audit.Yes && mayPrecede(&e, use) && (caller || !isCaller) && slices.Contains(e.Rules, rule) &&
				slices.Equal(e.Approvals, request.Approvals) {
				yes[e.Principal] = true
			}
		}
		missing[rule] = ""
		if len(yes) < approve {
			missing[rule] = fmt.Sprintf("for which %d of %d people had said yes for the rule %s", len(yes), approve, audit.Escaped(rule))
		}
	}
	return missing
}

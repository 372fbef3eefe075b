package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// The bounds of the search for earlier approvals: people wait for the page.
const (
	maxEarlier   = 5
	earlierBytes = 16 << 20
	earlierTime  = 200 * time.Millisecond
)

// EarlierApproval is the last decision of people on an earlier call of the same agent and tool.
type EarlierApproval struct {
	ID     string       `json:"id"`
	Code   refusal.Code `json:"code"` // yes, no, expired, withdrawn or revoked
	By     string       `json:"by"`
	At     time.Time    `json:"at"`
	Reason string       `json:"reason"`
}

// earlier returns the last approvals of the same agent and tool that people acted on, the newest
// first, as far as a short search of the audit log finds them, and the caller may see them.
func (s *Approvals) earlier(ctx context.Context, c Caller, a *approval.Approval) ([]EarlierApproval, error) {
	found := []EarlierApproval{}
	if s.Log == nil {
		return found, nil
	}
	seen := map[string]bool{a.ID: true}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.EarlierTime, earlierTime))
	defer cancel()
	_, err := s.Log.Newest(ctx, audit.Search{
		Count: maxEarlier, MaxBytes: earlierBytes,
		Equal: map[string]string{"event": string(audit.Approval), "agent": a.Agent, "tool": a.Tool},
		Keep: func(r *audit.Record) bool {
			if seen[r.CallID] || r.Code == audit.Requested || r.Code == audit.Granted || !c.seesRules(r.Rules) {
				return false
			}
			seen[r.CallID] = true
			found = append(found, EarlierApproval{r.CallID, r.Code, r.Principal, r.Time, r.Reason})
			return true
		},
	})
	return found, err
}

// seesRules reports whether a caller sees what is decided by rules: operators all, others those
// by which they approve.
func (c Caller) seesRules(rules []string) bool {
	return c.Operator || slices.ContainsFunc(rules, func(rule string) bool { return slices.Contains(c.Approves, rule) })
}

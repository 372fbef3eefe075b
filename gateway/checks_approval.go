package gateway

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/refusal"
)

// asksForApproval reports whether a row of the policy asks people first.
func asksForApproval(c *Call) bool { return len(c.decision.Asks) > 0 }

// checkApproval is the stage approval: a call for which the policy asks people is refused
// until they have approved it.
func checkApproval(_ context.Context, c *Call) error {
	if !asksForApproval(c) {
		return nil
	}
	return refuseUnapproved(c.WrittenName())
}

func refuseUnapproved(tool string) error {
	return refusal.New(refusal.ApprovalRequired, fmt.Sprintf(
		"%s needs the approval of a person here, and that is not there yet. Nothing was executed. Say that it waits, "+
			"and do not reach the same by other means. Once it is approved the same call can be sent again.", tool))
}

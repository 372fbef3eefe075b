package main

import (
	"github.com/spf13/cobra"
)

func newApprovals(e env) *cobra.Command {
	parent := group("approvals", "Decide the calls that wait for a person's approval",
		newApprovalsList(e), newApprovalsShow(e), newVoteCommand(e, true), newVoteCommand(e, false), newGrants(e), newRevoke(e))
	parent.Long = `Decide calls that a row of the policy with the effect ask:RULE holds until people approve.
These commands ask a running gateway's admin API, with the key of a principal that has
approves: [RULE], or of an operator. Nobody may approve a call of their own.

Exit code 1: the approval has ended, or is not yours to decide. 3: the gateway does not answer.`
	parent.Example = `  callgate approvals list --waiting
  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --remember same=2h`
	return parent
}

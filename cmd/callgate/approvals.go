package main

import (
	"github.com/spf13/cobra"
)

func newApprovals(e env) *cobra.Command {
	parent := group("approvals", "Decide the calls that wait for a person's approval",
		newApprovalsList(e), newApprovalsShow(e), newVoteCommand(e, true), newVoteCommand(e, false), newGrants(e), newRevoke(e))
	parent.Long = `A row of the policy with the effect ask:RULE has people asked before a call runs.
These commands ask the admin API of a running gateway, with your own key: that of a
principal with approves: [RULE], or of an operator. Nobody may approve a call of
their own. See docs/approvals.md.

The exit code is 0 when it is done, 1 when the gateway refuses (the approval has
ended, or is not yours to decide), 2 for a mistake in the command, 3 when the
gateway does not answer.`
	parent.Example = `  callgate approvals list
  callgate approvals show call_BQPJNL6W6O2CNZGMCGR5HGGAJF
  callgate approvals approve call_BQPJNL6W6O2CNZGMCGR5HGGAJF --remember same=2h
  callgate approvals deny call_BQPJNL6W6O2CNZGMCGR5HGGAJF --reason "the invoice is paid already"`
	return parent
}

// Package approval is the domain of approvals: a person says yes or no to one tool call
// before it is executed. It does no I/O and keeps nothing; package store keeps approvals,
// and package gateway asks for them.
//
// # What a yes is to
//
// A call that a policy row ask:RULE permits needs the yes of people. Call holds all that
// their yes is bound to, and Call.Digest is its digest: a call that differs in any part is
// another call, and is asked anew. The record of a question is an Approval. It has the id
// of the call which asked. Nothing is executed when the yes comes: the same call is sent
// again, or is taken up by id, and is judged as a whole again. Judge is the part of the
// judgement that concerns approvals.
//
// # What is stored, and what is computed
//
// An Approval holds facts: who has said what and when, that a person or its caller has
// ended it, which call it was used for. Approval.State is computed from these facts, the
// rules and the approvers of now, and the clock; approved and expired are never stored. An
// approver that has lost the right no longer counts, and a rule that asks for more people
// is not satisfied by fewer. Of a principal of a token nothing is known but its token: its yes
// counts until the token ends (Vote.Until).
//
//	waiting ──enough yes──► approved ──dispatched──► used
//	   │  ▲                    │
//	   │  └──too few by now────┤
//	   └───────────────────────┴──► denied, expired, withdrawn
//
// An approval is used up by the transition that dispatches the call (store.Task.Using), in
// no check before it. A call that fails before that leaves its approval usable. The very call of an
// approval uses it up, too, when it passes by a grant of its votes (Verdict.Spends): one yes lets it run
// while the grant stands, or once, and never once more after the grant.
//
// # Who may vote
//
// Never the requester: the principal that made the call, one that stands for the call's
// agent, the call's user. A rule may instead be answered by the caller itself (ByCaller),
// which is a confirmation and counts for no other rule.
package approval

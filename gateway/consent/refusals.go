package consent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store/approval"
)

// required is the refusal of a call that cannot run without an approval: the tool, and what is said of
// it, which begins with a verb.
func required(tool, predicate string) *refusal.Error {
	return refusal.New(refusal.ApprovalRequired, tool+" "+predicate)
}

// RefuseUnapproved is the refusal of a call that people have not approved, or not yet.
func RefuseUnapproved(tool string) *refusal.Error {
	return required(tool,
		"needs the approval of a person here; it was asked for and is not there yet. Nothing was executed. Say that it waits, "+
			"and do not reach the same by other means. Once it is approved the same call can be sent again.")
}

// RefusePassed is the refusal of a call that has not run when its conversation went on.
func RefusePassed(tool string) *refusal.Error {
	return required(tool,
		"needed the approval of a person here, and was not executed before the conversation went on. It will not be executed any more. "+
			"If it is still wanted, the same call can be sent again.")
}

// RefuseUnaskable is the refusal of a call that needs the approval of people whom this process
// cannot ask.
func RefuseUnaskable(tool string) *refusal.Error {
	return required(tool,
		"needs the approval of a person, and nobody can be asked: this gateway serves one client and has no listener where people approve, "+
			"and the client cannot ask its own user by this rule. Nothing was executed. Say what you cannot do.")
}

// RefuseTwice is the refusal of an answer with the same call twice: a yes is for one, and either
// all calls of an answer run or none.
func RefuseTwice(tool string) *refusal.Error {
	return refusal.At(refusal.Approval, refusal.ApprovalConflict, fmt.Sprintf(
		"%s needs the approval of a person here, and the same call is twice in this answer: a person approves one call. Nothing was executed. "+
			"Send it once.", tool))
}

// RefuseUsed is the refusal of a call whose approval another call has used.
func RefuseUsed(tool string) *refusal.Error {
	return required(tool,
		"needs the approval of a person here, and the one that was given was used by another call. Nothing was executed. "+askedAnew)
}

// RefuseDenied is the refusal of a call that a person has denied, with the person's own words.
func RefuseDenied(reason string) *refusal.Error {
	return denied("A person has looked at this call and denied it", reason,
		"Do not send it again, nor reach the same by other means; say what you cannot do.")
}

// denied is the refusal of a call that may not run by what people have said, and why.
func denied(what, reason, then string) *refusal.Error {
	if reason != "" {
		what += ": " + strconv.QuoteToGraphic(reason)
	}
	return refusal.New(refusal.ApprovalDenied, what+". Nothing was executed. "+then)
}

// askedAnew is what follows where people have not decided against a call.
const askedAnew = "Say so; people are asked again when the same call is sent again."

// RefuseRevoked is the refusal of a call whose approval an operator has withdrawn, with the operator's own words.
func RefuseRevoked(reason string) *refusal.Error {
	return denied("An operator has withdrawn this call's approval", reason, askedAnew)
}

// RefuseGone is the refusal of a call that was to run by an approval or a grant which has ended meanwhile.
func RefuseGone() *refusal.Error {
	return denied("The approval that let this call run has ended", "", askedAnew)
}

// RefuseExpired is the refusal of a call of which nobody has said in time whether it may run.
func RefuseExpired(tool string, within time.Duration) *refusal.Error {
	return refusal.New(refusal.ApprovalExpired, fmt.Sprintf(
		"Nobody has said within %s whether %s may run. Nothing was executed, and nobody has decided against it. "+
			"Say so; it can be sent again when somebody can answer.", duration.Spell(within.Round(time.Second)), tool))
}

// RefuseEnded is the refusal of a call that cannot run by an approval any more.
func RefuseEnded(a *approval.Approval, state approval.State, rules approval.Rules, people approval.People) *refusal.Error {
	switch {
	case state == approval.Expired && a.WasApproved(rules, people):
		return refusal.New(refusal.ApprovalExpired,
			"The call was approved, and was not sent again in time. Nothing was executed. "+askedAnew)
	case state == approval.Expired:
		return RefuseExpired(a.Tool, a.Until.Sub(a.Opened))
	case a.Ended.End == approval.EndWithdrawn:
		return refusal.New(refusal.ApprovalRequired, "The call was called off. Nothing was executed.")
	case a.Ended.End == approval.EndRevoked:
		return RefuseRevoked(a.Ended.Reason)
	}
	return RefuseDenied(a.Ended.Reason)
}

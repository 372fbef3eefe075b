package gateway

import (
	"time"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/refusal"
)

// Report is the verdict on one input. One of Check has the stages that led to it, and
// marshals to the answer of /v1/check.
type Report struct {
	Verdict Verdict     `json:"verdict"`
	Call    *PassedCall `json:"call,omitempty"`
	// Approval names the rules by which people must approve the call; Check does not ask them.
	Approval []string `json:"approval,omitempty"`
	// Thread is "empty" where conditions of the policy ask what the thread of the call has done: Check judges it in one that
	// has done nothing.
	Thread string `json:"thread,omitempty"`
	// Refusal is why this input is refused; nil where only another one of the same
	// answer is.
	Refusal *refusal.Error      `json:"error,omitempty"`
	Stages  []trace.StageReport `json:"stages"`
	// ID names this judgement, and the call when there is one.
	CallID string `json:"-"`
	// Text is the completion, when the verdict is text, as hooks have left it. Where another input
	// was refused before they saw it, it is empty.
	Text []byte `json:"-"`
	// Pieces are what hooks have left of it, where that is not all; of a stream, of what Write has
	// not released.
	Pieces []window.Piece `json:"-"`
	// Tool is the name that was called, known or not, where the whole completion
	// was read; Named says whether there is one.
	Tool    string `json:"-"`
	HasTool bool   `json:"-"`
	// ArgumentsSHA256 is the digest in hex of the arguments of a refused call, where
	// they were read; else it is empty.
	ArgumentsSHA256 string `json:"-"`

	// Rows are the places of the policy rows that decided, as file:line, where the policy was
	// asked. Only Check states them here; the journal has them of a judgement.
	Rows []string `json:"-"`

	// ApprovalRequest is what people are asked for before the call may run; nil where nothing is. It
	// belongs to a refusal approval_required.
	ApprovalRequest *ApprovalRequest `json:"-"`

	// Unanswered is what the caller is asked again; nil where there is nothing.
	Unanswered *elicit.Unanswered `json:"-"`
}

// ApprovalRequest is what people were asked to approve.
type ApprovalRequest struct {
	// ID is of the call that asked: with it, the caller asks what became of it, and takes the
	// call up once it was approved.
	ID string
	// Rules are those by which it must be approved.
	Rules []string
	Until time.Time
}

package mcp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/parser"
)

// The request state of a call that waits for people is the id of its approval. If the call itself
// answers its tool, the client sends those answers no second time, so the state carries them. It
// is not secret and not signed: an approval is bound to its caller and to the digest of the call,
// answers included, so a state that was changed names an approval of another call.
const (
	approvalStatePrefix = "approval."
	// maxApprovalState bounds the state, in bytes.
	maxApprovalState = 32 << 10
)

// carried is what a call answers its tool.
type carried struct {
	State     string                     `json:"state,omitempty"`
	Responses map[string]json.RawMessage `json:"responses,omitempty"`
}

// approvalState is the request state of a call that waits for an approval; not ok if it would
// be too long.
func approvalState(id string, d *elicit.Dialogue) (state string, ok bool) {
	state = approvalStatePrefix + id
	if d.BringsAnswers() {
		own, err := json.Marshal(carried{d.RequestState, d.Answers})
		if err != nil {
			return "", false
		}
		state += "." + base64.RawURLEncoding.EncodeToString(own)
	}
	return state, len(state) <= maxApprovalState
}

// readApprovalState replaces a dialogue's state and answers by those that the state carries, and
// takes the approval from it. A state that no response has given names no approval that exists.
func readApprovalState(d *elicit.Dialogue) {
	state := strings.TrimPrefix(d.RequestState, approvalStatePrefix)
	id, own, has := strings.Cut(state, ".")
	d.RequestState, d.Answers, d.Approval = "", nil, id
	if id == "" {
		d.Approval = approvalStatePrefix
	}
	if !has {
		return
	}
	var c carried
	text, err := base64.RawURLEncoding.Strict().DecodeString(own)
	if err == nil {
		_, err = parser.ReadValue(text, maxDepth)
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		d.Approval = approvalStatePrefix + id // which no approval is named
		return
	}
	d.RequestState, d.Answers = c.State, c.Responses
}

package gateway

import (
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

// runsAsCaller reports whether the credential of the tool exchanges the token of the caller.
func (c *Call) runsAsCaller() bool {
	if c.tool == nil {
		return false
	}
	credential := c.tool.SharedRun().Credential
	return credential != nil && credential.In == tool.InExchange
}

// exchangedCaller is the caller with the token of this request, of which its principal was read; nil if the tool takes
// no part of it, and if the caller has none. A call that the store has kept has no request, and so no token.
func (c *Call) exchangedCaller() *tool.Caller {
	p := c.principal
	if !c.runsAsCaller() || p == nil || p.Expires.IsZero() {
		return nil
	}
	return tool.NewCaller(p.Name, c.request.Credential, p.Expires)
}

// CheckCaller refuses a call whose tool is called as its caller, if the caller has no token that can be exchanged now.
// It is asked before the call is dispatched, so that the approvals of the call stand. The error is a *refusal.Error.
func (c *Call) CheckCaller() error {
	if !c.runsAsCaller() {
		return nil
	}
	if refused := refuse.WithoutToken(c.ToolName(), c.exchangedCaller(), c.kernel.deps.Now()); refused != nil {
		return refused
	}
	return nil
}

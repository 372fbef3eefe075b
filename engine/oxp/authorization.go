package oxp

import (
	"context"
	"net/url"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const maxCheckBytes = 16 << 10

// The states of an authorization.
const (
	authorizationPending   = "pending"
	authorizationCompleted = "completed"
	authorizationFailed    = "failed"
)

// Authorization asks the server of a tool for the state of an authorization, at the
// address of its challenge: pending, completed or failed. An unknown state is pending. It
// asks only the very server of the tool, so that nothing which a server says leads
// elsewhere. The error is a *refusal.Error.
func (o *Client) Authorization(ctx context.Context, run tool.Run, address string) (status string, err error) {
	base, bad := url.Parse(run.URL)
	if run.Type != "oxp" || bad != nil || !sameOrigin(base, address) {
		return "", NoAuthorization()
	}
	target, _ := url.Parse(address) // it has been, just now
	ctx, cancel := context.WithTimeout(ctx, run.Timeout)
	defer cancel()
	body, err := o.get(ctx, target, run.Credential, run.Addresses, maxCheckBytes)
	if err != nil {
		return "", refuse.Unavailable("how an authorization stands was not answered: %w", err)
	}
	value, err := parser.ReadValue(body, maxListDepth)
	object, _ := value.(map[string]any)
	status, stated := object["status"].(string)
	switch {
	case status == authorizationCompleted || status == authorizationFailed:
		return status, nil
	case stated:
		return authorizationPending, nil
	case err == nil:
		err = refuse.Reason("there is no status in the answer")
	}
	return "", refuse.Unavailable("how an authorization stands was not answered: %w", err)
}

// NoAuthorization refuses to ask about an authorization.
func NoAuthorization() *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no authorization that could be asked about here.")
}

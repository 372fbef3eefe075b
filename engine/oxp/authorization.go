package oxp

import (
	"context"
	"net/url"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/engine/outbound"
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

// Authorization asks the server of a tool how an authorization stands, at the
// address that came with its challenge: pending, completed or failed. What the server
// says and the protocol does not know is no end, so it is pending. It is asked
// only where that is on the very server of the tool, so that nothing which a server
// says leads anywhere else. The error is a *refusal.Error.
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

// sameOrigin tells whether an address is on a server, in its very spelling.
func sameOrigin(server *url.URL, address string) bool {
	u, err := url.Parse(address)
	return err == nil && len(address) <= maxChallengeBytes && u.Host != "" && outbound.Origin(u) == outbound.Origin(server) && u.User == nil
}

// NoAuthorization refuses to ask about an authorization.
func NoAuthorization() *refusal.Error {
	return refusal.New(refusal.NotFound, "There is no authorization that could be asked about here.")
}

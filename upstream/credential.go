package upstream

import (
	"context"
	"net/http"

	"github.com/callgate/callgate/internal/safe"
)

// credentialValue is a credential as it is sent, and the texts that nobody else may see.
type credentialValue struct {
	header, value string // empty if there is none
	secrets       []string
}

// credential returns the credential of an upstream, with its secrets as they are now. No error shows
// any of them.
func (c *Client) credential(ctx context.Context, d *Definition) (_ credentialValue, err error) {
	defer safe.Recover(&err)
	if d.Credential == nil {
		return credentialValue{}, nil
	}
	value, secrets, err := c.plain.Credential(ctx, d.Credential)
	if err != nil {
		return credentialValue{}, err
	}
	return credentialValue{http.CanonicalHeaderKey(d.Credential.Header()), value, secrets}, nil
}

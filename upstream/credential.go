package upstream

import (
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// Credential is what an upstream asks for, in a header.
type Credential struct {
	// Header is the name of the header, such as X-Api-Key; empty is Authorization.
	Header string
	// Prefix stands before the secret, such as "Bearer ".
	Prefix string
	// User makes the credential HTTP basic authentication (RFC 7617), with the secret as
	// the password; Header and Prefix are empty then. It has no colon.
	User string
	// Secret returns the current secret; it is called for each attempt.
	Secret func() (string, error)
}

// credentialValue is a credential as it is sent, and the texts that nobody else may see.
type credentialValue struct {
	header, value string // empty if there is none
	secrets       []string
}

// errSecret does not show the secret.
var errSecret = errors.New("found a secret that no header can carry; expected letters, digits and marks, without spaces")

// readCredential returns the credential of an upstream. A secret that cannot stand in a header is
// an error, which does not show it.
func readCredential(d *Definition) (credentialValue, error) {
	c := d.Credential
	if c == nil && d.Key == nil {
		return credentialValue{}, nil
	}
	if c == nil {
		c = &Credential{Prefix: "Bearer ", Secret: d.Key}
	}
	secret, err := c.Secret()
	if err != nil {
		return credentialValue{}, err
	}
	if c.User != "" {
		if secret == "" || strings.ContainsFunc(c.User+secret, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return credentialValue{}, errSecret
		}
		encoded := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + secret))
		return credentialValue{"Authorization", "Basic " + encoded, []string{secret, encoded}}, nil
	}
	if secret == "" || !ascii.IsVisible(secret) {
		return credentialValue{}, errSecret
	}
	header := cmp.Or(c.Header, "Authorization")
	return credentialValue{http.CanonicalHeaderKey(header), c.Prefix + secret, []string{secret}}, nil
}

package identity_test

import (
	"testing"

	"github.com/callgate/callgate/identity"
)

// The subject of a principal of a token is what is behind its issuer, which has no #.
func TestSubject(t *testing.T) {
	for principal, want := range map[string]string{
		"jwt:https://iss#eve": "eve", "jwt:https://iss#a#eve": "a#eve", "jwt:https://iss#": "", "jwt:https://iss": "", "ops#eve": "", "eve": "", "": "", "JWT:iss#eve": "",
	} {
		if got := identity.Subject(principal); got != want {
			t.Errorf("%q: %q, expected %q", principal, got, want)
		}
	}
}

package identity_test

import (
	"testing"
	"time"

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

// A principal of a token is one until its token is not accepted any more.
func TestUntil(t *testing.T) {
	i := newIssuer(t, false, fullSet()...)
	tokens := started(t, optionsFor(i.URL))
	for expires, want := range map[int64]time.Time{
		epoch.Unix() + 60: epoch.Add(60*time.Second + identity.DefaultClockSkew),
		253402300799:      time.Unix(253402300799, 0), // the last second that a time in JSON can have
	} {
		if p := tokens.Authenticate(goodWith(i.URL, members{"exp": expires})); p == nil || !p.Until.Equal(want) || p.Expires.Unix() != expires {
			t.Errorf("exp %d: %+v, expected %s", expires, p, want)
		}
	}
}

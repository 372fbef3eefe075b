package approval_test

import (
	"errors"
	"testing"

	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/store/approval"
)

// byToken is an approver by a token with a subject.
func byToken(subject string) approval.Voter {
	name := "jwt:https://iss#" + subject
	return approval.Voter{Principal: name, Subject: identity.Subject(name), Approves: []string{"refunds"}}
}

// The user of a call is one person: who has its name by a key, by a token's subject, or as the
// whole name of a token's principal. A part of a name is nobody.
func TestUserIsOnePerson(t *testing.T) {
	for user, want := range map[string]error{
		"eve": approval.ErrRequester, "jwt:https://iss#eve": approval.ErrRequester,
		"": nil, "#eve": nil, "ve": nil, "eve ": nil, "EVE": nil, "iss#eve": nil, "https://iss#eve": nil, "jwt:https://other#eve": nil, "jwt:eve": nil,
	} {
		c := call()
		c.User = user
		a := approval.Approval{Call: c, Rules: []string{"refunds"}}
		if _, err := a.MayVote(byToken("eve")); !errors.Is(err, want) {
			t.Errorf("a call for %q: %v", user, err)
		}
	}
}

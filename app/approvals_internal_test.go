package app

import (
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/store/approval"
)

// The configuration as it is now says what a voter may do. For a principal of a token, the token
// says it, and only where it is known until when.
func TestPeople(t *testing.T) {
	c := &configs.Config{Principals: []configs.Principal{{Name: "ada", Approves: []string{"refunds"}}}}
	c.Approvals.Rules = approval.Rules{"refunds": {Name: "refunds"}, "deploys": {Name: "deploys"}}
	token := approval.Vote{By: "jwt:https://iss#eve", Rules: []string{"refunds"}, Until: time.Now().Add(time.Hour)}
	unbounded := token
	unbounded.Until = time.Time{}
	for _, tc := range []struct {
		mode string
		vote approval.Vote
		want int // rules
		of   string
	}{
		{configs.AuthJWT, token, 1, "eve"}, {configs.AuthJWT, unbounded, 0, ""}, {configs.AuthKeys, token, 0, ""}, {configs.AuthNone, token, 0, ""},
		{configs.AuthKeys, approval.Vote{By: "ada", Rules: []string{"deploys"}}, 1, ""}, {configs.AuthKeys, approval.Vote{By: "bob", Rules: []string{"deploys"}}, 0, ""},
		{configs.AuthNone, approval.Vote{}, 2, ""}, {configs.AuthNone, approval.Vote{By: "ada"}, 0, ""}, {configs.AuthJWT, approval.Vote{}, 0, ""},
	} {
		c.Auth.Mode = tc.mode
		if v := people(c)(tc.vote); len(v.Approves) != tc.want || v.Subject != tc.of {
			t.Errorf("%s: %+v: %+v", tc.mode, tc.vote, v)
		}
	}
}

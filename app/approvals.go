package app

import (
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// tokenPrincipal begins the names of principals of tokens. Of those nothing is known but what
// their tokens said when they voted; a vote counts until its token ends.
const tokenPrincipal = "jwt:"

// people tells what voters may do by a configuration. Without credentials nobody has a name,
// and everybody may approve: such a gateway is one person's own.
func people(c *configs.Config) approval.People {
	voters := map[string]approval.Voter{}
	for _, p := range c.Principals {
		voters[p.Name] = approval.Voter{Principal: p.Name, Approves: p.Approves, Agents: p.Agents}
	}
	var every []string
	for name := range c.Approvals.Rules {
		every = append(every, name)
	}
	slices.Sort(every)
	return func(v approval.Vote) approval.Voter {
		switch voter, known := voters[v.By]; {
		case v.By == "" && c.Auth.Mode == configs.AuthNone:
			return approval.Voter{Approves: every}
		case known && c.Auth.Mode != configs.AuthNone:
			return voter
		case c.Auth.Mode == configs.AuthJWT && !v.Until.IsZero() && strings.HasPrefix(v.By, tokenPrincipal):
			return approval.Voter{Principal: v.By, Subject: identity.Subject(v.By), Approves: v.Rules}
		}
		return approval.Voter{}
	}
}

// approvalPages are what stands before the id in the URLs of approvals: pages of the console,
// or the answers of the admin API where there is no console.
func approvalPages(c *configs.Config) string {
	switch {
	case c.Approvals.URL == "":
		return ""
	case c.Server.Console && Has(configs.Console):
		return c.Approvals.URL + "/console/approvals/"
	}
	return c.Approvals.URL + "/v1/approvals/"
}

// approvals are where a store keeps approvals; nil where it cannot.
func (k callStore) approvals() store.Approvals {
	kept, _ := k.Store.(store.Approvals)
	return kept
}

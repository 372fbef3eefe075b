package approval

import (
	"cmp"
	"slices"
	"time"
)

// Grant is a yes that stands for further calls until a time. Whether it holds is computed on
// every use: its approvers must still approve its rule, the rule must still let a yes stand
// so long, and the tool must have the same definition.
type Grant struct {
	ID string `json:"id"`
	// Approval is the approval whose votes granted it.
	Approval string `json:"approval"`
	Rule     string `json:"rule"`
	Scope    Scope  `json:"scope"`
	// Key identifies the calls that it holds for; see GrantKey. A revoked one holds for none.
	Key string `json:"key"`
	// Call is the call that was approved, without its arguments.
	Call
	// Votes are those that granted it, without their reasons.
	Votes  []Vote    `json:"votes"`
	Opened time.Time `json:"opened"`
	// Until is when it is over: revoking it sets that.
	Until time.Time `json:"until"`
}

// GrantKey identifies the calls that a grant of a rule and a scope holds for: it is the same
// for two calls where a grant to one holds for the other. It fails for arguments that cannot
// be approved.
func (c *Call) GrantKey(rule string, scope Scope) (string, error) {
	if scope != Same {
		return c.grantKey(rule, scope, ""), nil
	}
	anyThread, err := c.anyThread()
	return c.grantKey(rule, scope, anyThread), err
}

// anyThread is the digest of the call as if it were in no thread.
func (c *Call) anyThread() (string, error) { return c.digest("callgate grant 1", "") }

func (c *Call) grantKey(rule string, scope Scope, anyThread string) string {
	thread := ""
	if scope == InThread {
		thread = c.Thread
	}
	return hash("callgate grant 1", string(scope), rule, c.Tool, c.Version, c.Definition, c.Agent, c.Workspace, c.Project, c.Principal,
		c.User, thread, anyThread)
}

// Grants returns the grants that the votes make, at most one for each rule: of the widest
// scope for which enough people offer that their yes stands. The same votes make the same
// grant, with the same id.
func (a *Approval) Grants(rules Rules, people People, now time.Time) (grants []Grant) {
	if a.Ended.End != "" {
		return nil
	}
	for _, name := range a.Rules {
		rule := rules[name]
		yes := a.Call.counted(a.Votes, rule, people, now)
		for _, scope := range Scopes() {
			g, ok := a.grant(rule, scope, yes)
			if ok && now.Before(g.Until) {
				grants = append(grants, g)
				break
			}
		}
	}
	return grants
}

// grant returns the grant that votes make for a rule and a scope. It ends as early as so many
// of them want it that it rests on enough, and with the first of these votes that ends.
func (a *Approval) grant(rule Rule, scope Scope, yes []Vote) (Grant, bool) {
	most := rule.Remember[scope]
	yes = slices.DeleteFunc(slices.Clone(yes), func(v Vote) bool { return !v.Remember.Scope.covers(scope) })
	if most <= 0 || rule.Approve < 1 || len(yes) < rule.Approve || scope == InThread && a.Thread == "" {
		return Grant{}, false
	}
	slices.SortStableFunc(yes, func(v, w Vote) int { return cmp.Compare(w.Remember.For, v.Remember.For) })
	yes = yes[:rule.Approve]
	anyThread := ""
	if scope == Same {
		anyThread = a.AnyThread
	}
	key := a.grantKey(rule.Name, scope, anyThread)
	g := Grant{ID: "grant_" + hash(a.ID, key)[:26], Approval: a.ID, Rule: rule.Name, Scope: scope, Key: key, Call: a.Call}
	g.Arguments = nil
	for _, v := range yes {
		if v.At.After(g.Opened) {
			g.Opened = v.At
		}
		v.Reason = ""
		g.Votes = append(g.Votes, v)
	}
	g.Until = g.Opened.Add(min(most, yes[rule.Approve-1].Remember.For))
	for _, v := range yes {
		if !v.Until.IsZero() && v.Until.Before(g.Until) {
			g.Until = v.Until
		}
	}
	return g, true
}

// Holds reports whether a call that asks for the rule of the grant passes by it now.
func (g *Grant) Holds(c *Call, rules Rules, people People, now time.Time) bool {
	rule, known := rules[g.Rule]
	key, err := c.GrantKey(g.Rule, g.Scope)
	return known && err == nil && key == g.Key && g.Live(now) &&
		rule.Approve > 0 && len(c.counted(g.Votes, rule, people, now)) >= rule.Approve && g.Until.Sub(g.Opened) <= rule.Remember[g.Scope]
}

// Live reports whether the time of the grant is not over.
func (g *Grant) Live(now time.Time) bool { return now.Before(g.Until) }

// Revoked returns the grant as it is once it was revoked.
func (g *Grant) Revoked(now time.Time) Grant {
	revoked := *g
	revoked.Key, revoked.Votes, revoked.Until = "", nil, stamp(now)
	return revoked
}

// Outlived reports whether nothing is lost with the grant. A revoked one is kept for Retention, so that no copy of it
// that has missed its end outlives the end.
func (g *Grant) Outlived(now time.Time) bool {
	return !g.Live(now) && (g.Key != "" || now.Sub(g.Until) >= Retention)
}

// Follows reports whether another copy of the grant has missed something: it was revoked, or made anew by later votes.
func (g *Grant) Follows(other *Grant) bool {
	return g.Opened.After(other.Opened) || g.Opened.Equal(other.Opened) && g.Until.Before(other.Until)
}

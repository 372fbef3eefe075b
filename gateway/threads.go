package gateway

import (
	"cmp"

	"github.com/callgate/callgate/gateway/threads"
	"github.com/callgate/callgate/store"
)

// Together names the run that the calls of this admission belong to.
func (a *Admission) Together(id string) *Admission {
	own := *a
	own.request.Together = id
	return &own
}

// InSession names the session that the calls of this admission belong to.
func (a *Admission) InSession(id string) *Admission {
	own := *a
	own.request.Session = id
	return &own
}

// Group is the name by which tools know the thread of the request; empty where it names none.
func (a *Admission) Group() string {
	return threads.Group(store.Scope{Principal: a.principal, Workspace: a.request.Workspace, Project: a.request.Project}, a.request.Thread)
}

// group is the name by which the tool of the call knows its thread; empty where the call is a
// thread of its own.
func (c *Call) group() string {
	return threads.Group(c.storeScope(), cmp.Or(c.request.Thread, c.request.Session, c.request.Together))
}

// ancestorGroups are the groups of the thread's ancestors.
func (c *Call) ancestorGroups() (groups []string) {
	scope := c.storeScope()
	for _, name := range c.request.Ancestors {
		groups = append(groups, threads.Group(scope, name))
	}
	return groups
}

// storedGroup is the group as the store has to keep it: where it is not the thread, and the
// tool will name it.
func (c *Call) storedGroup() string {
	if group := c.group(); c.CallsBack() && group != c.request.Thread {
		return group
	}
	return ""
}

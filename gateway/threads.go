package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/callgate/callgate/store"
)

// MaxAncestors is how many threads a thread may have come from.
const MaxAncestors = 64

// tenantDigest is how many bytes of a digest stand for a tenant in the name of a group.
const tenantDigest = 12

// ThreadGroup is the name by which a tool knows a thread of a scope. Names of threads are
// chosen by callers, so two tenants may choose the same: their groups differ, and none can be
// made to name another tenant's. Without credentials there is one tenant, and the group is the
// thread.
func ThreadGroup(of store.Scope, thread string) string {
	if of.Principal == "" || thread == "" {
		return thread
	}
	tenant := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", of.Principal, of.Workspace, of.Project))
	return thread + "~" + base64.RawURLEncoding.EncodeToString(tenant[:tenantDigest])
}

// CheckAncestors says what is wrong with the ancestors that a caller states of a thread: each
// must have a name, and be another thread than the others and the thread itself.
func CheckAncestors(thread string, ancestors []string) error {
	if len(ancestors) > MaxAncestors {
		return fmt.Errorf("found %d ancestors of a thread; expected at most %d", len(ancestors), MaxAncestors)
	}
	for i, name := range ancestors {
		switch {
		case name == "":
			return fmt.Errorf("ancestor %d of the thread has no name", i+1)
		case name == thread:
			return fmt.Errorf("ancestor %d is the thread itself", i+1)
		case slices.Contains(ancestors[:i], name):
			return fmt.Errorf("ancestor %d is one before it", i+1)
		}
	}
	return nil
}

// Together names what the calls of this admission belong to together where their request names
// no thread: a run of a model, a session.
func (a *Admission) Together(id string) *Admission {
	own := *a
	own.request.Together = id
	return &own
}

// Group is the name by which tools know the thread of the request; empty where it names none.
func (a *Admission) Group() string {
	return ThreadGroup(store.Scope{Principal: a.principal, Workspace: a.request.Workspace, Project: a.request.Project}, a.request.Thread)
}

// group is the name by which the tool of the call knows its thread; empty where the call is a
// thread of its own.
func (c *Call) group() string {
	return ThreadGroup(c.storeScope(), cmp.Or(c.request.Thread, c.request.Together))
}

// ancestorGroups are the groups of the thread's ancestors.
func (c *Call) ancestorGroups() (groups []string) {
	scope := c.storeScope()
	for _, name := range c.request.Ancestors {
		groups = append(groups, ThreadGroup(scope, name))
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

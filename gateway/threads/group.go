// Package threads has the names of threads: those by which tools know them, and the rules for the
// ancestors that callers state.
package threads

import (
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

// Group is the name by which a tool knows a thread of a scope. Names of threads are
// chosen by callers, so two tenants may choose the same: their groups differ, and none can be
// made to name another tenant's. Without credentials there is one tenant, and the group is the
// thread.
func Group(of store.Scope, thread string) string {
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

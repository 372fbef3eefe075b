// Package boundary decides whether a value stays within the lists of a project:
// paths, hosts, URLs, and named resources.
//
// # Contract
//
// Within and Resolve refuse every value that they cannot decide: a kind without a
// list, an empty list, a path that cannot be followed. An error is an *OutsideError,
// whose reason names neither the lists nor anything of the file system. Paths are
// compared as they are written and as the file system leads them, and refused where
// another program could read them as a URL or as another path; hosts and URLs are
// compared only in forms that every parser reads in the same way.
package boundary

// The kinds of boundary that every project knows; any other is a name under
// its resources.
const (
	KindPath      = "path"
	KindURL       = "url"
	KindHost      = "host"
	KindWorkspace = "workspace"
	KindProject   = "project"
)

// BuiltIn reports whether a kind of boundary is one that every project knows.
func BuiltIn(kind string) bool {
	switch kind {
	case KindPath, KindURL, KindHost, KindWorkspace, KindProject:
		return true
	}
	return false
}

// Lists are the boundaries of one project. An empty list allows nothing.
type Lists struct {
	Roots     []string            // absolute, clean directories
	Start     string              // where relative paths start, absolute; empty: the first root
	Hosts     []string            // names, *.NAME, or IP addresses
	Resources map[string][]string // by kind: exact values, or a prefix before a trailing star
	// Workspace and Project are the only values of their kinds; empty allows none.
	Workspace, Project string
}

// OutsideError says that a value is not within a boundary.
type OutsideError struct {
	Kind string
	// Reason is one sentence for the model: what is allowed, in kind. It names
	// neither the lists of the project nor anything of the file system.
	Reason string
}

// Error is the reason.
func (e *OutsideError) Error() string { return e.Reason }

// outside makes the error of a reason, nil of none.
func outside(kind, reason string) error {
	if reason == "" {
		return nil
	}
	return &OutsideError{Kind: kind, Reason: reason}
}

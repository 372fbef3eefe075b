package boundary

import (
	"fmt"
	"github.com/callgate/callgate/policy/internal/lexical"
	"path/filepath"
	"strings"
)

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
	Roots     []string            // absolute, clean directories; the first is where relative paths start
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

// Within judges a value against a boundary of the project: nil where it is
// within, else an *OutsideError. A kind that is neither built in nor under
// resources, and an empty list, refuse everything. For the kind path, Resolve
// says also which file is meant. Safe for concurrent use.
func (p Lists) Within(kind, value string) error {
	switch kind {
	case KindPath:
		_, err := p.Resolve(value)
		return err
	case KindURL:
		return outside(kind, p.urlReason(value))
	case KindHost:
		return outside(kind, p.hostReason(value))
	case KindWorkspace:
		return outside(kind, sameNameReason(kind, value, p.Workspace))
	case KindProject:
		return outside(kind, sameNameReason(kind, value, p.Project))
	default:
		return outside(kind, p.resourceReason(kind, value))
	}
}

// outside makes the error of a reason, nil of none.
func outside(kind, reason string) error {
	if reason == "" {
		return nil
	}
	return &OutsideError{Kind: kind, Reason: reason}
}

func sameNameReason(kind, value, bound string) string {
	if bound == "" || value != bound {
		return "Only the " + kind + " of this call itself is allowed here."
	}
	return ""
}

// resourceReason judges a value under resources: equal to an entry, or starting
// with an entry's text before its star. The value is compared as it is; what a
// tool makes of slashes or dots in it is the tool's affair.
func (p Lists) resourceReason(kind, value string) string {
	const reason = "This resource is not one that this project may use."
	if value == "" {
		return reason
	}
	for _, entry := range p.Resources[kind] {
		if prefix, found := strings.CutSuffix(entry, "*"); entry == value && !found || found && strings.HasPrefix(value, prefix) {
			return ""
		}
	}
	return reason
}

// RootProblem says what is wrong with an entry of Roots; "" for nothing.
func RootProblem(root string) string {
	if bad := lexical.NameProblem(root); bad != "" {
		return bad
	}
	if !filepath.IsAbs(root) || filepath.Clean(root) != root {
		return fmt.Sprintf("found the root %s, expected an absolute path without ., .., // or a slash at its end", lexical.Quote(root))
	}
	return ""
}

package boundary

import "strings"

// Within checks a value against a boundary of the project: nil where it is
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

func sameNameReason(kind, value, bound string) string {
	if bound == "" || value != bound {
		return "Only the " + kind + " of this call itself is allowed here."
	}
	return ""
}

// resourceReason checks a value under resources: equal to an entry, or starting
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

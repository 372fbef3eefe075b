package registry

import "slices"

// HasSecrets tells whether any tool marks an argument x-secret.
func (r *Registry) HasSecrets() bool {
	return r != nil && slices.ContainsFunc(r.entries, func(e *Entry) bool { return e.hasSecrets })
}

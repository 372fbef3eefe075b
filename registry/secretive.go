package registry

import "slices"

// Secretive tells whether any tool marks an argument x-secret.
func (r *Registry) Secretive() bool {
	return r != nil && slices.ContainsFunc(r.entries, func(e *Entry) bool { return e.secretive })
}

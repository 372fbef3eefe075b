package gateway

import "maps"

// Quarantine says which tools may not be called until an operator has accepted
// their definitions: those of which a server says something else than what was
// accepted, and those that were never accepted, which the configuration does not
// have at all. It replaces what was said before, and outlives configurations.
func (k *Kernel) Quarantine(names map[string]bool) {
	names = maps.Clone(names)
	k.apart.Store(&names)
}

// quarantined tells whether a tool may not be called now.
func (k *Kernel) quarantined(name string) bool {
	names := k.apart.Load()
	return names != nil && (*names)[name]
}

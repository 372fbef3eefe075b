//go:build race

package detector

// On reports whether the race detector watches.
const On = true
